"""What people and programs read off a Compass plan: summary, buffers, shares by source, decisions, metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from planner.attribution import Sources
from planner.derivation.shares import by_source
from planner.json_text import Json
from planner.paper import MemoryRow
from planner.papers.compass.calls import Call, calls, words
from planner.papers.compass.cautions import buffers
from planner.papers.compass.closed_form import TIE
from planner.papers.compass.launch_settings import ON, flags, named
from planner.papers.compass.launcher import switches
from planner.papers.compass.problem import CompassProblem, Stage
from planner.papers.compass.solution import CompassSolution
from planner.units import in_bytes, percent, seconds

WHERE = "each GPU"


def shares(problem: CompassProblem, solution: CompassSolution) -> dict[str, float]:
    """Fraction of the objective's seconds by source."""
    return by_source(_attributed(calls(problem, solution)))


def _attributed(made: list[Call]) -> Iterator[tuple[float, Sources | None]]:
    """The seconds of every call, part by part."""
    for call in made:
        parts = _parts(call)
        if all(sources is None for _, sources in parts):
            yield call.total_s, None
            continue
        each_s = call.total_s / sum([amount for amount, _ in parts])
        for amount, sources in parts:
            yield amount * each_s, sources


def _parts(call: Call) -> list[tuple[float, Sources | None]]:
    """What a call's seconds are made of, and where each part comes from."""
    operator, choice = call.operator, call.choice
    if choice.strategy == "intra_fusion":
        return [(1.0, next(fused.sources for fused in operator.fused if fused.id == choice.variant))]
    if choice.strategy == "inter_decom" and operator.inter_decom_table is not None:
        return [(1.0, operator.table_sources)]
    comm, gemm = operator.comm, operator.gemm
    if comm is None or gemm is None or (choice.strategy == "sequential" and operator.sequential_time_s is not None):
        return [(1.0, operator.sequential_sources)]
    # The stage that is hidden shows in one chunk, the other one in all of them.
    t_c, t_g = chunk_s(comm, choice.degree), chunk_s(gemm, choice.degree)
    rest = choice.time_s - t_c - t_g
    if choice.bound == "comm":
        return [(t_c + rest, comm.sources), (t_g, gemm.sources)]
    return [(t_c, comm.sources), (t_g + max(rest, 0.0), gemm.sources)]


def chunk_s(stage: Stage, degree: int) -> float:
    """Seconds of one chunk alone."""
    return stage.startup_s + stage.payload_s / degree


def memory(problem: CompassProblem, solution: CompassSolution) -> list[MemoryRow]:
    """The buffers of overlap by cause; none where the problem states no memory."""
    capacity = problem.memory_capacity_bytes
    if capacity is None:
        return []
    return [MemoryRow(WHERE, cause, amount, capacity) for cause, amount in sorted(buffers(problem, solution).items())]


def summary(problem: CompassProblem, solution: CompassSolution) -> list[str]:
    """Lines about the choices and what they are worth."""
    made = calls(problem, solution)
    lines = [_strategies(made), _total(solution)]
    if problem.beside_s:
        lines.append(_step(problem.beside_s, solution))
    most = max(made, key=lambda call: call.saved_s)
    saved_s = sum(call.saved_s for call in made)
    if most.saved_s > 0 and saved_s > 0:
        done = words(most.choice.strategy, most.choice.degree, most.choice.variant)
        part = percent(min(1.0, most.saved_s / saved_s))
        lines.append(f"most is gained by {most.operator.id} ({done}): {seconds(most.saved_s)} a step, {part} of all")
    lines += _closest(made)
    if problem.launcher_rules != "none":
        lines += _switches(problem, made)
    held = sum(row.bytes for row in memory(problem, solution))
    if held:
        lines.append(f"buffers of overlap: {in_bytes(held)} of {in_bytes(problem.memory_capacity_bytes or 0.0)} a GPU")
    return lines


