"""Seconds of collectives on one flat ring (3.2)."""

from __future__ import annotations

from planner.memory.amounts import Amount


def gather_s(ranks: Amount, message: Amount, alpha_s: Amount, beta_s_per_byte: Amount) -> Amount:
    """An all-gather to, or a reduce-scatter of, ``message`` bytes: (n−1)·α + (n−1)/n·bytes·β; zero on one rank.

    An all-reduce is one of each.
    """
    return (ranks - 1) * alpha_s + (ranks - 1) / ranks * message * beta_s_per_byte
