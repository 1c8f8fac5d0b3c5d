"""What there is to see in a FinDEP plan: the schedule's start and its steady cycle, the resources, the memory."""

from __future__ import annotations

from collections.abc import Iterator

from planner.paper import MemoryRow
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.solution import FindepSolution, LayerStarts
from planner.papers.findep.tasks import Task, tasks_of
from planner.papers.findep.timeline import layer_starts
from planner.units import in_bytes, seconds
from planner.view import Span, Table, Timeline, Track

KINDS = ("attention", "shared expert", "transfer", "expert")
RESOURCES = ("AG", "A2E", "EG", "E2A")

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ALL_SHOWN = 3
"""Schedules of at most so many layers are one picture."""
_FIRST_SHOWN = 2


def timelines(problem: FindepProblem, solution: FindepSolution) -> Iterator[Timeline]:
    """The whole schedule if it is short; else its first layers, one steady cycle, and the end if that is another."""
    layers, written = problem.num_layers, solution.timeline
    if layers <= _ALL_SHOWN:
        yield _picture(problem, solution, f"schedule, {_layers(0, layers)}", 0.0, solution.makespan_s, 0, layers)
        return
    title = f"start, {_layers(0, _FIRST_SHOWN)} of {layers}"
    yield _picture(problem, solution, title, 0.0, _end(problem, solution, _FIRST_SHOWN - 1), 0, _FIRST_SHOWN + 1)
    first, end = len(written.prologue), layers - len(written.epilogue)
    if written.steady is not None and first + 2 * written.steady.cycle_layers <= end:
        cycle, period_s = written.steady.cycle_layers, written.steady.period_s
        begin = first + cycle  # what overlaps the first cycle from before it may be of the prologue
        start = _start(problem, solution, begin)
        each = "one" if cycle == 1 else "two"
        title = f"steady, {_layers(first, end)}, {each} in {seconds(period_s)}"
        yield _picture(problem, solution, title, start, start + period_s, begin - 1, begin + cycle)
    if written.epilogue:
        start = _start(problem, solution, end)
        yield _picture(problem, solution, f"end, {_layers(end, layers)}", start, solution.makespan_s, end - 1, layers)


def resources(problem: FindepProblem, solution: FindepSolution) -> Table:
    """What each resource runs in a layer, and its share of the makespan."""
    rows, last = [], ""
    for task in tasks_of(problem, solution):
        busy = getattr(solution.utilisation, task.resource)
        share = problem.num_layers * task.count * task.seconds / solution.makespan_s
        again = task.resource == last
        idle = "" if again else f"{max(0.0, 1 - busy):.1%}"
        cells = (task.name, seconds(task.seconds), f"{task.count:,}", f"{share:.1%}", idle)
        rows.append(("" if again else task.resource, *cells))
        last = task.resource
    return Table("resources", ("resource", "task", "time of one", "tasks/layer", "busy", "idle"), tuple(rows))


def memory_table(rows: list[MemoryRow]) -> Table:
    """Bytes by pool and cause."""
    cells = tuple((row.where, row.cause, in_bytes(row.bytes), _share(row)) for row in rows)
    return Table("memory of the fullest GPU of each pool", ("pool", "cause", "bytes", "of capacity"), cells)


def _share(row: MemoryRow) -> str:
    return f"{row.bytes / row.capacity_bytes:.1%}" if row.capacity_bytes else "-"


def _picture(
    problem: FindepProblem, solution: FindepSolution, title: str, start: float, end: float, first: int, last: int
) -> Timeline:
    """What layers first..last-1 do from ``start`` to ``end``, counted from ``start``. Others do nothing then.

    Layer t + 2 starts when all of layer t is over: a layer overlaps its neighbours alone.
    """
    tasks = tasks_of(problem, solution)
    spans: dict[str, list[Span]] = {resource: [] for resource in RESOURCES}
    for layer in range(max(0, first), min(last, problem.num_layers)):
        starts = layer_starts(solution.timeline, problem.num_layers, layer)
        for task in tasks:
            for began, label in _starts(task, starts):
                if began < end and began + task.seconds > start:
                    span = Span(began - start, began + task.seconds - start, task.kind, label)
                    spans[task.resource].append(span)
    tracks = []
    for resource in RESOURCES:
        ordered = tuple(sorted(spans[resource], key=lambda span: span.start))
        busy = sum(min(span.end, end - start) - max(span.start, 0.0) for span in ordered)
        tracks.append(Track(resource, ordered, f"idle {max(0.0, 1 - busy / (end - start)):>5.1%}"))
    kinds = tuple(kind for kind in KINDS if any(task.kind == kind for task in tasks))
    return Timeline(title, tuple(tracks), "s", kinds, 0.0, end - start)


def _starts(task: Task, layer: LayerStarts) -> Iterator[tuple[float, str]]:
    """When each task of a kind starts in a layer, with its micro-batch: numbers, and letters for shared experts."""
    if task.kind == "attention":
        yield from ((start, _DIGITS[i % 36]) for i, start in enumerate(layer.attention))
    elif task.kind == "shared expert":
        yield from ((start, _CAPITALS[i % 26]) for i, start in enumerate(layer.shared))
    else:
        chunks = {"A2E": layer.a2e, "EG": layer.expert, "E2A": layer.e2a}[task.resource]
        yield from ((start, _DIGITS[i % 36]) for i, row in enumerate(chunks) for start in row)


def _bounds(problem: FindepProblem, solution: FindepSolution, layer: int) -> tuple[float, float]:
    starts = layer_starts(solution.timeline, problem.num_layers, layer)
    spans = [
        (began, began + task.seconds) for task in tasks_of(problem, solution) for began, _ in _starts(task, starts)
    ]
    return min(began for began, _ in spans), max(ended for _, ended in spans)


def _start(problem: FindepProblem, solution: FindepSolution, layer: int) -> float:
    return _bounds(problem, solution, layer)[0]


def _end(problem: FindepProblem, solution: FindepSolution, layer: int) -> float:
    return _bounds(problem, solution, layer)[1]


def _layers(first: int, end: int) -> str:
    """Layers first..end-1 as people count them."""
    return f"layer {end}" if end - first == 1 else f"layers {first + 1} to {end}"
