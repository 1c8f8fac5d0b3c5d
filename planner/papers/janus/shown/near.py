"""Pools about those of a plan: which carry the demand, and what the others miss."""

from __future__ import annotations

from planner.papers.janus.frontier import ROUNDING, longest_s
from planner.papers.janus.model import Option
from planner.papers.janus.options import operating_point
from planner.papers.janus.problem import ScalingProblem
from planner.papers.janus.shown.used import option_of
from planner.papers.janus.solution import ScalingSolution
from planner.units import seconds
from planner.view import Table

BESIDE = 2
"""Numbers of instances shown on either side of the plan's."""


def near_table(problem: ScalingProblem, solution: ScalingSolution) -> Table:
    """TPOT of the pools about the plan's on its devices: in time, or what they miss."""
    option = option_of(problem, solution.device)
    attention, experts = solution.attention_instances, solution.expert_instances
    columns = [n_e for n_e in range(experts - BESIDE, experts + BESIDE + 1) if n_e >= 1]
    rows = [n_a for n_a in range(attention - BESIDE, attention + BESIDE + 1) if n_a >= 1]
    cells = tuple(
        (
            f"{n_a}A",
            *(
                _cell(option, n_a, n_e, problem.demand_tokens_per_s)
                + (" *" if (n_a, n_e) == (attention, experts) else "")
                for n_e in columns
            ),
        )
        for n_a in rows
    )
    return Table("time of a token near the plan (*)", ("", *(f"{n_e}E" for n_e in columns)), cells)


def _cell(option: Option, n_a: int, n_e: int, demand: float) -> str:
    limits = option.limits
    if n_e < option.fewest_experts:
        return "no slots"
    if (
        n_a > limits.max_attention_instances
        or n_e > limits.max_expert_instances
        or n_a + n_e > limits.max_total_instances
    ):
        return "limits"
    if option.rules == "vllm_afd" and n_a % n_e:
        return "rules"
    point = operating_point(option, n_a, n_e, demand)
    if point is None:
        return "past grid"
    if point.tpot_s > longest_s(option):
        return f"{seconds(point.tpot_s)} late"
    held, used = option.memory, point.attention_memory_bytes
    if held is not None and used is not None and used > held.capacity_bytes * (1 + ROUNDING):
        return "no memory"
    return seconds(point.tpot_s)
