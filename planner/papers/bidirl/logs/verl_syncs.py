"""Seconds of a weight sync from trainer to rollout, as verl's documentation publishes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from planner.csv_rows import CsvRow
from planner.papers.bidirl.logs.cells import Range, seconds_range, whole_of
from planner.papers.bidirl.logs.headings import table_rows

_METHODS = {"delta_sharded": "delta_sharded", "nccl_full_broadcast": "full broadcast"}


@dataclass(frozen=True)
class SyncTime:
    """``ranks`` are those of trainer and rollout, None where the table says them in the model's name."""

    line: int
    model: str
    method: str
    seconds: Range
    ranks: tuple[int, int] | None


def read_sync_times(path: Path, where: str = "") -> list[SyncTime]:
    """Every time of a table that counts ranks, with and without the checkpoint engine. Raises BadInputError."""
    needed = ("model", "trainer_rank", "rollout_rank", "checkpoint_engine", "total_sync_time")
    return [_counted(row) for row in table_rows(path, where, needed)]


def read_delta_sync_times(path: Path, where: str = "") -> list[SyncTime]:
    """Every time of a table of deltas beside full broadcasts, two a row. Raises BadInputError with the line."""
    found = []
    for row in table_rows(path, where, tuple(_METHODS)):
        model = next(iter(row.cells.values()))
        for column, method in _METHODS.items():
            found.append(SyncTime(row.line, model, method, _seconds(row, column), None))
    return found


def _counted(row: CsvRow) -> SyncTime:
    cells, wrong = row.cells, row.wrong
    engine = cells["checkpoint_engine"]
    if engine not in ("True", "False"):
        raise wrong("expected checkpoint-engine, True or False", "wrong_type")
    ranks = tuple(whole_of(cells[name], name, wrong) for name in ("trainer_rank", "rollout_rank"))
    method = "checkpoint engine" if engine == "True" else "full broadcast"
    return SyncTime(row.line, cells["model"], method, _seconds(row, "total_sync_time"), (ranks[0], ranks[1]))


def _seconds(row: CsvRow, column: str) -> Range:
    found = seconds_range(row.cells[column], column, row.wrong)
    if found is None:
        raise row.wrong(f"expected {column}, seconds, got none", "missing_field")
    return found
