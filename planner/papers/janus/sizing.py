"""From the pools that a search found to the solutions of the sizing tasks (page, "Solution")."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from planner.errors import BadInputError
from planner.papers.janus.experts.maps import expert_maps
from planner.papers.janus.infeasibility import diagnose
from planner.papers.janus.model import Option
from planner.papers.janus.one_pool import smallest_pool
from planner.papers.janus.options import operating_point, options
from planner.papers.janus.problem import Interval, ScalingProblem, SeriesProblem, SizingProblem
from planner.papers.janus.search import Choice, cheapest
from planner.papers.janus.series_failure import series_error
from planner.papers.janus.solution import (
    Alternative,
    ExpertMap,
    IntervalPools,
    LayerTimes,
    ScalingSolution,
    SeriesSolution,
)
from solvers.report import Progress

ALTERNATIVES = 5
"""Pools listed beside those of the plan."""
MOST_CELLS = 2**24
"""Distinct demands times expert instances of a series, over all devices: what bounds the time of a search."""
TOLD = 4096
"""Demands between two words about progress."""
HOUR_S = 3600.0

Search = Callable[[Sequence[Option], Sequence[float], int], list[list[Choice]]]
"""Of options, demands and a count: for each demand so many pools that carry it, the best first."""


def _silent(_done: float, _what: str) -> None:
    """Progress that nobody looks at."""


def solve_scaling(problem: ScalingProblem, search: Search = cheapest, tell: Progress = _silent) -> ScalingSolution:
    """The cheapest pools, with alternatives. Raises InfeasibleError, and what `options` does."""
    choices = search(options(problem), [problem.demand_tokens_per_s], 1 + ALTERNATIVES)[0]
    if not choices:
        raise diagnose(problem, problem.demand_tokens_per_s)
    best = choices[0]
    point = operating_point(best.option, best.n_a, best.n_e, problem.demand_tokens_per_s)
    if point is None:
        raise AssertionError("pools that were found have an operating point")
    total = best.n_a + best.n_e
    return ScalingSolution(
        objective=best.objective,
        attention_instances=best.n_a,
        expert_instances=best.n_e,
        total_instances=total,
        device=best.option.device,
        batch=point.batch,
        batch_per_attention_instance=point.batch / best.n_a,
        tpot_s=point.tpot_s,
        a_max=point.a_max,
        attention_memory_bytes=point.attention_memory_bytes,
        tokens_per_s_per_gpu=problem.demand_tokens_per_s / total,
        layer=LayerTimes.model_validate(
            {
                "attention_s": point.attention_s,
                "moe_s": point.moe_s,
                "comm_s": point.comm_s,
                "comm_case": point.comm_case,
            }
        ),
        alternatives=tuple(_alternative(choice) for choice in choices),
        expert_maps=_maps(problem, [best], tell),
    )


def _alternative(choice: Choice) -> Alternative:
    return Alternative(
        attention_instances=choice.n_a,
        expert_instances=choice.n_e,
        device=choice.option.device,
        objective=choice.objective,
        batch=choice.batch,
        tpot_s=choice.tpot_s,
    )


def solve_series(problem: SeriesProblem, search: Search = cheapest, tell: Progress = _silent) -> SeriesSolution:
    """The cheapest pools of every interval. Raises InfeasibleError, of the first that fails, and as `options`."""
    if not problem.series:
        raise BadInputError("the arrivals have not been read", code="missing_field", where="arrivals")
    demands = sorted({interval.demand_tokens_per_s for interval in problem.series})
    choices = options(problem)
    _refuse_long(choices, len(demands))
    found: dict[float, Choice] = {}
    for start in range(0, len(demands), TOLD):
        tell(start / len(demands), f"{start:,} of {len(demands):,} demands")
        some = demands[start : start + TOLD]
        found |= {demand: best[0] for demand, best in zip(some, search(choices, some, 1), strict=True) if best}
    for index, interval in enumerate(problem.series):
        if interval.demand_tokens_per_s not in found:
            raise series_error(problem, index)
    pools = [found[interval.demand_tokens_per_s] for interval in problem.series]
    hours = math.fsum(interval.duration_s for interval in problem.series) / HOUR_S
    peak = found[demands[-1]]
    return SeriesSolution(
        objective=over_time(problem.series, (choice.objective for choice in pools)),
        intervals=tuple(
            IntervalPools(
                attention_instances=choice.n_a,
                expert_instances=choice.n_e,
                device=choice.option.device,
                batch=choice.batch,
                tpot_s=choice.tpot_s,
            )
            for choice in pools
        ),
        gpu_hours=over_time(problem.series, (choice.n_a + choice.n_e for choice in pools)),
        gpu_hours_monolithic=_gpu_hours_of_one_pool(problem, demands),
        gpu_hours_peak=(peak.n_a + peak.n_e) * hours,
        expert_maps=_maps(problem, found.values(), tell),
    )


def _refuse_long(choices: Sequence[Option], demands: int) -> None:
    cells = demands * sum(min(each.limits.max_expert_instances, each.limits.max_total_instances) for each in choices)
    if cells > MOST_CELLS:
        raise BadInputError(
            f"{demands:,} distinct demands times the expert instances allowed are {cells:,}, expected at most "
            f"{MOST_CELLS:,}: round the demands, or lower the limit",
            code="too_large",
            where="series",
        )


def over_time(series: Sequence[Interval], hourly: Iterable[float]) -> float:
    """What is so much an hour in each interval, over all of them."""
    spent = (amount * interval.duration_s for amount, interval in zip(hourly, series, strict=True))
    return math.fsum(spent) / HOUR_S


def _gpu_hours_of_one_pool(problem: SeriesProblem, demands: Sequence[float]) -> float | None:
    gpus: dict[float, int] = {}
    for demand in demands:
        pool = smallest_pool(problem, demand)
        if pool is None:
            return None
        gpus[demand] = pool.gpus
    return over_time(problem.series, (gpus[interval.demand_tokens_per_s] for interval in problem.series))


def _maps(problem: SizingProblem, chosen: Iterable[Choice], tell: Progress) -> tuple[ExpertMap, ...]:
    """The map of each number of expert instances, and device, that is used, ascending; none without layers."""
    if not problem.layers:
        return ()
    used = sorted({(choice.option.device or "", choice.n_e, choice.option.device) for choice in chosen})
    maps = []
    for number, (_, n_e, device) in enumerate(used):
        tell(number / len(used), f"experts on {n_e} instances")
        maps.append(expert_maps(problem, n_e, device))
    return tuple(maps)