def _strategies(made: list[Call]) -> str:
    kinds = Counter(words(call.choice.strategy, 0, call.choice.variant) for call in made)
    degrees = sorted(call.choice.degree for call in made if call.choice.strategy == "inter_decom")
    parts = []
    if degrees:
        each = f"{degrees[0]}" if degrees[0] == degrees[-1] else f"{degrees[0]} to {degrees[-1]}"
        parts.append(f"{len(degrees):,} in chunks ({each})")
    fused = sorted((name, n) for name, n in kinds.items() if name not in ("0 chunks", "sequential"))
    parts += [f"{n:,} in {name}" for name, n in fused[:3]]
    if len(fused) > 3:
        parts.append(f"{sum(n for _, n in fused[3:]):,} in other fused kernels")
    if kinds["sequential"]:
        parts.append(f"{kinds['sequential']:,} in sequence")
    number = sum(call.operator.count for call in made)
    return f"{_many(len(made), 'operator')}, {_many(number, 'call')} a step: {', '.join(parts)}"


def _total(solution: CompassSolution) -> str:
    metrics = solution.metrics
    ratio = metrics.sequential_total_time_s / metrics.total_time_s
    faster = f"{ratio:.3f}" if ratio < 1e3 else f"{ratio:.3g}"
    return (
        f"{seconds(metrics.total_time_s)} a step in these operators, {seconds(metrics.sequential_total_time_s)} all in "
        f"sequence: {faster} times as fast"
    )


def _step(beside_s: dict[str, float], solution: CompassSolution) -> str:
    """What the choices are worth to a step of which more is known."""
    metrics, rest_s = solution.metrics, sum(beside_s.values())
    before, after = (rest_s + each for each in (metrics.sequential_total_time_s, metrics.total_time_s))
    largest_first = sorted(beside_s.items(), key=lambda part: -part[1])
    parts = ", ".join(f"{name} {seconds(each)}" for name, each in largest_first[:4])
    return (
        f"with what is known beside them ({parts}): {seconds(before)} -> {seconds(after)}, {before / after:.3f} times"
    )


def _closest(made: list[Call]) -> Iterator[str]:
    """The choice that other prices would turn first."""
    near = [
        (second.time_s / call.choice.time_s - 1, call, words(second.strategy, second.degree, second.variant))
        for call in made
        if (second := call.choice.runner_up) is not None and not _kept_out(call)
    ]
    if near:
        margin, call, other = min(near, key=lambda one: one[0])
        how = f"{other} ties" if margin <= TIE else f"{other} takes {percent(margin)} longer"
        yield f"closest call: {call.operator.id}, {how}"


def _kept_out(call: Call) -> bool:
    """Whether a switch keeps a faster way out."""
    second = call.choice.runner_up
    return second is not None and second.time_s * (1 + TIE) < call.choice.time_s


def _switches(problem: CompassProblem, made: list[Call]) -> Iterator[str]:
    """The launcher's flags as the plan has them."""
    parts = []
    for switch in switches(problem):
        members = [made[place] for place in switch.all]
        on = any(call.overlaps for call in members)
        text = f"{switch.name} overlap {'on' if on else 'off'}"
        excepted = [made[place].operator.gemm_name or "" for place in switch.free if on and not made[place].overlaps]
        text += f" but for {', '.join(excepted)}" if excepted else ""
        against = [call.operator.gemm_name or "" for call in members if _kept_out(call)]
        text += f" ({', '.join(against)} alone would {'not' if on else 'be on'})" if against else ""
        parts.append(text)
    told = flags(made)
    if parts:
        yield f"switches of {problem.launcher_rules}: {'; '.join(parts)}"
    if named(made):
        yield f"start Megatron with {', '.join(told)}" if told else f"start Megatron without {ON}: nothing overlaps"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def decisions(solution: CompassSolution) -> dict[str, Json]:
    """What a launcher is told of every operator."""
    return {
        "operators": {
            choice.operator_id: words(choice.strategy, choice.degree, choice.variant) for choice in solution.choices
        }
    }


def metrics(solution: CompassSolution) -> dict[str, Json]:
    """The recomputable figures."""
    found = solution.metrics
    strategies = Counter(choice.strategy for choice in solution.choices)
    return {
        "total_time_s": found.total_time_s,
        "sequential_total_time_s": found.sequential_total_time_s,
        "speedup": found.sequential_total_time_s / found.total_time_s,
        "operators": {name: strategies[name] for name in sorted(strategies)},
    }
