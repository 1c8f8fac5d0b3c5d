"""Bytes that a plan's decision fills on a GPU of each pool (eq. 10), from the amounts that a problem states."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.papers.findep.amounts import Bytes
from planner.papers.findep.problem import FindepProblem, Memory, Split

Floats = NDArray[np.float64]

TOLERANCE = 1e-9
"""A capacity exceeded by less holds: sums of bytes round."""


def total(amount: Bytes) -> float:
    """The bytes of an amount, however it is written."""
    return float(sum(amount.values())) if isinstance(amount, dict) else float(amount)


def attention_bytes(memory: Memory, split: Split, m_a: ArrayLike, r1: ArrayLike) -> Floats:
    """Bytes of an attention GPU: A0 + r1 m_a A1 + m_a A2."""
    samples, micro_batches = np.asarray(m_a, dtype=np.float64), np.asarray(r1, dtype=np.float64)
    resident = total(_per_sample(memory, split))
    workspace = total(memory.attention_workspace_bytes_per_sample)
    return np.asarray(total(memory.attention_fixed_bytes) + micro_batches * samples * resident + samples * workspace)


def expert_bytes(problem: FindepProblem, memory: Memory, split: Split, m_a: ArrayLike, r1: ArrayLike) -> Floats:
    """Bytes of the busiest expert GPU: B0 + h B1 + r1 m_a ag K S / E h B2."""
    h = problem.hosted_experts(split)
    fixed = total(memory.expert_fixed_bytes) + h * total(memory.expert_bytes_per_expert)
    return np.asarray(fixed + in_flight(problem, split, m_a, r1) * total(memory.expert_buffer_bytes_per_token))


def in_flight(problem: FindepProblem, split: Split, m_a: ArrayLike, r1: ArrayLike) -> Floats:
    """Token copies of all micro-batches on the busiest expert GPU."""
    samples = np.asarray(r1, dtype=np.float64) * np.asarray(m_a, dtype=np.float64)
    copies = samples * (split.attention_gpus * problem.top_k * problem.tokens_per_sample)
    return np.asarray(copies / problem.num_experts * problem.hosted_experts(split))


def attention_bytes_by_cause(memory: Memory, split: Split, m_a: int, r1: int) -> dict[str, float]:
    """Bytes of an attention GPU by cause: the problem's own causes where it states them."""
    return _by_cause(
        ("fixed", memory.attention_fixed_bytes, 1.0),
        ("resident samples", _per_sample(memory, split), float(r1 * m_a)),
        ("workspace", memory.attention_workspace_bytes_per_sample, float(m_a)),
    )


def expert_bytes_by_cause(problem: FindepProblem, memory: Memory, split: Split, m_a: int, r1: int) -> dict[str, float]:
    """Bytes of the busiest expert GPU by cause."""
    return _by_cause(
        ("fixed", memory.expert_fixed_bytes, 1.0),
        ("expert weights", memory.expert_bytes_per_expert, float(problem.hosted_experts(split))),
        ("tokens in flight", memory.expert_buffer_bytes_per_token, float(in_flight(problem, split, m_a, r1))),
    )


def _per_sample(memory: Memory, split: Split) -> Bytes:
    own, common = split.attention_bytes_per_sample, memory.attention_bytes_per_sample
    if own is not None:
        return own
    if common is None:
        raise TypeError("a validated problem has the bytes of a sample for every split")
    return common


def _by_cause(*parts: tuple[str, Bytes, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, amount, times in parts:
        causes: Mapping[str, float] = amount if isinstance(amount, dict) else {name: amount}
        for cause, each in causes.items():
            found[cause] = found.get(cause, 0.0) + times * each
    return found
