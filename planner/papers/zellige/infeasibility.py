"""Why a problem has no plan, in the page's order (4.7), and the least memory cap with which it has one."""

from __future__ import annotations

import math

from planner.errors import InfeasibleError, Relaxation
from planner.papers.zellige.bounds import quick_bounds
from planner.papers.zellige.instance import Instance, Placement, loads
from planner.papers.zellige.problem import ZelligeProblem
from solvers.report import Limits

FIELD = "cluster.memory_cap_bytes"

_WHOLE_BYTES = 1e6
"""A cap above this is said in whole bytes."""
_ROUNDING = 1e-9
"""The check's tolerance: a cap exceeded by less holds."""


def diagnose(instance: Instance, limits: Limits | None = None) -> None:
    """Raise InfeasibleError where no search is needed to see it; only the relaxation's value may need a solver.

    Codes no_rank_set, memory_single_sequence, memory_total, in this order.
    """
    problem = instance.problem
    usable = {config.id for config, sets in zip(problem.configs, instance.blocks, strict=True) if sets}
    for group in problem.groups:
        if not any(option.config in usable for option in group.options):
            raise InfeasibleError(
                f'sequence "{min(group.sequence_ids)}" has no option with a legal rank set: none of its degrees fits '
                f"{problem.cluster.num_ranks} ranks in nodes of {problem.cluster.gpus_per_node} "
                f"under policy {problem.rank_sets.policy}",
                code="no_rank_set",
                where=f"groups.{group.id}.options",
            )
    cap = problem.cluster.memory_cap_bytes
    needs = {
        group.id: min(option.memory_bytes for option in group.options if option.config in usable)
        for group in problem.groups
    }
    for group in problem.groups:
        if needs[group.id] > cap:
            message = f'sequence "{min(group.sequence_ids)}" exceeds the memory of a rank in every option'
            raise _memory_error(problem, limits, message, "memory_single_sequence", needs[group.id], cap)
    total = math.fsum(kind.count * min(m.degree * m.memory_bytes for m in kind.modes) for kind in instance.kinds)
    available = instance.num_ranks * cap
    if total > available * (1 + _ROUNDING):
        message = "the sequences need more memory than all ranks have together"
        raise _memory_error(problem, limits, message, "memory_total", total, available)


def prove_packing(instance: Instance, limits: Limits) -> tuple[Placement, float]:
    """A feasible placement and its makespan [s], for when every rule failed for memory (page 4.7, step iv).

    Raises InfeasibleError (memory_packing) with proof, LimitError when the budget ends before either.
    """
    from planner.papers.zellige.packing import find_packing

    placement = None if is_refuted_by_bounds(instance) else find_packing(instance, limits)
    if placement is None:
        raise packing_error(instance, limits)
    return placement, max(loads(instance, placement)[0])


def is_refuted_by_bounds(instance: Instance) -> bool:
    """Whether a bound alone proves that memory does not suffice (two pieces of more than half a rank on one, say)."""
    return any(math.isinf(bound.value) for bound in quick_bounds(instance))


def packing_error(instance: Instance, limits: Limits | None) -> InfeasibleError:
    """Proved: memory suffices in total, yet no placement keeps every rank within its cap."""
    message = "no placement keeps every rank within its memory, although the total would fit"
    return _memory_error(
        instance.problem, limits, message, "memory_packing", None, instance.problem.cluster.memory_cap_bytes
    )


def _memory_error(
    problem: ZelligeProblem, limits: Limits | None, message: str, code: str, required: float | None, available: float
) -> InfeasibleError:
    from planner.papers.zellige.packing import least_memory_cap

    cap, proven = least_memory_cap(problem, limits or Limits())
    cap = math.ceil(cap) if cap > _WHOLE_BYTES else cap
    return InfeasibleError(
        message,
        code=code,
        where=FIELD,
        required=cap if required is None else required,
        available=available,
        unit="bytes",
        relaxation=Relaxation(FIELD, cap, proven),
    )
