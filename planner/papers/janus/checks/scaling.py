"""The pools for one demand, looked at again."""

from __future__ import annotations

import math
from itertools import chain, pairwise

from planner.findings import Findings
from planner.papers.janus.checks.maps import check_maps
from planner.papers.janus.checks.offers import TOLERANCE, Offer, agree, offers
from planner.papers.janus.checks.pools import Recomputed, Stated, check_pools, requests_of, same_way
from planner.papers.janus.checks.ranking import Ranked, carriers
from planner.papers.janus.costs import Constant
from planner.papers.janus.problem import ScalingProblem
from planner.papers.janus.solution import ScalingSolution
from planner.printable import printable

LISTED = 6
"""The plan and five others, where so many carry the demand."""
ROOM = 1e-8
"""How much further than the stated objective the search for better pools looks, relatively."""


def check_scaling(problem: ScalingProblem, solution: ScalingSolution, found: Findings) -> None:
    """Note what is wrong with the pools, their figures and the alternatives."""
    known, demand = offers(problem), problem.demand_tokens_per_s
    stated = Stated(
        solution.attention_instances,
        solution.expert_instances,
        solution.device,
        solution.batch,
        solution.tpot_s,
        "",
    )
    again = check_pools(problem, known, demand, stated, found)
    if again is not None:
        _check_figures(solution, demand, again, found)
        pools = [(stated.n_e, stated.device)]
        check_maps(problem, solution.expert_maps, pools, known, solution.cheapest, found)
    listed = _check_alternatives(problem, solution, known, found)
    if again is None or listed is None:
        return
    if solution.cheapest:
        _check_ranking(known, demand, listed, found)


def _check_figures(solution: ScalingSolution, demand: float, again: Recomputed, found: Findings) -> None:
    n_a, total = solution.attention_instances, solution.attention_instances + solution.expert_instances
    layer, used = again.layer, again.offer.bytes_of(requests_of(solution.batch, n_a))
    _compare("total_mismatch", solution.total_instances, total, "total_instances", found)
    _compare("objective_mismatch", solution.objective, again.objective, "objective", found)
    _compare("a_max_mismatch", solution.a_max, float(layer.a_max), "a_max", found)
    each = solution.batch / n_a
    _compare(
        "batch_per_instance_mismatch",
        solution.batch_per_attention_instance,
        each,
        "batch_per_attention_instance",
        found,
    )
    _compare("throughput_mismatch", solution.tokens_per_s_per_gpu, demand / total, "tokens_per_s_per_gpu", found)
    stated_bytes, place = solution.attention_memory_bytes, "attention_memory_bytes"
    if (stated_bytes is None) != (again.offer.memory is None):
        message = f"stated {stated_bytes!r}, the problem states {'no ' if again.offer.memory is None else ''}memory"
        found.add("memory_mismatch", message, place)
    elif stated_bytes is not None:
        _compare("memory_mismatch", stated_bytes, used, place, found)
    for name in ("attention_s", "moe_s", "comm_s"):
        _compare("layer_mismatch", getattr(solution.layer, name), float(getattr(layer, name)), f"layer.{name}", found)
    case = solution.layer.comm_case
    if not (case == 0 if isinstance(again.offer.comm, Constant) else same_way(layer, case)):
        message = f"stated {case}; directly {float(layer.direct_s)!r} s, by multicast {float(layer.multicast_s)!r} s"
        found.add("layer_mismatch", message, "layer.comm_case")


def _compare(code: str, stated: float, recomputed: float, where: str, found: Findings) -> None:
    if not agree(stated, recomputed):
        found.add(code, f"stated {stated!r}, recomputed {recomputed!r}", where)


def _check_alternatives(
    problem: ScalingProblem, solution: ScalingSolution, known: dict[str | None, Offer], found: Findings
) -> list[Ranked] | None:
    """The alternatives in their order, the plan first; None where some cannot be computed."""
    listed: list[Ranked] = []
    for index, each in enumerate(solution.alternatives):
        place = f"alternatives.{index}"
        stated = Stated(each.attention_instances, each.expert_instances, each.device, each.batch, each.tpot_s, place)
        again = check_pools(problem, known, problem.demand_tokens_per_s, stated, found)
        if again is None:
            return None
        _compare("objective_mismatch", each.objective, again.objective, f"{place}.objective", found)
        listed.append(Ranked(again.objective, stated.n_a + stated.n_e, each.tpot_s, stated.n_a, stated.device))
    first = (solution.attention_instances, solution.expert_instances, solution.device)
    if not listed or listed[0].pools != first:
        found.add("alternatives_not_sorted", "expected the plan itself first", "alternatives")
        return None
    for index, (one, other) in enumerate(pairwise(listed), start=1):
        if other.certainly_before(one):
            message = f"{_named(other)} come before {_named(one)}"
            found.add("alternatives_not_sorted", message, f"alternatives.{index}")
    if len({ranked.pools for ranked in listed}) < len(listed):
        found.add("alternatives_not_sorted", "the same pools are listed twice", "alternatives")
    return listed


def _check_ranking(known: dict[str | None, Offer], demand: float, listed: list[Ranked], found: Findings) -> None:
    """Nothing comes before the plan, nor between it and the last alternative, that is not listed."""
    plan, last = listed[0], listed[-1]
    pools = {ranked.pools for ranked in listed}
    below = plan.objective * (1 - TOLERANCE)
    # Fewer than are listed usually are all that there are.
    furthest = math.inf if len(listed) < LISTED else max(plan.objective, last.objective) * (1 + ROOM)
    for ranked in chain(
        carriers(known.values(), demand, 0.0, below),
        carriers(known.values(), demand, below, furthest),
    ):
        if ranked.pools in pools:
            continue
        if ranked.certainly_before(plan):
            message = f"{_named(ranked)} carry the demand too, at {ranked.objective:.10g}, not {plan.objective:.10g}"
            found.add("not_minimal", message, "objective")
            return
        if ranked.certainly_before(last):
            message = f"{_named(ranked)} come before the last one and are not listed"
            found.add("alternatives_incomplete", message, "alternatives")
            return
        if len(listed) < LISTED:
            message = f"{len(listed)} are listed, expected {LISTED}: {_named(ranked)} carry the demand too"
            found.add("alternatives_incomplete", message, "alternatives")
            return


def _named(ranked: Ranked) -> str:
    of = "" if ranked.device is None else f" of {printable(ranked.device)[:60]}"
    return f"{ranked.n_a} attention and {ranked.n_e} expert instance{'s' if ranked.n_e != 1 else ''}{of}"
