"""Memory alone: any placement that fits, and the least cap with which one exists (page 4.7)."""

from __future__ import annotations

import math
from dataclasses import replace

from planner.errors import LimitError
from planner.papers.zellige.instance import Instance, Piece, compile_instance, loads
from planner.papers.zellige.problem import ZelligeProblem
from solvers.report import Limits, Status

BUDGET = 5.0
CAP_BUDGET = 1.0
"""Deterministic time at effort 1."""

MAX_COUNTS = 20_000
"""Above so many (kind, mode, rank set) counts the least cap is bounded, not searched."""

PROVED = 1e-9


def find_packing(instance: Instance, limits: Limits) -> dict[Piece, int] | None:
    """Some placement within memory, None when there is none. Raises LimitError when the budget ends first."""
    from planner.papers.zellige.compact_form import compact_form
    from planner.papers.zellige.integers import grid_of
    from solvers import cpsat

    timeless = _without_times(instance)
    for tight in (False, True):  # memory rounded down proves, rounded up places; mostly both are exact
        grid = grid_of(timeless, 1.0, float(instance.num_sequences), tight=tight)
        form = compact_form(timeless, grid, (0, instance.num_sequences))
        answer = cpsat.run(form.model, list(form.u.values()), limits, BUDGET)
        if answer.status is Status.INFEASIBLE and not grid.tight:
            return None
        placement = form.placement(answer.values) if answer.values else None
        if placement and max(loads(instance, placement)[1]) <= instance.memory_cap_bytes * (1 + PROVED):
            return placement
        if not placement:
            break
    raise LimitError(
        "the budget ended before a placement within memory was found or excluded; raise --effort",
        code="memory_packing",
        where="cluster.memory_cap_bytes",
    )


def least_memory_cap(problem: ZelligeProblem, limits: Limits) -> tuple[float, bool]:
    """min max_r H_r [bytes] over all options of the problem, whatever its cap, and whether that is proved.

    When cut short, the best lower bound and False. Every group needs an option with a rank set.
    """
    everything = math.fsum(
        len(group.sequence_ids) * max(option.memory_bytes for option in group.options) for group in problem.groups
    )
    uncapped = problem.cluster.model_copy(update={"memory_cap_bytes": everything or problem.cluster.memory_cap_bytes})
    instance = _without_times(compile_instance(problem.model_copy(update={"cluster": uncapped})))
    single = max(min(mode.memory_bytes for mode in kind.modes) for kind in instance.kinds)
    spread = math.fsum(k.count * min(m.degree * m.memory_bytes for m in k.modes) for k in instance.kinds)
    lower = max(single, spread / instance.num_ranks)
    counts = sum(len(instance.blocks[mode.config]) for kind in instance.kinds for mode in kind.modes)
    if counts > MAX_COUNTS:
        return lower, False
    return _search_cap(instance, lower, limits)


def _search_cap(instance: Instance, lower: float, limits: Limits) -> tuple[float, bool]:
    from planner.papers.zellige.compact_form import compact_form
    from planner.papers.zellige.integers import grid_of
    from solvers import cpsat

    grid = grid_of(instance, 1.0, float(instance.num_sequences))
    form = compact_form(instance, grid, (0, instance.num_sequences))
    least = math.floor(lower / grid.memory_step_bytes * (1 - PROVED))
    form.model.add(least <= form.M)
    form.model.minimize(form.M)
    answer = cpsat.run(form.model, list(form.u.values()), limits, BUDGET)
    lower = max(lower, answer.bound * grid.memory_step_bytes * (1 - 1e-15))
    if answer.values is None:
        return lower, False
    reached = max(loads(instance, form.placement(answer.values))[1])
    proved = answer.status is Status.OPTIMAL or reached <= lower * (1 + PROVED)
    return (reached, True) if proved else (min(lower, reached), False)


def _without_times(instance: Instance) -> Instance:
    """The same instance with every price 1 s, so that only memory tells options apart."""
    return replace(
        instance,
        kinds=tuple(
            replace(kind, modes=tuple(mode._replace(time_s=1.0) for mode in kind.modes)) for kind in instance.kinds
        ),
    )
