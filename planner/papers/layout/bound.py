"""A lower bound on the pipeline's time (page, equation 6)."""

from __future__ import annotations

from planner.papers.layout.stage_times import Stages


def pipeline_bound_s(held: Stages, num_stages: int, num_micro_batches: int) -> float:
    """No rank ends sooner than the pipeline: the largest of ``rank_bounds_s``."""
    return max(rank_bounds_s(held, num_stages, num_micro_batches))


def rank_bounds_s(held: Stages, num_stages: int, num_micro_batches: int) -> list[float]:
    """Of every rank: it works m times its stages, after the first forward and before the last backward above it.

    The stages before rank r in the chain must run once forward before it starts and once backward after it ends.
    """
    work = [forward + backward for forward, backward in zip(held.forward_s, held.backward_s, strict=True)]
    return [sum(work[:rank]) + num_micro_batches * sum(work[rank::num_stages]) for rank in range(num_stages)]
