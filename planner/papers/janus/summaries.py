"""The lines of a plan's summary, task by task."""

from __future__ import annotations

import math

from planner.papers.janus.activated_source import source_words
from planner.papers.janus.options import options
from planner.papers.janus.presentation import by_instance, is_priced, memory, unit
from planner.papers.janus.problem import Arrivals, JanusProblem, PlacementProblem, ScalingProblem, SeriesProblem
from planner.papers.janus.shown.fewer import why_not_fewer
from planner.papers.janus.shown.used import option_of
from planner.papers.janus.shown.words import CASES, clock, gpus, many, pools
from planner.papers.janus.sizing import HOUR_S
from planner.papers.janus.solution import JanusSolution, PlacementSolution, ScalingSolution, SeriesSolution
from planner.units import amount, in_bytes, percent, seconds


def summary(problem: JanusProblem, solution: JanusSolution) -> list[str]:
    """At most eight lines."""
    if isinstance(problem, ScalingProblem) and isinstance(solution, ScalingSolution):
        return _scaling(problem, solution)
    if isinstance(problem, SeriesProblem) and isinstance(solution, SeriesSolution):
        return _series(problem, solution)
    if isinstance(problem, PlacementProblem) and isinstance(solution, PlacementSolution):
        return _placement(problem, solution)
    return []


def _scaling(problem: ScalingProblem, solution: ScalingSolution) -> list[str]:
    layer, slots = solution.layer, option_of(problem, solution.device).slots
    device = "" if solution.device is None else f" of {solution.device}"
    left = 1 - solution.tpot_s / problem.slo_tpot_s
    lines = [
        f"{many(solution.attention_instances, 'attention GPU')} and {many(solution.expert_instances, 'expert GPU')}"
        f"{device} carry {amount(problem.demand_tokens_per_s, 'tokens/s')}, "
        f"{amount(solution.tokens_per_s_per_gpu, 'tokens/s')} a GPU",
        f"{many(solution.batch, 'request')} in flight; an output token takes {seconds(solution.tpot_s)}, "
        f"{percent(max(0.0, left))} under the SLO of {seconds(problem.slo_tpot_s)}",
        f"a layer: attention {seconds(layer.attention_s)}, experts {seconds(layer.moe_s)}, exchange "
        f"{seconds(layer.comm_s)} ({CASES[layer.comm_case]})",
        f"a_max {solution.a_max:.4g} of {many(slots, 'slot')}: "
        f"{source_words(problem, solution.device, solution.batch)}",
        *_memory(problem, solution),
    ]
    if not is_priced(problem):
        lines.append(
            "fewer GPUs: " + why_not_fewer(options(problem), solution.total_instances, problem.demand_tokens_per_s)
        )
    return [*lines, *_next(problem, solution), *_maps(solution)]


def _memory(problem: JanusProblem, solution: JanusSolution) -> list[str]:
    said = [
        f"{rows[0].where} {in_bytes(sum(row.bytes for row in rows))} of {in_bytes(rows[0].capacity_bytes)}"
        for rows in by_instance(memory(problem, solution))
    ]
    return [f"memory: {'; '.join(said)}"] if said else []


def _next(problem: ScalingProblem, solution: ScalingSolution) -> list[str]:
    if len(solution.alternatives) < 2:
        return ["no other pools within limits carry the demand"]
    other = solution.alternatives[1]
    named = pools(other.attention_instances, other.expert_instances, other.device)
    return [f"next best: {named}, {amount(other.objective, unit(problem))}, {seconds(other.tpot_s)} a token"]


def _maps(solution: ScalingSolution | SeriesSolution) -> list[str]:
    if not solution.expert_maps:
        return []
    sizes = ", ".join(str(of.expert_instances) for of in solution.expert_maps[:4])
    more = "" if len(solution.expert_maps) <= 4 else ", ..."
    return [f"expert maps: {many(len(solution.expert_maps[0].layers), 'layer')} on {sizes}{more} instances"]


