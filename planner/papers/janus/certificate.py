"""The lower bounds behind a plan's certificate (page, "Algorithm": bound)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from planner.paper import Bound
from planner.papers.janus import model
from planner.papers.janus.enumeration import MOST_PAIRS, enumerated, pairs_to_look_at
from planner.papers.janus.model import Option
from planner.papers.janus.options import options
from planner.papers.janus.placing import placement_bounds
from planner.papers.janus.problem import JanusProblem, PlacementProblem, ScalingProblem, SeriesProblem
from planner.papers.janus.search import Choice, cheapest
from planner.papers.janus.sizing import over_time
from planner.papers.janus.solution import JanusSolution, PlacementSolution

SEARCHED = "cheapest pools of each number of experts"
LOOKED_AT = "all cheaper pairs looked at"
SIMPLE = "slots, and memory at the least TPOT"
SLACK = 1e-6
"""How much less than computed is claimed, relatively, so that rounding and tolerances lose nothing."""
CERTIFY_PAIRS = 2**26
"""Pairs times demands that a certificate looks at each."""


def bounds(problem: JanusProblem, solution: JanusSolution, certify: bool, effort: float) -> tuple[Bound, ...]:
    """What no pools are below: by slots and memory, and of the whole search, attained.

    ``certify`` looks at every cheaper pair for itself, where they are not too many. Without a solver.
    """
    if isinstance(problem, PlacementProblem) and isinstance(solution, PlacementSolution):
        return placement_bounds(problem, solution, certify, effort)
    if not isinstance(problem, ScalingProblem | SeriesProblem):
        return ()
    choices, demands = options(problem), _demands(problem)
    fastest = [(option, _least_tpot_s(option)) for option in choices]
    simple = _of_all(problem, {demand: min(_at_least(*each, demand) for each in fastest) for demand in demands})
    found = [Bound(simple, "combinatorial", SIMPLE)]
    attained = _reached(problem, demands, lambda: cheapest(choices, demands))
    if attained is not None:
        found.append(Bound(attained, "exhaustive", SEARCHED, attained=True))
    pairs = pairs_to_look_at(choices) if certify else 0
    if certify and pairs <= MOST_PAIRS and pairs * len(demands) <= CERTIFY_PAIRS:
        attained = _reached(problem, demands, lambda: [enumerated(choices, demand) for demand in demands])
        if attained is not None:
            found.append(Bound(attained, "exhaustive", LOOKED_AT, attained=True))
    return tuple(found)


def _demands(problem: ScalingProblem | SeriesProblem) -> list[float]:
    """Each demand once, ascending."""
    if isinstance(problem, ScalingProblem):
        return [problem.demand_tokens_per_s]
    return sorted({interval.demand_tokens_per_s for interval in problem.series})


def _reached(
    problem: ScalingProblem | SeriesProblem, demands: Sequence[float], search: Callable[[], list[list[Choice]]]
) -> float | None:
    """The objective by a search; None where some demand has no pools."""
    found = search()
    if not all(found):
        return None
    return _of_all(problem, {demand: best[0].objective for demand, best in zip(demands, found, strict=True)})


def _of_all(problem: ScalingProblem | SeriesProblem, hourly: Mapping[float, float]) -> float:
    if isinstance(problem, ScalingProblem):
        return hourly[problem.demand_tokens_per_s]
    return over_time(problem.series, (hourly[interval.demand_tokens_per_s] for interval in problem.series))


def _at_least(option: Option, least_s: float, demand: float) -> float:
    """Slots for every expert, and attention instances for the requests that the least TPOT keeps in flight."""
    n_a = 1.0
    memory = option.memory
    if memory is not None and option.request_bytes > 0:
        room = memory.capacity_bytes * (1 + SLACK) - option.fixed_bytes
        requests = demand * least_s
        if room > 0:
            n_a = max(1.0, float(math.ceil(requests * option.request_bytes / room * (1 - SLACK) - SLACK)))
    n_e = option.fewest_experts
    if option.rules == "vllm_afd":
        n_a = max(n_a, float(n_e))
    return float(option.objective(n_a, n_e))


def _least_tpot_s(option: Option) -> float:
    """No pools make a token faster: one request's experts on the best row, the shortest way, nothing sent."""
    one = model.pairs_of(option, 1, 1)
    nothing_sent_s = min(float(one.direct[0, 0]), float(one.relayed[0, 0]))
    experts_s = option.moe.per_expert_s * float(option.rows[:, 0].min()) + option.moe.base_s
    return option.num_layers * (option.attention.floor_s + experts_s + nothing_sent_s)
