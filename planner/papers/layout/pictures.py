"""What there is to see in a layout plan: the ranking, where step and bytes go, the pipeline, the front, the flags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from planner.papers.layout.evaluate import Evaluated, bytes_by_rank, evaluate
from planner.papers.layout.launch_settings import launched
from planner.papers.layout.layouts import layout_of
from planner.papers.layout.pipeline_picture import MOST_RANKS, drawable, shown, timeline
from planner.papers.layout.presentation import evaluated, layers
from planner.papers.layout.problem import LayoutProblem, Recompute
from planner.papers.layout.solution import Figures, LayoutSolution, Neighbour
from planner.papers.layout.step_parts import step_parts
from planner.units import in_bytes, seconds
from planner.view import Bar, Bars, Segment, Table, View

MOST_FRONT = 12
"""Layouts of the front that are listed; of more, some in even steps."""
MOST_STEPS = 6
"""Layouts whose step is drawn."""

_DEGREES = ("tp", "cp", "pp", "vpp", "ep", "etp", "dp")
_OFF = "-"
_UNTOLD = ("1", _OFF, "even")
"""What needs no word where all layouts have it."""
_RECOMPUTED: dict[Recompute, str] = {"none": _OFF, "selective": "sel", "full": "full"}
_PARTS = {
    "compute": ("compute",),
    "communication": ("communication", "sharding", "hops"),
    "recompute": ("recompute",),
    "bubble": ("bubble",),
    "tail": ("reduction", "update", "fixed"),
}
"""Of a step, in few enough kinds for a terminal's characters."""
_LARGE = ("weights", "gradients", "optimizer", "activations")
_REST = "rest"


def view(problem: LayoutProblem, solution: LayoutSolution) -> View:
    """The ranking first, then the chosen layout from inside, then what else there is."""
    found = evaluated(problem, solution)
    return View(
        (
            ranking(solution),
            *_neighbours(solution),
            _steps(problem, solution),
            _memory_bars(problem, found),
            memory_table(problem, found),
            *([timeline(found)] if drawable(found) else []),
            *_front(solution),
            *_excluded(solution),
            _launched(problem, solution),
        )
    )


def ranking(solution: LayoutSolution) -> Table:
    """The chosen layout and the best others, with the reason each loses."""
    rows: list[tuple[Figures, float, str]] = [(solution, 1.0, "chosen")]
    rows += [(each, each.ratio, each.reason) for each in solution.alternatives]
    told = _told([row for row, _, _ in rows])
    cells = tuple(
        (str(place), *decided, f"{ratio:.3f}", in_bytes(row.peak_memory_bytes), reason)
        for place, (decided, (row, ratio, reason)) in enumerate(zip(told.cells, rows, strict=True), start=1)
    )
    return Table(f"layouts, best first{told.alike}", ("#", *told.columns, "ratio", "peak", "loses by"), cells)


class Told(NamedTuple):
    """Decisions of several layouts: those that differ as columns, with cells by layout; what is alike in words."""

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    alike: str


def _told(rows: Sequence[Figures]) -> Told:
    cells = [_cells(row) for row in rows]
    differ = [name for name in cells[0] if len({each[name] for each in cells}) > 1]
    same = [f"{name} {text}" for name, text in cells[0].items() if name not in differ and text not in _UNTOLD]
    alike = f"; all: {', '.join(same)}" if same and len(rows) > 1 else ""
    columns = differ if len(rows) > 1 else [name for name, text in cells[0].items() if text not in _UNTOLD]
    return Told(tuple(columns), tuple(tuple(each[name] for name in columns) for each in cells), alike)


def _cells(row: Figures) -> dict[str, str]:
    """Every decision in a word, by heading."""
    even = len(set(row.partition)) == 1
    return {
        **{name: str(getattr(row, name)) for name in _DEGREES},
        "ZeRO": str(row.zero_stage),
        "batch": f"{row.micro_batch}x{row.num_micro_batches}",
        "recomp": _RECOMPUTED[row.recompute],
        "sp": "yes" if row.sequence_parallel else _OFF,
        "layers": "even" if even else layers(row.partition).replace(" ", ""),
    }