def _series(problem: SeriesProblem, solution: SeriesSolution) -> list[str]:
    totals = [each.attention_instances + each.expert_instances for each in solution.intervals]
    hours = math.fsum(interval.duration_s for interval in problem.series) / HOUR_S
    place = max(range(len(problem.series)), key=lambda index: problem.series[index].demand_tokens_per_s)
    interval, peak = problem.series[place], solution.intervals[place]
    changes = sum(
        (one.attention_instances, one.expert_instances, one.device)
        != (other.attention_instances, other.expert_instances, other.device)
        for one, other in zip(solution.intervals, solution.intervals[1:], strict=False)
    )
    lines = [
        f"{many(len(totals), 'interval')}, {hours:.4g} h: {gpus(min(totals), max(totals))}, "
        f"{amount(solution.gpu_hours, 'GPU-hours')}",
        f"beside: {_beside(solution)}",
        f"peak of {amount(interval.demand_tokens_per_s, 'tokens/s')} (mean {amount(_mean(problem), 'tokens/s')}) "
        f"at {clock(interval.start_s)}{'' if problem.arrivals is None else ' after the first request'}: "
        f"{pools(peak.attention_instances, peak.expert_instances, peak.device)}, {seconds(peak.tpot_s)} a token of "
        f"{seconds(problem.slo_tpot_s)}",
        f"pools change {many(changes, 'time')}; what a change takes is not counted"
        if changes
        else "the same pools all the time",
        f"a_max at the peak: {source_words(problem, peak.device, peak.batch)}",
        *_memory(problem, solution),
    ]
    if (arrivals := problem.arrivals) is not None and arrivals.requests is not None:
        tiled = "" if arrivals.tile_to_s is None else f", repeated over {arrivals.tile_to_s / HOUR_S:.4g} h"
        scaled = _scaled(arrivals)
        lines.append(f"arrivals: {many(arrivals.requests, 'request')} of {arrivals.path}{tiled}{scaled}")
    return [*lines, *_maps(solution)]


def _scaled(arrivals: Arrivals) -> str:
    for which, wanted in (("peak", arrivals.peak_tokens_per_s), ("mean", arrivals.mean_tokens_per_s)):
        if wanted is not None:
            return f", demand scaled to a {which} of {amount(wanted, 'tokens/s')}"
    return "" if arrivals.scale == 1 else f", demand times {arrivals.scale:.4g}"


def _beside(solution: SeriesSolution) -> str:
    said = [("the peak's pools all day", solution.gpu_hours_peak)]
    if solution.gpu_hours_monolithic is not None:
        said.append(("one pool", solution.gpu_hours_monolithic))
    return ", ".join(
        f"{name} {amount(hours, 'GPU-hours')} ({_times(hours / solution.gpu_hours)})" for name, hours in said
    )


def _times(ratio: float) -> str:
    said = f"{ratio:.3g}"
    return "the same" if said == "1" else f"{said} times"


def _mean(problem: SeriesProblem) -> float:
    """Tokens per second over the whole series."""
    whole = math.fsum(interval.duration_s for interval in problem.series)
    return math.fsum(interval.demand_tokens_per_s * interval.duration_s for interval in problem.series) / whole


def _placement(problem: PlacementProblem, solution: PlacementSolution) -> list[str]:
    used, slots = sum(solution.replicas), problem.expert_instances * problem.slots_per_instance
    copied = sum(copies > 1 for copies in solution.replicas)
    lines = [
        f"{many(problem.num_experts, 'expert')} on {many(problem.expert_instances, 'instance')}, {used} of "
        f"{many(slots, 'slot')} used",
        f"copies: {many(copied, 'expert')} with more than one, {max(solution.replicas)} at most",
        f"the busiest instance holds pairs that were activated together {solution.objective:.9g} times",
    ]
    if solution.a_max_per_batch:
        least, most = min(solution.a_max_per_batch), max(solution.a_max_per_batch)
        said = f"{least}" if least == most else f"{least} to {most}"
        lines.append(f"{many(len(solution.a_max_per_batch), 'batch')} balanced by AEBS: a_max {said}")
    return lines
