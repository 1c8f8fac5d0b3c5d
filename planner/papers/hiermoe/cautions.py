"""What a HierMoE plan warns of, and how uneven its ranks are."""

from __future__ import annotations

from collections.abc import Sequence

from planner.paper import Warned
from planner.papers.hiermoe.instance import Case, compile_case
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.papers.hiermoe.solution import HiermoeSolution, LayerPlacement
from planner.routing.routed import Loads, Routed, Tokens

UNEVEN = 1.5
"""Busiest over mean load above which a placement that was not asked to balance is worth a warning."""


def warnings(problem: HiermoeProblem, solution: HiermoeSolution) -> list[Warned]:
    """narrow_dtype_slower, no_tokens, loads_only, uneven_ranks, not_swap_optimal."""
    found = [Warned(code, text) for code, text in (problem.costs.compute_cautions or {}).items()]
    ratios = load_ratios(problem, solution)
    empty = [layer.layer_id for layer in solution.layers if layer.peak_assignments == 0]
    if empty:
        found.append(Warned("no_tokens", f"no token passes {_named(empty)}: any placement is as good there"))
    loads = [layer.layer_id for layer in solution.layers if layer.routing_detail == "loads"]
    if loads:
        found.append(
            Warned(
                "loads_only",
                f"{_named(loads)}: loads do not say which experts are chosen together, so experts are taken to be "
                "chosen independently; record token-level routing to plan what is exchanged",
            )
        )
    uneven = [layer for layer, ratio in ratios.items() if ratio > UNEVEN]
    if uneven and problem.costs.compute_s_per_assignment == 0 and problem.search.max_load_ratio is None:
        found.append(
            Warned(
                "uneven_ranks",
                f"{_named(uneven)}: the busiest rank has up to {max(ratios.values()):.2f} times the mean load, which "
                "nothing here charges: state costs.compute_s_per_assignment, or search.max_load_ratio",
            )
        )
    left = [layer.layer_id for layer in solution.layers if _may_be_left(problem, layer)]
    if left:
        found.append(Warned("not_swap_optimal", f"{_named(left)}: a swap that helps may be left: {_why(problem)}"))
    return found


def _may_be_left(problem: HiermoeProblem, layer: LayerPlacement) -> bool:
    """Whether a layer stops short of what swaps reach for no reason that its problem asked for."""
    search = problem.search
    copies = problem.redundant_slots > 0
    budget = search.max_moved_experts is not None or search.max_moved_bytes is not None
    kept = search.min_relative_gain > 0 and layer.moved_experts == 0
    return layer.swap_optimal is False and not (copies or budget or kept)


def _why(problem: HiermoeProblem) -> str:
    ends = "the method one_swap makes one, others stop at search.max_swaps"
    return f"{ends} or search.max_load_ratio" if problem.search.max_load_ratio is not None else ends


def _named(layers: Sequence[int]) -> str:
    shown = ", ".join(map(str, layers[:6])) + (f" and {len(layers) - 6} more" if len(layers) > 6 else "")
    return f"layer{'s' if len(layers) > 1 else ''} {shown}"


def load_ratios(problem: HiermoeProblem, solution: HiermoeSolution) -> dict[int, float]:
    """Load of the busiest rank over the mean, by layer id; 1 where nothing is routed."""
    case = compile_case(problem)
    means = {layer.layer_id: assignments(case, layer.routed) / case.G for layer in case.layers}
    return {
        layer.layer_id: layer.peak_assignments / mean if (mean := means[layer.layer_id]) else 1.0
        for layer in solution.layers
    }


def assignments(case: Case, routed: Routed) -> float:
    """(token, expert) assignments of a layer over all ranks."""
    if isinstance(routed, Tokens):
        return float(routed.expert_ids.size)
    if isinstance(routed, Loads):
        return float(routed.load.sum())
    return float(routed.tokens_per_rank * case.G * case.K)
