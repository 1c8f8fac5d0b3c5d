"""What there is to see in a Compass plan: operators, why each is as it is, the chunks of one, the step, the buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.paper import MemoryRow
from planner.papers.compass.calls import Call, calls, words
from planner.papers.compass.closed_form import TIE
from planner.papers.compass.launch_settings import entry, named, off
from planner.papers.compass.presentation import chunk_s, memory
from planner.papers.compass.problem import CompassProblem, Operator
from planner.papers.compass.solution import CompassSolution
from planner.units import in_bytes, seconds
from planner.view import Bar, Bars, Segment, Span, Table, Timeline, Track, View

_SHOWN = 40
"""Operators of a table; of more, those that gain the most."""
_CHUNKS_DRAWN = 4096
_KINDS = ("in sequence", "chunks", "fused", "beside")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def view(problem: CompassProblem, solution: CompassSolution) -> View:
    """Tables of operators, a timeline of the one that chunks help most, the step as bars, and the buffers."""
    made = calls(problem, solution)
    shown = made if len(made) <= _SHOWN else sorted(made, key=lambda call: -call.saved_s)[:_SHOWN]
    rows = memory(problem, solution)
    return View(
        (
            _operators(shown, len(made)),
            _reasons(shown),
            *_launcher(problem, made),
            *_chunks(problem, made),
            _step(problem, made),
            *([_memory_table(rows)] if rows else []),
        )
    )


def _operators(shown: Sequence[Call], number: int) -> Table:
    """What every operator does and gains."""
    rows = tuple(
        (
            call.operator.id,
            f"{call.operator.count:,}",
            _done(call),
            seconds(call.choice.time_s),
            f"{call.sequential_s / call.choice.time_s:.3f}" if call.overlaps else "",
            seconds(call.saved_s) if call.overlaps else "",
        )
        for call in shown
    )
    title = "operators" if len(shown) == number else f"operators, the {len(shown)} of {number:,} that gain the most"
    return Table(title, ("operator", "calls", "strategy", "time of one", "x faster", "saved a step"), rows)


def _reasons(shown: Sequence[Call]) -> Table:
    """Why: the stage that is slower, the curves' optimum and where they cross, the best that was not chosen."""
    rows = []
    for call in shown:
        choice, second = call.choice, call.choice.runner_up
        margin = "" if second is None else _margin(second.time_s / choice.time_s - 1)
        rows.append(
            (
                call.operator.id,
                _priced(call),
                slower_stage(call.operator, choice.degree),
                "-" if choice.d_star is None else f"{choice.d_star:.3g}",
                "-" if choice.crossing is None else f"{choice.crossing:.3g}",
                "-" if second is None else words(second.strategy, second.degree, second.variant),
                margin,
            )
        )
    return Table("why", ("operator", "priced by", "slower", "d*", "crosses", "runner-up", "takes"), tuple(rows))


def _launcher(problem: CompassProblem, made: Sequence[Call]) -> Iterator[Table]:
    """What an overlap file and the flags beside it say of every operator that the launcher knows."""
    known = named(made) if problem.launcher_rules != "none" else []
    if not known:
        return
    rows = []
    for call in known:
        told = entry(call)
        keys = ("-", "", "") if told is None else tuple(told)
        rows.append((call.operator.gemm_name or "", *keys, off(call, made)))
    columns = ("operator", "method", "aggregate", "num_splits", "or off by")
    yield Table("entries of --tp-comm-overlap-cfg", columns, tuple(rows))


def _margin(more: float) -> str:
    """How much longer the runner-up takes; below 0 where a switch keeps it out."""
    return "ties" if abs(more) <= TIE else f"{more:+.1%}"


def _done(call: Call) -> str:
    return words(call.choice.strategy, call.choice.degree, call.choice.variant)


def _priced(call: Call) -> str:
    """What the time of a call is read from."""
    return {"table": "table", "given": "given"}.get(call.choice.bound or "", "lines")


def slower_stage(operator: Operator, degree: int) -> str:
    """The stage that takes longer, by lines and beside the other, cut into so many."""
    comm, gemm, mu = operator.comm, operator.gemm, operator.contention
    if comm is None or gemm is None:
        return "-"
    by_comm = mu.comm * chunk_s(comm, degree) >= mu.gemm * chunk_s(gemm, degree)
    return "collective" if by_comm else "GEMM"


