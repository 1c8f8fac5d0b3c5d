"""Measured training runs from a CSV file: layout, and step time or that memory ran out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from planner.csv_rows import CsvRow, csv_rows, number, shown, whole
from planner.errors import BadInputError
from planner.papers.layout.layouts import Layout
from planner.papers.layout.problem import RECOMPUTE, Recompute

NEEDED = ("num_gpus", "sequence_length", "global_batch_size", "micro_batch", "tp", "pp", "step_time_s")
OPTIONAL = (
    *("id", "group", "model", "cp", "vpp", "ep", "etp", "zero_stage"),
    *("recompute", "sequence_parallel", "result", "memory_gib"),
)
LEAST_S = 1e-9
MAX_SECONDS = 1e9
GIB = 2**30
LEAST_GIB, MAX_GIB = 1e-3, 1e6
RAN, OUT_OF_MEMORY = "ok", "oom"
_YES = {"1": True, "0": False, "true": True, "false": False}


@dataclass(frozen=True)
class Run:
    """One run: ``step_time_s`` is None where memory ran out, or where nobody noted it. ``line`` in its file.

    ``peak_bytes``: most that was taken of its fullest GPU, the context and all else among it; None where not noted.
    """

    line: int
    name: str
    group: str
    model: str
    num_gpus: int
    sequence_length: int
    global_batch_size: int
    layout: Layout
    ran: bool
    step_time_s: float | None
    peak_bytes: float | None = None


def read_runs(path: Path, where: str, groups: Collection[str] | None = None) -> tuple[Run, ...]:
    """The runs of a file, or those of some groups; other columns are passed over.

    Needed: ``NEEDED``. If there: id, group, model; cp, vpp, ep, etp (1); zero_stage (0); recompute (none);
    sequence_parallel (0); result, ok or oom (oom where no step time is given); memory_gib, what the device says is in
    use of the fullest GPU at the peak (not what an allocator handed out, which leaves the context out). The layout has
    no partition. Raises BadInputError naming the line and the column; out_of_range where the file has no such run.
    """
    found = []
    for row in csv_rows(path, NEEDED, where, others=True):
        if groups is None or row.cells.get("group", "") in groups:
            found.append(_run(row))
    if not found:
        message = f"{path.name}: no run of {', '.join(sorted(groups or ()))}"
        raise BadInputError(message, code="out_of_range", where=where)
    return tuple(found)


def other_columns(path: Path, where: str) -> tuple[str, ...]:
    """Columns of the file that nobody reads, in its order. Raises BadInputError as `read_runs`."""
    row = next(csv_rows(path, NEEDED, where, others=True))
    return tuple(name for name in row.cells if name and name not in (*NEEDED, *OPTIONAL))


def _run(row: CsvRow) -> Run:
    cells, wrong = row.cells, row.wrong
    gpus = whole(cells["num_gpus"], "num_gpus", wrong)
    batch = whole(cells["global_batch_size"], "global_batch_size", wrong)
    layout = _layout(row)
    ranks = layout.tp * layout.cp * layout.pp
    if gpus % ranks:
        raise wrong(f"tp x cp x pp = {ranks} does not divide num_gpus {gpus}", "out_of_range")
    at_once = layout.micro_batch * (gpus // ranks)
    if batch % at_once:
        message = f"micro_batch x data-parallel ranks = {at_once} does not divide global_batch_size {batch}"
        raise wrong(message, "out_of_range")
    ran, seconds = _result(row)
    return Run(
        line=row.line,
        name=cells.get("id", "") or f"line {row.line}",
        group=cells.get("group", ""),
        model=cells.get("model", ""),
        num_gpus=gpus,
        sequence_length=whole(cells["sequence_length"], "sequence_length", wrong),
        global_batch_size=batch,
        layout=layout,
        ran=ran,
        step_time_s=seconds,
        peak_bytes=_peak_bytes(row),
    )


def _layout(row: CsvRow) -> Layout:
    cells, wrong = row.cells, row.wrong
    tp, cp, pp, vpp, ep, etp = (
        whole(cells.get(name, "") or "1", name, wrong) for name in ("tp", "cp", "pp", "vpp", "ep", "etp")
    )
    zero = whole(cells.get("zero_stage", "") or "0", "zero_stage", wrong, least=0)
    if zero > 3:
        raise wrong(f"expected zero_stage 0 to 3, got {zero}", "out_of_range")
    spread = _YES.get((cells.get("sequence_parallel", "") or "0").lower())
    if spread is None:
        raise wrong(f"expected sequence_parallel 0 or 1, got {shown(cells['sequence_parallel'])}", "wrong_type")
    micro_batch = whole(cells["micro_batch"], "micro_batch", wrong)
    return Layout(tp, cp, pp, vpp, ep, etp, zero, _recompute(row), micro_batch, spread and tp > 1)


def _recompute(row: CsvRow) -> Recompute:
    text = row.cells.get("recompute", "") or "none"
    found = next((each for each in RECOMPUTE if each == text), None)
    if found is None:
        raise row.wrong(f"expected recompute none, selective or full, got {shown(text)}", "out_of_range")
    return found


def _peak_bytes(row: CsvRow) -> float | None:
    text = row.cells.get("memory_gib", "")
    return GIB * number(text, "memory_gib", row.wrong, least=LEAST_GIB, most=MAX_GIB) if text else None


def _result(row: CsvRow) -> tuple[bool, float | None]:
    text = row.cells["step_time_s"]
    seconds = number(text, "step_time_s", row.wrong, least=LEAST_S, most=MAX_SECONDS) if text else None
    result = row.cells.get("result", "") or (RAN if text else OUT_OF_MEMORY)
    if result not in (RAN, OUT_OF_MEMORY):
        raise row.wrong(f"expected result ok or oom, got {shown(result)}", "out_of_range")
    if result == OUT_OF_MEMORY and seconds is not None:
        raise row.wrong(f"out of memory and a step time of {seconds:g} s: leave the one that is meant", "out_of_range")
    return result == RAN, seconds
