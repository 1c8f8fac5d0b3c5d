"""The layers of each virtual stage and of each pipeline rank under an even split."""

from __future__ import annotations

from planner.memory.models import Layer, Model
from profiles.errors import ProfileError

Counted = tuple[tuple[Layer, int], ...]
"""Kinds of layer in order, each with how many follow one another."""


def layers_of_stage(model: Model, stage: int, num_stages: int, chunks_per_rank: int) -> Counted:
    """The layers of virtual stage k = chunk·p + rank, the k-th of p·v equal parts.

    Raises `ProfileError` (out_of_range) where p·v does not divide the layers.
    """
    total = sum(run.count for run in model.runs)
    parts = num_stages * chunks_per_rank
    if total % parts:
        raise ProfileError(
            f"expected stages times chunks to divide the {total} layers of {model.name}, got {num_stages} times "
            f"{chunks_per_rank}",
            code="out_of_range",
        )
    first, found, start = stage * (total // parts), [], 0
    for run in model.runs:
        inside = min(start + run.count, first + total // parts) - max(start, first)
        if inside > 0:
            found.append((run.kind, inside))
        start += run.count
    return tuple(found)


def layers_of_rank(model: Model, pipeline_rank: int, num_stages: int, chunks_per_rank: int) -> Counted:
    """The layers of all chunks of a rank, chunk after chunk."""
    return tuple(
        counted
        for chunk in range(chunks_per_rank)
        for counted in layers_of_stage(model, chunk * num_stages + pipeline_rank, num_stages, chunks_per_rank)
    )
