"""Ties (page, "How it is solved and proved"): of equal objectives the decision that asks least of the hardware."""

from __future__ import annotations

from collections.abc import Sequence

from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.space import TIE, Decision


def preferred(problem: FindepProblem, decisions: Sequence[Decision]) -> Decision:
    """The best objective; of equal ones fewer GPUs, then smaller ag, r1 m_a, r1, r2, then AASS."""
    best = max(decision.objective for decision in decisions)

    def burden(decision: Decision) -> tuple[int, int, int, int, int, str]:
        split, load = problem.splits[decision.split], decision.r1 * decision.m_a
        return split.gpus, split.attention_gpus, load, decision.r1, decision.r2, decision.order

    return min((decision for decision in decisions if decision.objective >= best * (1 - TIE)), key=burden)
