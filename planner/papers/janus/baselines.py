"""What simpler rules give on the same problem (page, "Baselines"): same costs, memory, limits and launcher rules.

Each that finds pools is a solution of the problem, though one that does not claim to be the cheapest, and is checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from planner.errors import LimitError
from planner.paper import Baseline
from planner.papers.janus.model import Option
from planner.papers.janus.one_pool import OnePool, smallest_pool
from planner.papers.janus.options import options
from planner.papers.janus.placement_baselines import placement_baselines
from planner.papers.janus.problem import Device, JanusProblem, PlacementProblem, ScalingProblem, SeriesProblem
from planner.papers.janus.rules import Ratio, at, balanced, in_ratio
from planner.papers.janus.search import Choice, cheapest
from planner.papers.janus.shown.words import many
from planner.papers.janus.sizing import over_time, solve_scaling, solve_series
from planner.papers.janus.solution import JanusSolution, ScalingSolution, SeriesSolution
from planner.units import seconds
from solvers.report import Limits

Found = Baseline[JanusSolution]
Sizing = ScalingProblem | SeriesProblem
Rule = Callable[[Sequence[Option], Sequence[float]], list[Choice | None]]
"""Of options and demands, ascending: for each demand the pools that a rule takes, None where they do not carry it."""


def baselines(problem: JanusProblem, limits: Limits) -> list[Found]:
    """All baselines that the problem describes, in the order of the page."""
    if isinstance(problem, PlacementProblem):
        return placement_baselines(problem, limits)
    if not isinstance(problem, ScalingProblem | SeriesProblem):
        raise TypeError(f"no task of Janus: {type(problem).__name__}")
    # Where experts sit is no part of these rules.
    bare = problem.model_copy(update={"layers": ()})
    found = [_one_pool(bare)] if problem.baselines.monolithic is not None else []
    found.append(_ruled(bare, "megascale", balanced, "no pools that balance attention and experts carry the demand"))
    if (told := problem.baselines.fixed_ratio) is not None:
        # 3:3 is 1:1.
        common = math.gcd(*told)
        ratio = Ratio(told[0] // common, told[1] // common)
        named = f"{ratio.attention}:{ratio.experts}"
        found.append(
            _ruled(
                bare,
                "fixed_ratio",
                lambda choices, demands: in_ratio(choices, demands, ratio),
                f"no pools of {named} carry the demand",
            )
        )
    if isinstance(bare, SeriesProblem):
        found.append(_ruled(bare, "peak", _at_peak, "no pools carry the peak"))
    return found


def _one_pool(problem: Sizing) -> Found:
    """It has no pools, so there is no solution of the problem to check."""
    demands = _demands(problem)
    pools = {demand: smallest_pool(problem, demand) for demand in sorted(set(demands))}
    refused = [demand for demand, pool in pools.items() if pool is None]
    if refused:
        most = max(problem.baselines.monolithic.allowed_gpus) if problem.baselines.monolithic else 0
        message = f"none of the allowed numbers, up to {most} GPUs, carries {refused[0]:.9g} tokens/s"
        return Baseline("monolithic", None, message, feasible=False)
    used = [pool for demand in demands if (pool := pools[demand]) is not None]
    if isinstance(problem, ScalingProblem):
        amount, note = float(used[0].gpus), f"{_gpus(used[0].gpus)} in one pool, TPOT {seconds(used[0].tpot_s)}"
    else:
        amount = over_time(problem.series, (pool.gpus for pool in used))
        note = f"{_range(used)} in one pool"
    price = _price(problem)
    if price is None:
        return Baseline("monolithic", None, f"{note}: two prices, and no price of a GPU that does both", outside=True)
    return Baseline("monolithic", amount * price, note, outside=True)


def _price(problem: Sizing) -> float | None:
    """Of a GPU: 1 where GPUs are the objective, None where the sides have two prices or each device its own.

    The only device of a list has that of the baseline if it costs the seconds of the problem itself.
    """
    prices, only = problem.prices, problem.devices[0] if len(problem.devices) == 1 else None
    if only is not None and only.prices is not None and _is_the_problems_own(problem, only):
        prices = only.prices
    if prices is None:
        return None if any(device.prices for device in problem.devices) else 1.0
    return prices.attention_per_hour if prices.attention_per_hour == prices.expert_per_hour else None


def _is_the_problems_own(problem: Sizing, device: Device) -> bool:
    return all(
        getattr(device, name) in (None, getattr(problem, name)) for name in ("attention", "moe", "comm", "memory")
    )


def _range(pools: Sequence[OnePool]) -> str:
    fewest, most = min(pool.gpus for pool in pools), max(pool.gpus for pool in pools)
    return _gpus(most) if fewest == most else f"{fewest} to {_gpus(most)}"


def _gpus(number: int) -> str:
    return f"{number} GPU" if number == 1 else f"{number} GPUs"


def _ruled(problem: Sizing, name: str, rule: Rule, refused: str) -> Found:
    choices, demands = options(problem), sorted(set(_demands(problem)))
    try:
        found = rule(choices, demands)
    except LimitError as error:
        return Baseline(name, None, f"not tried: {error.message}", feasible=False)
    taken = {demand: choice for demand, choice in zip(demands, found, strict=True) if choice is not None}
    if len(taken) < len(demands):
        first = next(demand for demand in demands if demand not in taken)
        which = "" if isinstance(problem, ScalingProblem) else f", {first:.9g} tokens/s"
        return Baseline(name, None, f"{refused}{which}", feasible=False)

    def as_ruled(_options: Sequence[Option], wanted: Sequence[float], _count: int = 1) -> list[list[Choice]]:
        return [[taken[demand]] for demand in wanted]

    solution: ScalingSolution | SeriesSolution
    if isinstance(problem, ScalingProblem):
        solution, note = solve_scaling(problem, as_ruled), _pools(taken[demands[0]])
    else:
        solution, note = solve_series(problem, as_ruled), f"{_pools(taken[demands[-1]])} at the peak"
    return Baseline(name, solution.objective, note, solution.model_copy(update={"cheapest": False}))


def _pools(choice: Choice) -> str:
    device = "" if choice.option.device is None else f" of {choice.option.device}"
    return f"{choice.n_a} attention and {many(choice.n_e, 'expert instance')}{device}, TPOT {seconds(choice.tpot_s)}"


def _at_peak(choices: Sequence[Option], demands: Sequence[float]) -> list[Choice | None]:
    """The pools of the largest demand, which is the last, for all of them."""
    found = cheapest(choices, demands[-1:])[0]
    if not found:
        return [None for _ in demands]
    peak = found[0]
    return at(peak.option, peak.n_a, peak.n_e, demands)


def _demands(problem: Sizing) -> list[float]:
    if isinstance(problem, ScalingProblem):
        return [problem.demand_tokens_per_s]
    return [interval.demand_tokens_per_s for interval in problem.series]
