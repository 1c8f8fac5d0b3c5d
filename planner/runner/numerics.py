"""Split attention gives the numbers of whole attention, forward and backward: seen on a small sample before a run."""

from __future__ import annotations

import numpy as np

from planner.program import Split
from planner.runner.attention import SplitAttention
from planner.runner.clock import Clock
from planner.runner.exchange import Place, find_place
from profiles.measure.group import Group
from profiles.measure.kernels import Array, Kernels

TOLERANCES = {"fp32": 1e-4, "bf16": 5e-2}
"""Largest difference allowed, relative to the largest value."""
SAMPLE_TOKENS = 61
"""A prime: shards of every degree differ in length."""


def sample_tokens(split: Split) -> int:
    """Tokens of the sample: a few for every shard, not the same for each."""
    return max(SAMPLE_TOKENS, 3 * split.degree + 1)


def differences(
    kernels: Kernels, group: Group, split: Split, position: int, heads: int, depth: int, dtype: str
) -> float:
    """The largest relative difference at this rank between its part of split attention and the same of whole one.

    Of the output and of the gradients of q, k and v. Every rank of the piece must call this.
    """
    tokens = sample_tokens(split)
    inputs = [kernels.array((tokens, heads, depth), dtype, seed) for seed in range(4)]
    alone = _attend(kernels, Place(Split(1, 1, 1), 0, None, None, None), inputs, tokens, dtype)
    start = sum(split.rows(tokens, i) for i in range(position))
    own = slice(start, start + split.rows(tokens, position))
    shared = _attend(kernels, find_place(split, position, group), [x[own] for x in inputs], tokens, dtype)
    worst = 0.0
    for mine, whole in zip(shared, alone, strict=True):
        expected = np.asarray(kernels.numpy(whole), dtype=np.float64)
        off = np.abs(np.asarray(kernels.numpy(mine), dtype=np.float64) - expected[own])
        worst = max(worst, float(off.max() / np.abs(expected).max()))
    return worst


def _attend(kernels: Kernels, place: Place, inputs: list[Array], tokens: int, dtype: str) -> list[Array]:
    attention = SplitAttention(kernels, place, tokens, 0, dtype, Clock())
    out, kept = attention.forward(*inputs[:3])
    return [out, *attention.backward(kept, inputs[3])]
