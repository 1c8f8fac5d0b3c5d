"""Step times that verl's documentation publishes: colocated runs beside runs with a pool of their own for each role.

Where rollout and training overlap, a step takes less than its stages together, and ``gen_s`` is what is left to wait of
the rollout, not the rollout's own time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.csv_rows import CsvRow
from planner.papers.bidirl.logs.cells import ABSENT, given_number, number_of
from planner.papers.bidirl.logs.durations import duration_s
from planner.papers.bidirl.logs.headings import table_rows
from planner.papers.bidirl.logs.pools import Pools, pools_of

_NAMES = ("training_mode", "mode", "staleness_threshold", "require_batches")
"""Columns that tell rows apart: of each table one."""
_TOTAL = re.compile(r"total_time_([0-9]{1,6})_step")


@dataclass(frozen=True)
class StepTimes:
    """Mean seconds of a step and of its stages; None: not run, or not measured.

    ``setting`` is what the table tells its rows apart by. ``run_s`` are seconds of whole runs by their steps, 0 where
    the table does not say how many: they need not agree with the means.
    """

    line: int
    setting: str
    pools: Pools | None
    step_s: float
    gen_s: float | None
    generate_sequences_s: float | None
    old_log_prob_s: float | None
    ref_s: float | None
    update_actor_s: float
    run_s: Mapping[int, float]

    @property
    def stages_s(self) -> float:
        """All stages one after the other, generation once."""
        generation = self.gen_s if self.gen_s is not None else self.generate_sequences_s
        known = (generation, self.old_log_prob_s, self.ref_s, self.update_actor_s)
        return sum(each for each in known if each is not None)

    @property
    def overlapped(self) -> bool:
        """Whether the step took less than its stages: they ran beside one another."""
        return self.step_s < self.stages_s


def read_step_times(path: Path, where: str = "") -> list[StepTimes]:
    """The rows of a table that have times; a row without any is left out. Raises BadInputError with the line."""
    rows = table_rows(path, where, ("step", "gen", "old_log_prob", "update_actor"))
    return [_row(row) for row in rows if any(_cell(row, name) not in ABSENT for name in ("step", "update_actor"))]


def _row(row: CsvRow) -> StepTimes:
    wrong = row.wrong
    split = _cell(row, "resource_allocation")
    optional = {
        name: number_of(_cell(row, name), name, wrong) for name in ("gen", "generate_sequences", "old_log_prob", "ref")
    }
    return StepTimes(
        line=row.line,
        setting=next((row.cells[name] for name in _NAMES if name in row.cells), ""),
        pools=pools_of(split, "resource allocation", wrong) if split else None,
        step_s=given_number(_cell(row, "step"), "step", wrong),
        gen_s=optional["gen"],
        generate_sequences_s=optional["generate_sequences"],
        old_log_prob_s=optional["old_log_prob"],
        ref_s=optional["ref"],
        update_actor_s=given_number(_cell(row, "update_actor"), "update_actor", wrong),
        run_s=_runs(row),
    )


def _runs(row: CsvRow) -> dict[int, float]:
    found = {}
    for name, cell in row.cells.items():
        steps = _TOTAL.fullmatch(name)
        if steps is None and name != "total_time":
            continue
        seconds = duration_s(cell, name, row.wrong)
        if seconds is not None:
            found[int(steps[1]) if steps else 0] = seconds
    return found


def _cell(row: CsvRow, name: str) -> str:
    return row.cells.get(name, "")
