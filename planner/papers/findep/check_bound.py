"""The bound for any order, a second time (page equation 12), for the check: no plan of the box can be faster."""

from __future__ import annotations

import math

import numpy as np

from planner.papers.findep.check_facts import (
    TOLERANCE,
    Counts,
    Durations,
    Floats,
    Truths,
    attention_bytes,
    durations,
    expert_bytes,
    tokens_per_pass,
)
from planner.papers.findep.problem import FindepProblem, Split

CELLS = 50_000
"""Pairs (m_a, r2) that are looked at together: few enough for the cache."""


def shortest_s(problem: FindepProblem, times: Durations, r1: Counts, r2: Counts) -> Floats:
    """Seconds that no schedule of any order can be below: the busiest resource, or one micro-batch's chain."""
    T, n = problem.num_layers, problem.num_layers * r1 * r2
    X = times.a + times.s
    G = times.a + times.x + times.e + times.y + (r2 - 1) * np.maximum(np.maximum(times.x, times.e), times.y)
    last = [
        T * r1 * times.a + (T - 1) * r1 * times.s + G - times.a,
        T * r1 * X,
        times.a + n * times.x + times.e + times.y,
        times.a + times.x + n * times.e + times.y,
        times.a + times.x + times.e + n * times.y,
        T * np.maximum(G, X),
    ]
    return np.asarray(np.max(np.broadcast_arrays(*last), axis=0))


def best_possible(problem: FindepProblem) -> float:
    """The most that any order of tasks reaches within the box, in the objective's unit; minus infinity if none fits."""
    return max(_best_of_split(problem, split) for split in problem.splits)


def _best_of_split(problem: FindepProblem, split: Split) -> float:
    box = problem.search
    fewest, most, chunks = 1, box.max_r1, box.max_r2
    if problem.launcher_rules == "vllm_afd":
        if split.attention_gpus < split.expert_gpus or split.attention_gpus % split.expert_gpus or most < 2:
            return -math.inf
        fewest = most = 2
        chunks = 1
    chunks = min(chunks, box.max_m_a * problem.tokens_per_sample)
    rows = max(1, CELLS // chunks)
    best = -math.inf
    for first in range(1, box.max_m_a + 1, rows):
        m_a, r2 = np.meshgrid(
            np.arange(first, min(first + rows, box.max_m_a + 1), dtype=np.int64), np.arange(1, chunks + 1)
        )
        allowed = r2 <= m_a * problem.tokens_per_sample
        best = max(best, _best_of_cells(problem, split, m_a[allowed], r2[allowed], fewest, most))
    return best


def _best_of_cells(problem: FindepProblem, split: Split, m_a: Counts, r2: Counts, fewest: int, most: int) -> float:
    """Every term of the bound on D is affine in r1, so r1 / D never falls with r1: the largest r1 allowed is the best.

    What fits with some r1 fits with any smaller one, so that r1 is found by halving.
    """
    times = durations(problem, split, m_a, r2)

    def allowed(r1: Counts) -> Truths:
        fits = np.ones(r1.shape, dtype=bool)
        if problem.memory is not None:
            held = attention_bytes(problem.memory, split, m_a, r1)
            fits &= held <= problem.memory.attention_capacity_bytes * (1 + TOLERANCE)
            held = expert_bytes(problem, problem.memory, split, m_a, r1)
            fits &= held <= problem.memory.expert_capacity_bytes * (1 + TOLERANCE)
        if problem.makespan_limit_s is not None:
            fits &= shortest_s(problem, times, r1, r2) <= problem.makespan_limit_s * (1 + TOLERANCE)
        return fits

    low = np.full(m_a.shape, fewest, dtype=np.int64)
    possible = allowed(low)
    high = np.full(m_a.shape, most, dtype=np.int64)
    while np.any(low < high):
        middle = (low + high + 1) // 2
        fits = allowed(middle)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    rate = low * m_a * tokens_per_pass(problem, split) / shortest_s(problem, times, low, r2)
    return float(np.max(rate[possible], initial=-math.inf))
