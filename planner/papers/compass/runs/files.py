"""Measured runs from CSV files of others: a header, then one run a line; a fault is told with its line."""

from __future__ import annotations

from pathlib import Path

from planner.csv_rows import Wrong, csv_rows, number, shown, whole
from planner.errors import BadInputError
from planner.papers.compass.problem import LEAST_S

MAX_SECONDS = 1e15
MAX_SIZE = 1e24


def read_runs(path: Path, where: str) -> list[tuple[int, int, float]]:
    """Runs of the whole operator: line, degree, seconds. Columns ``degree,time_s``. Raises BadInputError."""
    found = []
    for line, row, wrong in csv_rows(path, ("degree", "time_s"), where):
        degree = whole(row["degree"], "a degree", wrong)
        found.append((line, degree, _positive(row["time_s"], "time_s", MAX_SECONDS, wrong)))
    return found


def read_stages(path: Path, where: str) -> dict[str, list[tuple[float, float]]]:
    """Runs of each stage alone: size and seconds, by stage. Columns ``stage,size,time_s``. Raises BadInputError.

    Each stage needs runs of two sizes at least.
    """
    found: dict[str, list[tuple[float, float]]] = {"comm": [], "gemm": []}
    for _, row, wrong in csv_rows(path, ("stage", "size", "time_s"), where):
        if row["stage"] not in found:
            raise wrong(f"expected stage comm or gemm, got {shown(row['stage'])}", "out_of_range")
        size = _positive(row["size"], "size", MAX_SIZE, wrong)
        found[row["stage"]].append((size, _positive(row["time_s"], "time_s", MAX_SECONDS, wrong)))
    for stage, runs in found.items():
        sizes = len({size for size, _ in runs})
        if sizes < 2:
            message = f"{path.name}: expected runs of stage {stage} at two sizes at least, got {sizes}"
            raise BadInputError(message, code="out_of_range", where=where)
    return found


def _positive(text: str, column: str, most: float, wrong: Wrong) -> float:
    return number(text, column, wrong, least=LEAST_S, most=most)
