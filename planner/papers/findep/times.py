"""Seconds of every kind of task (page equations 1 to 4), for one candidate or an array of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.papers.findep.amounts import PerSample, PerToken, SampleCost, SampleTable, TokenCost, TokenTable
from planner.papers.findep.problem import FindepProblem, Split

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Times:
    """Seconds of one task each, and m_e. Arrays of the broadcast shape of m_a and r2."""

    attention_s: Floats
    shared_s: Floats
    a2e_s: Floats
    expert_s: Floats
    e2a_s: Floats
    tokens_per_expert: Floats

    @cached_property
    def slowest_s(self) -> Floats:
        """Y [s]: what a chunk takes on the slowest of the resources that serve chunks."""
        return np.asarray(np.maximum(np.maximum(self.a2e_s, self.expert_s), self.e2a_s))


def task_times(problem: FindepProblem, split: Split, m_a: ArrayLike, r2: ArrayLike) -> Times:
    """Times of micro-batches of ``m_a`` samples (each attention GPU) cut into ``r2`` chunks. 0 without shared experts.

    Integers or arrays of them, broadcast.
    """
    samples, chunks = np.broadcast_arrays(np.asarray(m_a, dtype=np.int64), np.asarray(r2, dtype=np.int64))
    h = problem.hosted_experts(split)
    tokens = tokens_per_expert(problem, split, samples, chunks)
    received = tokens * h
    a2e = price(split.a2e, received)
    return Times(
        attention_s=price(problem.attention, samples),
        shared_s=np.zeros(samples.shape) if problem.shared_expert is None else price(problem.shared_expert, samples),
        a2e_s=a2e,
        expert_s=h * price(problem.expert_cost(split), tokens),
        e2a_s=a2e if split.e2a is None else price(split.e2a, received),
        tokens_per_expert=tokens,
    )


def tokens_per_expert(
    problem: FindepProblem, split: Split, samples: NDArray[np.int64], chunks: NDArray[np.int64]
) -> Floats:
    """m_e (eq. 2): tokens of one chunk that one expert gets, up to whole ones where the problem says ``ceil``."""
    copies = samples * (split.attention_gpus * problem.top_k * problem.tokens_per_sample)
    shares = chunks * problem.num_experts
    if problem.search.token_rounding == "ceil":
        return np.asarray(-(-copies // shares), dtype=np.float64)
    return np.asarray(copies / shares)


def price(cost: PerSample | PerToken, amounts: ArrayLike) -> Floats:
    """Seconds at amounts of samples or tokens: a line, or between the points of a table."""
    x = np.asarray(amounts, dtype=np.float64)
    if isinstance(cost, SampleTable):
        return _between(x, np.array(cost.samples), np.array(cost.times_s))
    if isinstance(cost, TokenTable):
        return _between(x, np.array(cost.tokens), np.array(cost.times_s))
    if isinstance(cost, SampleCost):
        return np.asarray(cost.alpha_s + cost.beta_s_per_sample * x)
    if isinstance(cost, TokenCost):
        return np.asarray(cost.alpha_s + cost.beta_s_per_token * x)
    raise TypeError(f"no cost: {type(cost).__name__}")


def _between(x: Floats, amounts: Floats, times_s: Floats) -> Floats:
    """Linear between points, as a mean of the two: a slope from one of them cancels where times differ by decades."""
    if len(amounts) == 1:
        return np.full(x.shape, times_s[0])
    inside = np.clip(x, amounts[0], amounts[-1])
    right = np.clip(np.searchsorted(amounts, inside), 1, len(amounts) - 1)
    share = (inside - amounts[right - 1]) / (amounts[right] - amounts[right - 1])
    return np.asarray((1 - share) * times_s[right - 1] + share * times_s[right])
