"""The layers of each virtual stage and of each pipeline rank under an even split."""

from __future__ import annotations

from collections.abc import Iterable

from planner.memory.models import Layer, Model
from profiles.errors import ProfileError

Counted = tuple[tuple[Layer, int], ...]
"""Kinds of layer in order, each with how many follow one another."""


def stages_of_rank(
    pipeline_rank: int, num_stages: int, chunks_per_rank: int, *, v_shaped: bool = False
) -> tuple[int, ...]:
    """The virtual stage of each chunk of a rank: every p-th; ``v_shaped``, r and 2p - 1 - r."""
    if v_shaped:
        return pipeline_rank, 2 * num_stages - 1 - pipeline_rank
    return tuple(chunk * num_stages + pipeline_rank for chunk in range(chunks_per_rank))


def layers_of_stage(model: Model, stage: int, num_parts: int) -> Counted:
    """The layers of virtual stage k, the k-th of ``num_parts`` equal parts.

    Raises `ProfileError` (out_of_range) where these do not divide the layers.
    """
    total = sum(run.count for run in model.runs)
    if total % num_parts:
        raise ProfileError(
            f"expected stages times chunks to divide the {total} layers of {model.name}, got {num_parts}",
            code="out_of_range",
        )
    first, found, start = stage * (total // num_parts), [], 0
    for run in model.runs:
        inside = min(start + run.count, first + total // num_parts) - max(start, first)
        if inside > 0:
            found.append((run.kind, inside))
        start += run.count
    return tuple(found)


def layers_of_stages(model: Model, stages: Iterable[int], num_parts: int) -> Counted:
    """The layers of several virtual stages, one after another."""
    return tuple(counted for stage in stages for counted in layers_of_stage(model, stage, num_parts))


def layers_of_rank(model: Model, pipeline_rank: int, num_stages: int, chunks_per_rank: int) -> Counted:
    """The layers of all chunks of a rank, chunk after chunk."""
    stages = stages_of_rank(pipeline_rank, num_stages, chunks_per_rank)
    return layers_of_stages(model, stages, num_stages * chunks_per_rank)