def _neighbours(solution: LayoutSolution) -> Iterator[Table]:
    """What changing one decision alone does."""
    rows = tuple(
        (
            f"{each.field} {_value(each)}",
            "-" if each.step_time_s is None else seconds(each.step_time_s),
            "-" if each.ratio is None else f"{each.ratio:.3f}",
            "-" if each.peak_memory_bytes is None else in_bytes(each.peak_memory_bytes),
            each.reason,
        )
        for each in solution.neighbours
    )
    if rows:
        yield Table("with one decision changed", ("instead", "step", "ratio", "peak", "loses by"), rows)


def _value(neighbour: Neighbour) -> str:
    value = neighbour.value
    if isinstance(value, tuple):
        return layers(value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _steps(problem: LayoutProblem, solution: LayoutSolution) -> Bars:
    """Seconds of the busiest rank by what it does, of the chosen layout and the next ones."""
    rows: list[Figures] = [solution, *solution.alternatives[: MOST_STEPS - 1]]
    bars = []
    for place, row in enumerate(rows, start=1):
        each = step_parts(problem, evaluate(problem, layout_of(row), row.pipeline_s))
        amounts = {kind: sum(each[part] for part in parts) for kind, parts in _PARTS.items()}
        segments = tuple(Segment(kind, amount) for kind, amount in amounts.items() if amount > 0)
        bars.append(Bar(f"#{place}", segments, seconds(row.step_time_s)))
    return Bars("step", tuple(bars), "s", tuple(_PARTS))


def _memory_bars(problem: LayoutProblem, found: Evaluated) -> Bars:
    """Bytes of pipeline ranks by cause, beside what a GPU has beyond its reserve."""
    bars, each = [], bytes_by_rank(problem, found)
    for rank in shown(len(each), MOST_RANKS):
        held = each[rank]
        amounts = {cause: amount for cause, amount in held.by_cause().items() if cause in _LARGE}
        amounts[_REST] = held.total - sum(amounts.values())
        segments = tuple(Segment(cause, amount) for cause, amount in amounts.items() if amount > 0)
        bars.append(Bar(f"rank {rank}", segments, in_bytes(held.total)))
    return Bars("peak, | free", tuple(bars), "bytes", (*_LARGE, _REST), limit=problem.cluster.capacity_bytes)


def memory_table(problem: LayoutProblem, found: Evaluated) -> Table:
    """Bytes of the fullest rank by cause, its reserve, and what is left."""
    held = bytes_by_rank(problem, found)
    totals = [rank.total for rank in held]
    fullest = totals.index(max(totals))
    memory, reserve = problem.cluster.gpu_memory_bytes, problem.cluster.reserve_bytes
    amounts = {cause: amount for cause, amount in held[fullest].by_cause().items() if amount}
    amounts |= {"reserve": reserve} if reserve else {}
    amounts["left"] = memory - reserve - totals[fullest]
    rows = tuple((cause, in_bytes(amount), f"{amount / memory:.2%}") for cause, amount in amounts.items())
    return Table(f"rank {fullest}, the fullest", ("cause", "bytes", "share"), rows)


def _front(solution: LayoutSolution) -> Iterator[Table]:
    """Layouts than which none is both faster and smaller."""
    if len(solution.pareto) < 2:
        return
    front = [solution.pareto[place] for place in shown(len(solution.pareto), MOST_FRONT)]
    told = _told(front)
    rows = tuple(
        (*decided, seconds(row.step_time_s), f"{row.ratio:.3f}", in_bytes(row.peak_memory_bytes))
        for decided, row in zip(told.cells, front, strict=True)
    )
    part = f", {len(front)} of {len(solution.pareto)}" if len(front) < len(solution.pareto) else ""
    yield Table(f"less memory for more time{part}{told.alike}", (*told.columns, "step", "ratio", "peak"), rows)


def _excluded(solution: LayoutSolution) -> Iterator[Table]:
    """What fell away by which rule."""
    if solution.excluded:
        rows = tuple((rule, f"{count:,}") for rule, count in solution.excluded.items())
        yield Table("left out", ("rule", "how many"), rows)


def _launched(problem: LayoutProblem, solution: LayoutSolution) -> Table:
    """The layout in the settings of its launcher, or of each of them."""
    rows = []
    for each in launched(problem, solution):
        settings = each.settings or (f"cannot start it: rule {each.broken}",)
        rows += [(each.launcher if place == 0 else "", setting) for place, setting in enumerate(settings)]
    return Table("as a launcher is told it", ("launcher", "settings"), tuple(rows))
