"""Whole runs of one length in several modes of sharing GPUs, as verl's documentation publishes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from planner.csv_rows import CsvRow
from planner.papers.bidirl.logs.cells import given_number
from planner.papers.bidirl.logs.durations import duration_s
from planner.papers.bidirl.logs.headings import table_rows
from planner.papers.bidirl.logs.pools import Pools, pools_of

_RUN = re.compile(r"([0-9]{1,6})_step_training_time")


@dataclass(frozen=True)
class ModeRun:
    """``run_s`` is of ``steps`` steps."""

    line: int
    mode: str
    pools: Pools
    steps: int
    run_s: float
    tokens_per_s: float
    mean_response_tokens: float


def read_mode_runs(path: Path, where: str = "") -> list[ModeRun]:
    """Every row. Raises BadInputError with the line."""
    needed = ("mode", "resource_split", "aggregate_tokens_s", "mean_response_length")
    return [_row(row) for row in table_rows(path, where, needed)]


def _row(row: CsvRow) -> ModeRun:
    cells, wrong = row.cells, row.wrong
    named = next((found for name in cells if (found := _RUN.fullmatch(name))), None)
    if named is None:
        raise wrong("expected a column such as 150-step training time", "missing_field")
    run_s = duration_s(cells[named[0]], "training time", wrong)
    if run_s is None:
        raise wrong("expected the training time, got none", "missing_field")
    return ModeRun(
        line=row.line,
        mode=cells["mode"],
        pools=pools_of(cells["resource_split"], "resource split", wrong),
        steps=int(named[1]),
        run_s=run_s,
        tokens_per_s=given_number(cells["aggregate_tokens_s"], "tokens/s", wrong),
        mean_response_tokens=given_number(cells["mean_response_length"], "mean response length", wrong),
    )
