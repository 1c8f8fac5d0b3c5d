"""What no split of a real number of GPUs undercuts (page, section 4): the distance to it is what whole replicas cost.

Rollout times fall and train times rise with rollout_gpus, so over a range of them the objective is no less than with
the rollout times of its upper end and the train times of its lower one. Ranges are cut until that says enough, which
needs nothing of the kind of time but that it does not rise with replicas.
"""

from __future__ import annotations

import math

import numpy as np

from planner.papers.bidirl.layouts import usable
from planner.papers.bidirl.objective import objective_s
from planner.papers.bidirl.problem import BidirlProblem, Linear, Role
from planner.papers.bidirl.stage_times.times import relaxed_s, tail_s
from planner.papers.bidirl.stage_times.work import Floats, work_of

CLOSE = 1e-12
"""Relative distance from the least at which ranges are fine enough."""
NARROW = 1e-14
"""Width of a range, over all GPUs, below which none is cut."""
RANGES = 64
"""Held at once, as long as so many are enough."""
MAX_RANGES = 1024
"""Beyond it cutting stops short, and the bound is weaker but still one."""


def fractional_bound_s(problem: BidirlProblem, reached_s: float = math.inf) -> float:
    """A lower bound on the objective of any split in usable layouts, in seconds, at most ``reached_s``.

    ``reached_s`` is the objective of some split, which spares it to look where none can be better.
    With linear times on-policy it is a closed form; else the least over real splits where two curves cross, and some
    millionths below where they add up to a valley, which too many ranges would tell.
    """
    return min(reached_s, _on_policy_s(problem) if _has_closed_form(problem) else _by_ranges_s(problem, reached_s))


def _has_closed_form(problem: BidirlProblem) -> bool:
    layouts = (*problem.layouts("rollout"), *problem.layouts("train"))
    linear = all(isinstance(layout.time, Linear) for layout in layouts)
    return linear and problem.objective == "period" and problem.staleness == 0


def _on_policy_s(problem: BidirlProblem) -> float:
    """w + alphas + gammas L + (sqrt(a) + sqrt(b))^2 / G of the best pair, a = beta_r |rho_r|, b = beta_t |rho_t|."""
    return problem.costs.weight_sync_s + min(
        fixed_r + fixed_t + (math.sqrt(a) + math.sqrt(b)) ** 2 / problem.cluster.gpus
        for fixed_r, a in _fixed_and_shared(problem, "rollout")
        for fixed_t, b in _fixed_and_shared(problem, "train")
    )


def _fixed_and_shared(problem: BidirlProblem, role: Role) -> list[tuple[float, float]]:
    work = work_of(problem.batch, role)
    times = [(layout.time, layout.gpus) for layout in usable(problem, problem.layouts(role))]
    return [(time.alpha_s + tail_s(time, work), time.beta_s * gpus) for time, gpus in times if isinstance(time, Linear)]


def _by_ranges_s(problem: BidirlProblem, reached_s: float) -> float:
    gpus = float(problem.cluster.gpus)
    edges = np.linspace(0.0, gpus, RANGES + 1)
    low, high, shut_s = edges[:-1], edges[1:], math.inf
    while True:
        bound_s = _between_s(problem, low, high)
        middle = (low + high) / 2
        reached_s = min(reached_s, float(_between_s(problem, middle, middle).min()))
        least_s = min(shut_s, float(bound_s.min()))
        closed = least_s * (1 + CLOSE) >= reached_s or float((high - low).max()) <= NARROW * gpus
        # Whole plateaus are as low as the split that was reached: cutting those tells nothing.
        open_ = bound_s * (1 + CLOSE) < reached_s
        parts = max(2, RANGES // max(1, int(open_.sum())))
        if closed or int(open_.sum()) * parts > MAX_RANGES:
            return least_s
        shut_s = min(shut_s, float(bound_s[~open_].min(initial=math.inf)))
        edges = np.linspace(low[open_], high[open_], parts + 1)
        low, high = edges[:-1].ravel(), edges[1:].ravel()


def _between_s(problem: BidirlProblem, low: Floats, high: Floats) -> Floats:
    """What no rollout_gpus from ``low`` to ``high`` undercut, with whichever layouts; shape of both."""
    train_s = _least_train_s(problem, problem.cluster.gpus - low)
    work = work_of(problem.batch, "rollout")
    least_s = np.full(low.shape, np.inf)
    for layout in usable(problem, problem.costs.rollout_layouts):
        rollout_s = relaxed_s(layout.time, work, high / layout.gpus)
        least_s = np.minimum(least_s, objective_s(problem, layout, rollout_s, train_s))
    return least_s


def _least_train_s(problem: BidirlProblem, gpus: Floats) -> Floats:
    work = work_of(problem.batch, "train")
    least_s = np.full(gpus.shape, np.inf)
    for layout in usable(problem, problem.costs.train_layouts):
        least_s = np.minimum(least_s, relaxed_s(layout.time, work, gpus / layout.gpus))
    return least_s