def _chunks(problem: CompassProblem, made: Sequence[Call]) -> Iterator[Timeline]:
    """One call of the operator that chunks help most, as equation 2 has it; rings are not of that form."""
    drawable = [
        call
        for call in made
        if call.choice.strategy == "inter_decom"
        and call.operator.comm is not None
        and call.choice.degree <= _CHUNKS_DRAWN
        and call.saved_s > 0
    ]
    if problem.launcher_rules != "none":
        drawable = [call for call in drawable if call.operator.op != "ag_gemm"]
    if drawable:
        yield timeline(max(drawable, key=lambda call: call.saved_s))


def timeline(call: Call) -> Timeline:
    """Both stages of one call in chunks: each starts when the one before it on its resource and its own input end.

    The first chunk of the first stage and the last of the second run alone, all others beside one of the other stage.
    """
    operator, degree = call.operator, call.choice.degree
    comm, gemm, mu = operator.comm, operator.gemm, operator.contention
    if comm is None or gemm is None:
        raise TypeError("only operators with stages have a timeline")
    stages = [("collective", chunk_s(comm, degree), mu.comm), ("GEMM", chunk_s(gemm, degree), mu.gemm)]
    (first, one_s, one_mu), (second, two_s, two_mu) = stages if _comm_first(operator) else stages[::-1]
    starts: dict[str, list[Span]] = {first: [], second: []}
    free_s = ready_s = 0.0
    for chunk in range(degree):
        took_s = one_s if chunk == 0 else one_s * one_mu
        starts[first].append(Span(ready_s, ready_s + took_s, first, _DIGITS[chunk % 36]))
        ready_s += took_s
        begin_s = max(free_s, ready_s)
        took_s = two_s if chunk == degree - 1 else two_s * two_mu
        starts[second].append(Span(begin_s, begin_s + took_s, second, _DIGITS[chunk % 36]))
        free_s = begin_s + took_s
    tracks = tuple(
        Track(name, tuple(spans), f"idle {1 - sum(span.end - span.start for span in spans) / free_s:>5.1%}")
        for name, spans in starts.items()
    )
    title = f"{operator.id} in {degree} chunks: {seconds(call.choice.time_s)}"
    if call.choice.bound == "table":
        title += f" by its table, {seconds(free_s)} by its lines as drawn"
    return Timeline(title, tracks, "s", (first, second), 0.0, free_s)


def _comm_first(operator: Operator) -> bool:
    return operator.op in ("ag_gemm", "a2a_gemm")


def _step(problem: CompassProblem, made: Sequence[Call]) -> Bars:
    """Seconds of a step by what is done, with what is known beside the operators."""
    beside_s = sum((problem.beside_s or {}).values())
    planned = dict.fromkeys(_KINDS, 0.0)
    names = {"sequential": "in sequence", "inter_decom": "chunks", "intra_fusion": "fused"}
    for call in made:
        planned[names[call.choice.strategy]] += call.total_s
    planned["beside"] = beside_s
    alone = dict.fromkeys(_KINDS, 0.0) | {"beside": beside_s}
    alone["in sequence"] = sum(call.operator.count * call.sequential_s for call in made)
    ratio = sum(alone.values()) / sum(planned.values())
    bars = tuple(
        Bar(label, tuple(Segment(kind, amount) for kind, amount in parts.items() if amount > 0), note)
        for label, parts, note in (
            ("sequential", alone, seconds(sum(alone.values()))),
            ("planned", planned, f"{seconds(sum(planned.values()))}, {ratio:.3f} x"),
        )
    )
    kinds = tuple(kind for kind in _KINDS if alone[kind] > 0 or planned[kind] > 0)
    title = "a step" if beside_s else "a step, these operators alone"
    return Bars(title, bars, "s", kinds)


def _memory_table(rows: Sequence[MemoryRow]) -> Table:
    """Bytes by cause."""
    cells = tuple((row.cause, in_bytes(row.bytes), _share(row)) for row in rows)
    return Table("buffers of overlap on each GPU", ("cause", "bytes", "of memory"), cells)


def _share(row: MemoryRow) -> str:
    return f"{row.bytes / row.capacity_bytes:.2%}" if row.capacity_bytes else "-"
