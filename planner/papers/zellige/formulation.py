"""The joint reference (page 4.5): the exact compact form (8)-(9), solved for least T, then for least K."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from planner.errors import LimitError
from planner.papers.zellige.bounds import quick_bounds
from planner.papers.zellige.compact_form import compact_form
from planner.papers.zellige.count_bound import count_bound
from planner.papers.zellige.infeasibility import packing_error
from planner.papers.zellige.instance import Instance, Piece, Placement, loads, num_splits
from planner.papers.zellige.integers import Grid, grid_of
from planner.papers.zellige.symmetry import in_descending_order
from solvers import cpsat
from solvers.report import Limits, Report, Status

MAKESPAN_BUDGET = 20.0
SPLITS_BUDGET = 5.0
"""Deterministic time of (a) and of (b) at effort 1."""

PROVED = 1e-9
"""Relative distance from the bound that counts as a proof, as in every certificate."""

_FITS = 1e-9


def reference(
    instance: Instance, limits: Limits, hint: Placement | None = None, epsilon: float = 0.0
) -> tuple[Placement, Report]:
    """(a) min T, then (b) min K with L_r <= (1+ε)·T*. Never worse than the hint.

    Raises InfeasibleError (memory_packing), and LimitError when a budget ends without any placement, or the wall-clock
    limit fires in (a) and ``keep_best`` is off.
    """
    lower_s = max(bound.value for bound in quick_bounds(instance))
    if math.isinf(lower_s):
        raise packing_error(instance, limits)
    longest_s = sum(kind.count * max(mode.time_s for mode in kind.modes) for kind in instance.kinds)
    upper_s = makespan_s(instance, hint) if hint else longest_s
    lower_s = max(lower_s, count_bound(instance, upper_s, limits.effort).value)
    grid = grid_of(instance, lower_s, upper_s)
    bound_s, found = _least_makespan(instance, grid, (lower_s, upper_s), hint, limits)
    best = _quicker(instance, hint, found)
    if best is None:
        raise LimitError("the budget of the reference ended without a placement", code="reference_budget")
    best = _fewer_splits(instance, grid, best, epsilon, limits)
    objective_s = makespan_s(instance, best)
    # The bound is a correctly rounded sum like the objective; an ulp above it is noise.
    bound_s = min(bound_s, objective_s)
    status = Status.OPTIMAL if objective_s <= bound_s * (1 + PROVED) else Status.FEASIBLE
    return best, Report(status, cpsat.ENGINE, "reference", cpsat.engine_version(), objective_s, bound_s, "solver")


def anchors(
    instance: Instance, kinds: Sequence[int], limits: Limits, epsilon: float
) -> tuple[dict[Piece, int], Report]:
    """Stage 1 (page 4.2): the same model over some kinds; its bound holds for the whole problem too."""
    part = replace(instance, kinds=tuple(instance.kinds[i] for i in kinds))
    placement, report = reference(part, limits, None, epsilon)
    return {piece._replace(kind=kinds[piece.kind]): count for piece, count in placement.items()}, report


def makespan_s(instance: Instance, placement: Placement) -> float:
    """T in seconds, from the users' own prices."""
    return max(loads(instance, placement)[0])


def _least_makespan(
    instance: Instance, grid: Grid, between_s: tuple[float, float], hint: Placement | None, limits: Limits
) -> tuple[float, Placement | None]:
    """Problem (a): a lower bound [s] and the best placement found."""
    lower_s, upper_s = between_s
    error_s = grid.rounding_s(instance.num_sequences, upper_s)
    highest = math.ceil((upper_s + error_s) / grid.time_step_s)
    lowest = max(0, math.floor(lower_s / grid.time_step_s - instance.num_sequences))
    if grid.exact_time:
        lowest = math.ceil(lower_s / grid.time_step_s * (1 - 1e-12))
    form = compact_form(instance, grid, (lowest, highest))
    if hint:
        form.hint(in_descending_order(instance, hint))
    form.model.minimize(form.T)
    answer = cpsat.run(form.model, list(form.u.values()), limits, MAKESPAN_BUDGET)
    if answer.timed_out and not limits.keep_best:
        raise LimitError(f"the time limit of {limits.time_limit_s} s ended the reference", code="time_limit")
    if answer.status is Status.INFEASIBLE and not hint and not grid.tight:
        raise packing_error(instance, limits)
    bound_s = max(lower_s, math.ceil(answer.bound - 0.5) * grid.time_step_s - error_s)
    found: Placement | None = form.placement(answer.values) if answer.values else None
    if found and not grid.tight and not _fits(instance, found):
        # Rounded-down memory let too much in. The bound stands; the placement comes from memory rounded up.
        strict = grid_of(instance, lower_s, upper_s, tight=True)
        found = _least_makespan(instance, strict, between_s, hint, limits)[1]
    return bound_s, found


def _fewer_splits(instance: Instance, grid: Grid, best: Placement, epsilon: float, limits: Limits) -> Placement:
    """Problem (b): fewer split sequences within (1+ε) of a makespan, else the placement given."""
    if not num_splits(instance, best):
        return best
    limit_s = makespan_s(instance, best) * (1 + epsilon)
    highest = math.floor(limit_s / grid.time_step_s * (1 + 1e-12))
    form = compact_form(instance, grid, (0, highest + (0 if grid.exact_time else 1)))
    form.hint(in_descending_order(instance, best))
    form.model.minimize(form.K)
    answer = cpsat.run(form.model, list(form.u.values()), limits, SPLITS_BUDGET)
    if answer.values is None:
        return best
    found = form.placement(answer.values)
    within = makespan_s(instance, found) <= limit_s + grid.rounding_s(instance.num_sequences, limit_s)
    fewer = num_splits(instance, found) < num_splits(instance, best)
    return found if fewer and within and _fits(instance, found) else best


def _quicker(instance: Instance, first: Placement | None, second: Placement | None) -> Placement | None:
    """The placement of the smaller makespan, then of fewer splits; the first in a tie."""

    def quality(placement: Placement) -> tuple[float, int]:
        return makespan_s(instance, placement), num_splits(instance, placement)

    return min((placement for placement in (first, second) if placement is not None), key=quality, default=None)


def _fits(instance: Instance, placement: Placement) -> bool:
    return max(loads(instance, placement)[1]) <= instance.memory_cap_bytes * (1 + _FITS)
