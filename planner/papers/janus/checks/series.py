"""The pools of every interval of a series, looked at again."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.findings import MAX_LISTED, Findings
from planner.papers.janus.checks.maps import check_maps
from planner.papers.janus.checks.offers import TOLERANCE, Offer, agree, offers
from planner.papers.janus.checks.one_pool import fewest_gpus
from planner.papers.janus.checks.pools import Stated, check_pools
from planner.papers.janus.checks.ranking import carriers
from planner.papers.janus.problem import SeriesProblem
from planner.papers.janus.solution import IntervalPools, SeriesSolution

HOUR_S = 3600.0


def check_series(problem: SeriesProblem, solution: SeriesSolution, found: Findings) -> None:
    """Note what is wrong with the intervals and the sums over them."""
    known = offers(problem)
    if not problem.series:
        found.add("interval_count", "the problem's arrivals have not been read into intervals", "arrivals")
        return
    if len(solution.intervals) != len(problem.series):
        message = f"expected {len(problem.series)} intervals, got {len(solution.intervals)}"
        found.add("interval_count", message, "intervals")
        return
    hourly = _check_intervals(problem, solution, known, found)
    if hourly is None:
        return
    _check_sums(problem, solution, hourly, found)
    chosen = [(pools.expert_instances, pools.device) for pools in solution.intervals]
    check_maps(problem, solution.expert_maps, chosen, known, solution.cheapest, found)
    if solution.cheapest:
        _check_cheapest(problem, known, hourly, found)


def _check_intervals(
    problem: SeriesProblem, solution: SeriesSolution, known: dict[str | None, Offer], found: Findings
) -> list[float] | None:
    """The objective of an hour of each interval; None where some cannot be computed. Equal intervals are one check."""
    hourly: list[float] = []
    done: dict[tuple[float, IntervalPools], float | None] = {}
    for index, (interval, pools) in enumerate(zip(problem.series, solution.intervals, strict=True)):
        key = (interval.demand_tokens_per_s, pools)
        if key not in done:
            stated = Stated(
                pools.attention_instances,
                pools.expert_instances,
                pools.device,
                pools.batch,
                pools.tpot_s,
                f"intervals.{index}",
            )
            again = check_pools(problem, known, interval.demand_tokens_per_s, stated, found)
            done[key] = None if again is None else again.objective
        objective = done[key]
        if objective is not None:
            hourly.append(objective)
    return hourly if len(hourly) == len(problem.series) else None


def _check_sums(problem: SeriesProblem, solution: SeriesSolution, hourly: list[float], found: Findings) -> None:
    hours = [interval.duration_s / HOUR_S for interval in problem.series]
    totals = [pools.attention_instances + pools.expert_instances for pools in solution.intervals]
    gpu_hours, objective = _over_time(totals, hours), _over_time(hourly, hours)
    _compare("gpu_hours_mismatch", solution.gpu_hours, gpu_hours, "gpu_hours", found)
    _compare("objective_mismatch", solution.objective, objective, "objective", found)
    demands = [interval.demand_tokens_per_s for interval in problem.series]
    at_peak = totals[max(range(len(demands)), key=lambda index: demands[index])] * math.fsum(hours)
    _compare("gpu_hours_mismatch", solution.gpu_hours_peak, at_peak, "gpu_hours_peak", found)
    one_pool = _one_pool_hours(problem, demands, hours)
    stated = solution.gpu_hours_monolithic
    if (stated is None) != (one_pool is None):
        message = f"stated {stated!r}, recomputed {one_pool!r}"
        found.add("gpu_hours_mismatch", message, "gpu_hours_monolithic")
    elif stated is not None and one_pool is not None:
        _compare("gpu_hours_mismatch", stated, one_pool, "gpu_hours_monolithic", found)


def _one_pool_hours(problem: SeriesProblem, demands: list[float], hours: list[float]) -> float | None:
    gpus = {demand: fewest_gpus(problem, demand) for demand in sorted(set(demands))}
    each = [gpus[demand] for demand in demands]
    if any(number is None for number in each):
        return None
    return _over_time([number or 0 for number in each], hours)


def _over_time(hourly: Sequence[float], hours: Sequence[float]) -> float:
    return math.fsum(amount * length for amount, length in zip(hourly, hours, strict=True))


def _compare(code: str, stated: float, recomputed: float, where: str, found: Findings) -> None:
    if not agree(stated, recomputed):
        found.add(code, f"stated {stated!r}, recomputed {recomputed!r}", where)


def _check_cheapest(
    problem: SeriesProblem, known: dict[str | None, Offer], hourly: list[float], found: Findings
) -> None:
    """No interval has cheaper pools that carry its demand.

    Pools that do not carry a demand carry none above it: the smallest fixed point rises with demand, and TPOT and
    memory with it. So, demands ascending, only pools that cost more than all those ruled out are still to be tried.
    As many are named as are listed.
    """
    stated: dict[float, tuple[float, int]] = {}
    for index, (interval, objective) in enumerate(zip(problem.series, hourly, strict=True)):
        demand = interval.demand_tokens_per_s
        if demand not in stated or objective > stated[demand][0]:
            stated[demand] = objective, index
    ruled_out, refuted = 0.0, 0
    for demand in sorted(stated):
        if refuted == MAX_LISTED:
            return
        objective, index = stated[demand]
        below = objective * (1 - TOLERANCE)
        if below <= ruled_out:
            continue
        better = next(carriers(known.values(), demand, ruled_out, below), None)
        if better is None:
            ruled_out = below
            continue
        message = (
            f"{better.n_a} attention and {better.n_e} expert instances carry the demand too, at "
            f"{better.objective:.10g}, not {objective:.10g}"
        )
        found.add("not_minimal", message, f"intervals.{index}")
        refuted += 1
