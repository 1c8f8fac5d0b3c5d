"""What the check reads from the problem alone: seconds, tokens and bytes, apart from the search (page equations)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.papers.findep.amounts import Bytes, PerSample, PerToken, SampleCost, SampleTable, TokenTable
from planner.papers.findep.problem import FindepProblem, Memory, Split

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Truths = NDArray[np.bool_]

TOLERANCE = 1e-9
"""Relative difference below which two figures agree, and by which a capacity or a limit may be exceeded."""


@dataclass(frozen=True)
class Durations:
    """Seconds of one task of each kind, and the tokens of an expert in a chunk."""

    a: Floats
    s: Floats
    x: Floats
    e: Floats
    y: Floats
    m_e: Floats


def durations(problem: FindepProblem, split: Split, m_a: Counts, r2: Counts) -> Durations:
    """Equations 1 to 4, for micro-batches of ``m_a`` samples in ``r2`` chunks."""
    hosted = math.ceil(problem.num_experts / split.expert_gpus)
    copies = m_a * split.attention_gpus * problem.top_k * problem.tokens_per_sample
    shares = r2 * problem.num_experts
    m_e = copies / shares if problem.search.token_rounding == "real" else np.asarray(-(-copies // shares), np.float64)
    link = split.a2e if split.e2a is None else split.e2a
    shared = problem.shared_expert
    samples = m_a.astype(np.float64)
    return Durations(
        a=_seconds(problem.attention, samples),
        s=np.zeros(samples.shape) if shared is None else _seconds(shared, samples),
        x=_seconds(split.a2e, m_e * hosted),
        e=hosted * _seconds(problem.expert_cost(split), m_e),
        y=_seconds(link, m_e * hosted),
        m_e=m_e,
    )


def _seconds(cost: PerSample | PerToken, amounts: Floats) -> Floats:
    if isinstance(cost, SampleTable | TokenTable):
        points = np.array(cost.samples if isinstance(cost, SampleTable) else cost.tokens)
        times_s = np.array(cost.times_s)
        if len(points) == 1:
            return np.full(amounts.shape, times_s[0])
        inside = np.clip(amounts, points[0], points[-1])
        after = np.clip(np.searchsorted(points, inside), 1, len(points) - 1)
        share = (inside - points[after - 1]) / (points[after] - points[after - 1])
        return np.asarray(times_s[after - 1] * (1 - share) + times_s[after] * share)
    slope = cost.beta_s_per_sample if isinstance(cost, SampleCost) else cost.beta_s_per_token
    return np.asarray(cost.alpha_s + slope * amounts)


def attention_bytes(memory: Memory, split: Split, m_a: Counts, r1: Counts) -> Floats:
    """Bytes of an attention GPU (eq. 10)."""
    own = split.attention_bytes_per_sample
    common = memory.attention_bytes_per_sample
    resident = _bytes(own if own is not None else common if common is not None else 0.0)
    workspace = _bytes(memory.attention_workspace_bytes_per_sample)
    return np.asarray(_bytes(memory.attention_fixed_bytes) + m_a * (r1 * resident + workspace))


def expert_bytes(problem: FindepProblem, memory: Memory, split: Split, m_a: Counts, r1: Counts) -> Floats:
    """Bytes of the busiest expert GPU (eq. 10)."""
    hosted = math.ceil(problem.num_experts / split.expert_gpus)
    per_sample = split.attention_gpus * problem.top_k * problem.tokens_per_sample / problem.num_experts * hosted
    weights = hosted * _bytes(memory.expert_bytes_per_expert)
    buffers = (r1 * m_a) * per_sample * _bytes(memory.expert_buffer_bytes_per_token)
    return np.asarray(_bytes(memory.expert_fixed_bytes) + weights + buffers)


def _bytes(amount: Bytes) -> float:
    return math.fsum(amount.values()) if isinstance(amount, dict) else amount


def tokens_per_pass(problem: FindepProblem, split: Split) -> float:
    """Tokens of one sample on every attention GPU, per GPU where the objective says so."""
    tokens = split.attention_gpus * problem.tokens_per_sample
    return tokens / (split.attention_gpus + split.expert_gpus) if problem.objective.endswith("per_gpu") else tokens


def agree(first: float, second: float) -> bool:
    """Equal within the tolerance."""
    return math.isclose(first, second, rel_tol=TOLERANCE)
