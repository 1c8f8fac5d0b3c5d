"""What there is to see of pools for one demand: the token's time beside the SLO, alternatives, what lies near."""

from __future__ import annotations

from planner.papers.janus.options import Option, operating_point
from planner.papers.janus.presentation import is_priced, unit
from planner.papers.janus.problem import ScalingProblem
from planner.papers.janus.search import TIE
from planner.papers.janus.shown.devices import device_tables
from planner.papers.janus.shown.maps import map_tables
from planner.papers.janus.shown.memory_table import memory_tables
from planner.papers.janus.shown.near import near_table
from planner.papers.janus.shown.used import option_of
from planner.papers.janus.shown.words import many, pools
from planner.papers.janus.solution import Alternative, ScalingSolution
from planner.units import amount, in_bytes, seconds
from planner.view import Bar, Bars, Segment, Table, View

KINDS = ("attention", "experts", "exchange")


def scaling_view(problem: ScalingProblem, solution: ScalingSolution) -> View:
    """Token times of the plan and its alternatives, the pools, why each alternative loses, and pools near the plan."""
    return View(
        (
            _token_bars(problem, solution),
            _pools(problem, solution),
            _alternatives(problem, solution),
            *device_tables(problem, solution),
            near_table(problem, solution),
            *memory_tables(problem, solution),
            *map_tables(solution.expert_maps),
        )
    )


def _token_bars(problem: ScalingProblem, solution: ScalingSolution) -> Bars:
    bars = tuple(_token_bar(problem, one) for one in solution.alternatives)
    return Bars("time of an output token, | the SLO", bars, "s", KINDS, limit=problem.slo_tpot_s)


def _token_bar(problem: ScalingProblem, one: Alternative) -> Bar:
    option = option_of(problem, one.device)
    point = operating_point(option, one.attention_instances, one.expert_instances, problem.demand_tokens_per_s)
    parts = (0.0, 0.0, 0.0) if point is None else (point.attention_s, point.moe_s, point.comm_s)
    segments = tuple(
        Segment(kind, part * problem.num_layers) for kind, part in zip(KINDS, parts, strict=True) if part > 0
    )
    label = pools(one.attention_instances, one.expert_instances, one.device)
    return Bar(label, segments, seconds(one.tpot_s))


def _pools(problem: ScalingProblem, solution: ScalingSolution) -> Table:
    """Either side: instances, nodes, what one of them does."""
    option, layer = option_of(problem, solution.device), solution.layer
    held = solution.attention_memory_bytes
    memory = "unlimited" if held is None else in_bytes(held)
    rows = (
        (
            "attention",
            str(solution.attention_instances),
            _nodes(option, solution.attention_instances),
            f"{solution.batch_per_attention_instance:,.4g} requests, {memory}",
            seconds(layer.attention_s),
        ),
        (
            "experts",
            str(solution.expert_instances),
            _nodes(option, solution.expert_instances),
            f"{option.slots} slots, {solution.a_max:.4g} experts active on the busiest",
            seconds(layer.moe_s),
        ),
    )
    return Table("pools", ("side", "GPUs", "nodes", "each", "in a layer"), rows)


def _nodes(option: Option, instances: int) -> str:
    size = getattr(option.comm, "gpus_per_node", None)
    return "-" if size is None else str(-(-instances // size))


def _alternatives(problem: ScalingProblem, solution: ScalingSolution) -> Table:
    rows = tuple(
        (
            pools(one.attention_instances, one.expert_instances, one.device),
            amount(one.objective, unit(problem)),
            seconds(one.tpot_s),
            f"{one.batch:,.4g}",
            "the plan" if place == 0 else why_it_loses(problem, solution.alternatives[0], one),
        )
        for place, one in enumerate(solution.alternatives)
    )
    columns = ("pools", "cost" if is_priced(problem) else "size", "a token", "in flight", "")
    return Table("pools that carry the demand, best first", columns, rows)


def why_it_loses(problem: ScalingProblem, plan: Alternative, other: Alternative) -> str:
    """The first of the tie rule by which other pools come after the plan's, in words."""
    totals = [one.attention_instances + one.expert_instances for one in (plan, other)]
    if other.objective > plan.objective * (1 + TIE):
        more = other.objective - plan.objective
        if is_priced(problem):
            return f"costs {amount(more, unit(problem))} more"
        faster = f", though {1 - other.tpot_s / plan.tpot_s:.1%} faster" if other.tpot_s < plan.tpot_s else ""
        return f"{many(more, 'GPU')} more{faster}"
    if totals[1] > totals[0]:
        return f"same price, {many(totals[1] - totals[0], 'GPU')} more"
    if other.tpot_s > plan.tpot_s * (1 + TIE):
        same = "same price and GPUs" if is_priced(problem) else "same GPUs"
        return f"{same}, a token {other.tpot_s / plan.tpot_s - 1:.2%} slower"
    if other.attention_instances > plan.attention_instances:
        return "same GPUs and time, more attention instances, which hold state"
    return "same in all, the later device by name"
