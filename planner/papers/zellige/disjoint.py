"""The best plan on disjoint groups (page section 5; FlexSP): the compact form, with every rank in at most one set.

One model with a binary for every rank set chooses the partition and the assignment together.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from planner.papers.zellige.bounds import quick_bounds
from planner.papers.zellige.instance import Instance, Placement, Ranks, loads
from planner.papers.zellige.knapformer import knapformer
from planner.papers.zellige.longest_first import homogeneous_d, pure_cp, pure_dp
from solvers.report import Limits, Status

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

BUDGET = 1.0
"""Deterministic time at effort 1."""

MAX_COUNTS = 20_000
"""Above so many (kind, mode, rank set) counts the simple disjoint rules stand for the best."""


def best_disjoint(instance: Instance, limits: Limits) -> tuple[float | None, Placement | None, str, bool]:
    """Makespan [s] and placement, a note on its groups, and whether it is proved best (or proved not to exist)."""
    start = _best_of_rules(instance)
    counts = sum(len(instance.blocks[mode.config]) for kind in instance.kinds for mode in kind.modes)
    lower_s = max(bound.value for bound in quick_bounds(instance))
    if math.isinf(lower_s):
        return None, None, "no partition has the memory", True
    if counts > MAX_COUNTS:
        found, proved = start, False
    else:
        found, proved = _search(instance, start, lower_s, limits)
    if found is None:
        return None, None, "no partition has the memory" if proved else "none found within the budget", proved
    return max(loads(instance, found)[0]), found, f"groups: {describe(found)}", proved


def describe(placement: Placement) -> str:
    """The groups in use by size, ``2 x 1, 1 x 4`` for two single ranks and a group of four."""
    sizes = Counter(len(ranks) for ranks in {piece.ranks for piece in placement})
    return ", ".join(f"{number} x {size}" for size, number in sorted(sizes.items()))


def is_disjoint(placement: Placement) -> bool:
    """Whether any two rank sets in use are equal or share no rank."""
    sets = {piece.ranks for piece in placement}
    return sum(map(len, sets)) == len(set().union(*sets))


def _best_of_rules(instance: Instance) -> Placement | None:
    candidates = [pure_dp(instance), pure_cp(instance), homogeneous_d(instance), knapformer(instance)]
    usable = [
        (candidate.makespan_s, index, candidate.placement)
        for index, candidate in enumerate(candidates)
        if candidate.feasible and candidate.placement and candidate.makespan_s is not None
        if is_disjoint(candidate.placement)
    ]
    return min(usable)[2] if usable else None


def _search(
    instance: Instance, start: Placement | None, lower_s: float, limits: Limits
) -> tuple[Placement | None, bool]:
    from planner.papers.zellige.compact_form import compact_form
    from planner.papers.zellige.integers import grid_of
    from planner.papers.zellige.symmetry import in_descending_order
    from solvers import cpsat

    if start:
        upper_s = max(loads(instance, start)[0])
    else:
        upper_s = sum(kind.count * max(mode.time_s for mode in kind.modes) for kind in instance.kinds)
    grid = grid_of(instance, lower_s, upper_s)
    error_s = grid.rounding_s(instance.num_sequences, upper_s)
    form = compact_form(instance, grid, (0, math.ceil((upper_s + error_s) / grid.time_step_s)))
    is_open: dict[Ranks, cp_model.IntVar] = {}
    on_rank: list[list[cp_model.IntVar]] = [[] for _ in range(instance.num_ranks)]
    for piece, count in form.u.items():
        if piece.ranks not in is_open:
            is_open[piece.ranks] = form.model.new_bool_var(f"open{piece.ranks}")
            for rank in piece.ranks:
                on_rank[rank].append(is_open[piece.ranks])
        form.model.add(count == 0).only_enforce_if(~is_open[piece.ranks])
    for sets in on_rank:
        form.model.add_at_most_one(sets)
    if start:
        start = in_descending_order(instance, start)
        form.hint(start)
        used = {piece.ranks for piece in start}
        for ranks, opened in is_open.items():
            form.model.add_hint(opened, ranks in used)
    form.model.minimize(form.T)
    answer = cpsat.run(form.model, list(form.u.values()), limits, BUDGET)
    if answer.values is None:
        return start, answer.status is Status.INFEASIBLE and start is None
    found = form.placement(answer.values)
    if start and max(loads(instance, start)[0]) <= max(loads(instance, found)[0]):
        found = dict(start)
    return found, answer.status is Status.OPTIMAL
