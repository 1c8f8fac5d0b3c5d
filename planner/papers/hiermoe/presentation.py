"""What people and programs read off a HierMoE plan: where the time goes, what moves, how even the ranks are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from planner.attribution import Sources
from planner.derivation.shares import by_source
from planner.json_text import Json
from planner.paper import MemoryRow
from planner.papers.hiermoe.cautions import load_ratios
from planner.papers.hiermoe.exchange.time import best_dimension
from planner.papers.hiermoe.instance import compile_case
from planner.papers.hiermoe.problem import HiermoeProblem, LinkCost
from planner.papers.hiermoe.solution import HiermoeSolution, HopUse, LayerPlacement
from planner.units import in_bytes, seconds


def shares(problem: HiermoeProblem, solution: HiermoeSolution) -> dict[str, float]:
    """Fraction of the objective's seconds by the source of the coefficient behind them."""
    return by_source(_parts(problem, solution))


def _parts(problem: HiermoeProblem, solution: HiermoeSolution) -> Iterator[tuple[float, Sources | None]]:
    """Seconds of every hop, and of every layer's busiest rank."""
    for layer in solution.layers:
        for hop in layer.hops:
            yield problem.objective.a2a_multiplier * hop.time_s, link_of(problem, hop).sources
        yield compute_s(problem, layer), problem.costs.compute_sources


def link_of(problem: HiermoeProblem, hop: HopUse) -> LinkCost:
    """The link that prices a hop."""
    links = problem.costs.links
    if hop.kind == "flat":
        return links.flat
    return (links.inter if hop.kind == "inter" else links.intra)[hop.level - 1]


def compute_s(problem: HiermoeProblem, layer: LayerPlacement) -> float:
    """The busiest rank's part of a layer's objective (eq. 5) [s]."""
    return problem.objective.compute_multiplier * problem.costs.compute_s_per_assignment * layer.peak_assignments


def memory(problem: HiermoeProblem, solution: HiermoeSolution) -> list[MemoryRow]:
    """Expert weights of all layers on a GPU, alike on all; none where the problem does not say both amounts."""
    del solution
    each, capacity = problem.costs.expert_bytes, problem.topology.expert_memory_bytes_per_gpu
    if each is None or capacity is None:
        return []
    experts = problem.slots // problem.topology.gpus * len(problem.layers)
    return [MemoryRow("each GPU", "experts", experts * each, float(capacity))]


def summary(problem: HiermoeProblem, solution: HiermoeSolution) -> list[str]:
    """Lines about the placement."""
    layers = solution.layers
    ratios = load_ratios(problem, solution)
    dimensions = Counter(layer.dimension for layer in layers)
    used = ", ".join(f"{_dimension(d, problem)} in {_many(n, 'layer')}" for d, n in sorted(dimensions.items()))
    redundant = f" + {_many(problem.redundant_slots, 'redundant slot')}" if problem.redundant_slots else ""
    moved = sum(layer.moved_experts for layer in layers)
    lines = [
        f"{_many(len(layers), 'layer')} of {problem.num_experts} experts, {problem.top_k} a token{redundant}, on "
        f"{_many(problem.topology.gpus, 'GPU')}",
        f"exchange: {used}",
        *_before(problem, solution),
        f"busiest rank over mean load: {max(ratios.values()):.3f} at worst",
    ]
    if moved:
        moved_bytes = [layer.moved_bytes for layer in layers if layer.moved_bytes is not None]
        carried = f", {in_bytes(sum(moved_bytes))}" if moved_bytes else ""
        lines.append(f"moves {_many(moved, 'expert')}{carried} from the current placement")
    return lines


def _before(problem: HiermoeProblem, solution: HiermoeSolution) -> list[str]:
    """How the placement compares with the current one, both at their best dimension."""
    if not any(layer.moved_experts for layer in solution.layers):
        return ["the current placement stays"]
    if not solution.objective_s:
        return []
    case = compile_case(problem)
    now_s = sum(best_dimension(case, layer, layer.current)[1] for layer in case.layers)
    return [f"the current placement takes {seconds(now_s)}, {now_s / solution.objective_s:.3f} times as long"]


def _dimension(d: int, problem: HiermoeProblem) -> str:
    if d == 1:
        return "flat (d=1)"
    groups = "/".join(str(groups) for groups in problem.topology.level_groups[1:d])
    return f"d={d} over {groups} groups"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def decisions(solution: HiermoeSolution) -> dict[str, Json]:
    """Per layer the dimension, and which ranks hold each expert; its slot within a rank changes nothing."""
    return {
        "layers": {
            str(layer.layer_id): {"dimension": layer.dimension, "experts": _homes(layer)} for layer in solution.layers
        }
    }


def _homes(layer: LayerPlacement) -> dict[str, Json]:
    """Where each expert sits, in words: ids are no quantities. By slot where the hops do not tell how many ranks."""
    ranks, slots = math.prod(hop.participants for hop in layer.hops), len(layer.physical_to_logical)
    told = bool(layer.hops) and slots % ranks == 0
    noun, size = ("rank", slots // ranks) if told else ("slot", 1)
    held: dict[int, list[int]] = {}
    for slot, expert in enumerate(layer.physical_to_logical):
        held.setdefault(expert, []).append(slot // size)
    return {
        str(expert): f"{noun}{'s' if len(homes) > 1 else ''} {', '.join(map(str, homes))}"
        for expert, homes in sorted(held.items())
    }


def metrics(solution: HiermoeSolution) -> dict[str, Json]:
    """The recomputable figures."""
    return {
        "objective_s": solution.objective_s,
        "moved_experts": sum(layer.moved_experts for layer in solution.layers),
        "layers": {
            str(layer.layer_id): {
                "objective_s": layer.objective_s,
                "a2a_s": layer.a2a_s,
                "peak_assignments": layer.peak_assignments,
                "moved_experts": layer.moved_experts,
                "moved_bytes": layer.moved_bytes,
            }
            for layer in solution.layers
        },
    }
