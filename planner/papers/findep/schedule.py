"""From a decision to the solution: every layer replayed task by task, and what follows from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.papers.findep.layers import ATTENTION, COMBINE, DISPATCH, EXPERT, SHARED, layers
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.residency import attention_bytes, expert_bytes
from planner.papers.findep.solution import FindepSolution, Utilisation
from planner.papers.findep.space import Decision, tokens
from planner.papers.findep.timeline import shorten
from planner.papers.findep.times import Times, task_times
from solvers.pipeline import Pipeline

Floats = NDArray[np.float64]


def build_solution(problem: FindepProblem, decision: Decision, free_order_bound: float) -> FindepSolution:
    """The solution of a decision: starts of all layers by replay, makespan, objective, memory, utilisation."""
    split = problem.splits[decision.split]
    times = task_times(problem, split, decision.m_a, decision.r2)
    rows, makespan_s = replay_rows(problem, decision, times)
    objective = float(tokens(problem, split, decision.m_a, decision.r1) / makespan_s)
    memory = problem.memory
    load = (decision.m_a, decision.r1)
    return FindepSolution(
        attention_gpus=split.attention_gpus,
        expert_gpus=split.expert_gpus,
        m_a=decision.m_a,
        r1=decision.r1,
        r2=decision.r2,
        order=decision.order,
        tokens_per_expert_chunk=float(times.tokens_per_expert),
        timeline=shorten(rows, decision.r1, decision.r2, makespan_s),
        makespan_s=makespan_s,
        objective=objective,
        attention_memory_bytes=None if memory is None else float(attention_bytes(memory, split, *load)),
        expert_memory_bytes=None if memory is None else float(expert_bytes(problem, memory, split, *load)),
        utilisation=utilisation(problem, decision, times, makespan_s),
        free_order_bound=max(free_order_bound, objective),  # rounding may put a bound that is met below
    )


def replay_rows(problem: FindepProblem, decision: Decision, times: Times) -> tuple[Floats, float]:
    """Starts of every layer as `timeline.shorten` takes them, and the last end [s]."""
    pipeline = layers(problem.num_layers, decision.r1, decision.order, problem.shared_expert is not None)
    seconds = [float(value) for value in _by_kind(times)]
    starts = pipeline.starts(seconds, (1, 1, decision.r2, decision.r2, decision.r2))
    makespan_s = max(float(begin[-1]) + seconds[run.kind] for run, begin in zip(pipeline.runs, starts, strict=True))
    return _rows(pipeline, starts, problem.num_layers), makespan_s


def _rows(pipeline: Pipeline, starts: list[Floats], num_layers: int) -> Floats:
    of_kind: dict[int, list[Floats]] = {kind: [] for kind in (ATTENTION, SHARED, DISPATCH, EXPERT, COMBINE)}
    for run, begin in zip(pipeline.runs, starts, strict=True):
        of_kind[run.kind].append(begin)
    parts = [np.concatenate(begun).reshape(num_layers, -1) for begun in of_kind.values() if begun]
    return np.concatenate(parts, axis=1)


def utilisation(problem: FindepProblem, decision: Decision, times: Times, makespan_s: float) -> Utilisation:
    """Busy time of each resource over the makespan."""
    passes = problem.num_layers * decision.r1
    a, s, x, e, y = (float(value) for value in _by_kind(times))
    return Utilisation(
        AG=passes * (a + s) / makespan_s,
        A2E=passes * decision.r2 * x / makespan_s,
        EG=passes * decision.r2 * e / makespan_s,
        E2A=passes * decision.r2 * y / makespan_s,
    )


def _by_kind(times: Times) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    return times.attention_s, times.shared_s, times.a2e_s, times.expert_s, times.e2a_s
