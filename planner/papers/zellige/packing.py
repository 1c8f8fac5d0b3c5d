"""Memory alone: any placement that fits, and the least cap with which one exists (page 4.7)."""

from __future__ import annotations

import math
from dataclasses import replace

from planner.errors import LimitError
from planner.papers.zellige.baselines import cheap_placements
from planner.papers.zellige.bounds import quick_bounds
from planner.papers.zellige.fast import solve_fast
from planner.papers.zellige.instance import Instance, Piece, Placement, compile_instance, loads
from planner.papers.zellige.problem import ZelligeProblem
from solvers.report import Limits, Status

BUDGET = 5.0
"""Deterministic time of the search for a packing at effort 1."""
CAP_BUDGET = 1.0
"""Deterministic time to prove the least cap at effort 1."""

MAX_COUNTS = 20_000
"""Above so many (kind, mode, rank set) counts the least cap is not searched by the solver."""

PROVED = 1e-9


def find_packing(instance: Instance, limits: Limits) -> dict[Piece, int] | None:
    """Some placement within memory, None when there is none. Raises LimitError when the budget ends first."""
    from planner.papers.zellige.compact_form import compact_form
    from planner.papers.zellige.integers import grid_of
    from solvers import cpsat

    flattest = _flattest(instance, limits)
    if max(loads(instance, flattest)[1]) <= instance.memory_cap_bytes * (1 + PROVED):
        return dict(flattest)
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
    """A cap [bytes] with which the whole problem has a placement, and whether it is proved the least.

    min max_r H_r is the makespan problem with bytes for seconds, so the fast engine reaches it and the quick bounds
    bound it; where they do not meet, CP-SAT may close the gap. Every group needs an option with a rank set.
    """
    everything = math.fsum(
        len(group.sequence_ids) * max(option.memory_bytes for option in group.options) for group in problem.groups
    )
    uncapped = problem.cluster.model_copy(update={"memory_cap_bytes": everything or problem.cluster.memory_cap_bytes})
    instance = compile_instance(problem.model_copy(update={"cluster": uncapped}))
    best = _flattest(instance, limits)
    reached = max(loads(instance, best)[1])
    lower = max(bound.value for bound in quick_bounds(_bytes_as_time(instance)))
    counts = sum(len(instance.blocks[mode.config]) for kind in instance.kinds for mode in kind.modes)
    if reached <= lower * (1 + PROVED) or counts > MAX_COUNTS:
        return reached, reached <= lower * (1 + PROVED)
    return _search_cap(_without_times(instance), best, reached, limits)


def _flattest(instance: Instance, limits: Limits) -> Placement:
    """The placement found with the least max_r H_r, whatever the time. Every kind needs a mode."""
    flat = _bytes_as_time(instance)
    lower = max(bound.value for bound in quick_bounds(flat))
    candidates = [found.placement] if (found := solve_fast(flat, lower, seed=limits.seed)) else []
    candidates += [c.placement for c in cheap_placements(flat) if c.feasible and c.placement is not None]
    return min(candidates, key=lambda placement: max(loads(instance, placement)[1]))


def _bytes_as_time(instance: Instance) -> Instance:
    """The same instance with bytes in the place of seconds; no bytes at all become next to nothing."""
    least = max(max((m.memory_bytes for kind in instance.kinds for m in kind.modes), default=1.0), 1.0) * 1e-12
    return replace(
        instance,
        kinds=tuple(
            replace(
                kind,
                modes=tuple(
                    mode._replace(time_s=max(mode.memory_bytes, least), memory_bytes=0.0) for mode in kind.modes
                ),
            )
            for kind in instance.kinds
        ),
    )


def _search_cap(instance: Instance, hint: Placement, reached: float, limits: Limits) -> tuple[float, bool]:
    from planner.papers.zellige.compact_form import compact_form
    from planner.papers.zellige.integers import grid_of
    from solvers import cpsat

    grid = grid_of(instance, 1.0, float(instance.num_sequences))
    form = compact_form(instance, grid, (0, instance.num_sequences))
    form.hint(hint)
    form.model.minimize(form.M)
    answer = cpsat.run(form.model, list(form.u.values()), limits, CAP_BUDGET)
    lower = answer.bound * grid.memory_step_bytes * (1 - 1e-15)
    found = max(loads(instance, form.placement(answer.values))[1]) if answer.values is not None else math.inf
    least = min(reached, found)
    if answer.status is Status.OPTIMAL or least <= lower * (1 + PROVED):
        return least, True
    return reached, False  # what the fast engine reaches, it reaches again under that cap; the solver may not


def _without_times(instance: Instance) -> Instance:
    """The same instance with every price 1 s, so that only memory tells options apart."""
    return replace(
        instance,
        kinds=tuple(
            replace(kind, modes=tuple(mode._replace(time_s=1.0) for mode in kind.modes)) for kind in instance.kinds
        ),
    )
