"""The least objective over real numbers of GPUs (page, section 4), between two figures, for the check.

A cell of rollout_gpus takes no less than with the rollout time of its upper end and the train time of its lower one,
and no more than at that upper end. Cells that may hold the least are quartered until both figures are close.
"""

from __future__ import annotations

import math

import numpy as np

from planner.papers.bidirl.checks.decided import usable_layouts
from planner.papers.bidirl.checks.splits import objective_s
from planner.papers.bidirl.checks.stage_time import Floats, whole_of
from planner.papers.bidirl.problem import AnyTime, BidirlProblem, Lengths, Linear, RolloutLayout, Table

CELLS, MOST = 1024, 8192
"""To begin with, a multiple of the GPUs; and as many as are quartered at once."""
ROUNDS = 24
CLOSE = 1e-7
"""Relative distance of both figures at which no cell is cut further."""
ROUNDED = 1 + 1e-12
"""What rounding may take from a whole number of replicas."""


def least_between_s(problem: BidirlProblem) -> tuple[float, float]:
    """Seconds that no real split in usable layouts undercuts, and seconds that one takes."""
    gpus = problem.cluster.gpus
    edges = np.linspace(0.0, gpus, gpus * math.ceil(CELLS / gpus) + 1)
    low, high = edges[:-1], edges[1:]
    known_s = taken_s = math.inf
    for _ in range(ROUNDS):
        taken_s = min(taken_s, float(_judged_s(problem, high, gpus - high).min()))
        bound_s = _judged_s(problem, high, gpus - low)
        known_s = min(taken_s, float(bound_s.min()))
        left = np.flatnonzero(bound_s < taken_s * (1 - CLOSE))
        if not 0 < len(left) <= MOST:
            break
        cut = np.linspace(low[left], high[left], 5)
        low, high = cut[:-1].ravel(), cut[1:].ravel()
    return known_s, taken_s


def _judged_s(problem: BidirlProblem, rollout_gpus: Floats, train_gpus: Floats) -> Floats:
    """The objective by cell in whichever layouts are best."""
    train_s = np.full(len(train_gpus), math.inf)
    for layout in usable_layouts(problem, problem.costs.train_layouts):
        train_s = np.minimum(train_s, _real_s(layout.time, problem, train_gpus / layout.gpus, trains=True))
    least_s = np.full(len(rollout_gpus), math.inf)
    for layout in usable_layouts(problem, problem.costs.rollout_layouts):
        if isinstance(layout, RolloutLayout):
            rollout_s = _real_s(layout.time, problem, rollout_gpus / layout.gpus, trains=False)
            least_s = np.minimum(least_s, objective_s(problem, layout, rollout_s, train_s))
    return least_s


def _real_s(time: AnyTime, problem: BidirlProblem, replicas: Floats, *, trains: bool) -> Floats:
    """M of a whole batch on a real number of replicas, nothing rounded up; infinite on none."""
    some = np.where(replicas > 0, replicas, 1.0)
    return np.where(replicas > 0, _of_some_s(time, problem, some, trains=trains), math.inf)


def _of_some_s(time: AnyTime, problem: BidirlProblem, replicas: Floats, *, trains: bool) -> Floats:
    batch = problem.batch
    if isinstance(time, Linear):
        return time.alpha_s + time.gamma_s_per_token * batch.max_response_tokens + time.beta_s / replicas
    if isinstance(time, Table):
        found = np.full(len(replicas), math.inf)
        for count, measured_s in zip(time.replicas, time.time_s, strict=True):
            found = np.where(replicas * ROUNDED >= count, np.minimum(found, measured_s), found)
        return found
    if isinstance(time, Lengths):
        n = whole_of(batch, trains=trains) * batch.responses_per_group / replicas
        b = np.minimum(n, time.concurrency)
        decode_steps = np.maximum(batch.max_response_tokens, n / b * time.mean_response_tokens)
        return (
            time.alpha_s
            + n * (time.prompt_tokens * time.prefill_s_per_token)
            + (time.step_base_s + time.step_per_sequence_s * b) * decode_steps
        )
    fixed_s = math.fsum(stage.fixed_s for stage in time.stages)
    return fixed_s + math.fsum(stage.chunks * stage.chunk_s for stage in time.stages) / replicas
