"""Bytes of a device that no state of the model explains, where they are not stated: a model, no measurement."""

from __future__ import annotations

import math

from planner.memory.allocator import COMMUNICATOR_BYTES, CONTEXT_BYTES, communicator_bytes
from planner.memory.workspace import head_workspace_bytes, layer_workspace_bytes
from planner.papers.memory.costs.dims import Dims
from planner.papers.memory.costs.rank_bytes import cut_of, has_head, kernels_of, layers_of
from planner.papers.memory.job import Job
from profiles.geometry import DiTGeometry, ModelGeometry


def beside_states(job: Job, dense: Dims) -> dict[str, float]:
    """By cause: the context, and communicators of every parallel group. The same on every rank.

    What the allocator loses between tensors is not among them.
    """
    layout = job.layout
    data = math.prod(dim.size for dim in dense)
    groups = (layout.tp, layout.cp, layout.pp, data, layout.ep, layout.etp)
    found = {
        "context": CONTEXT_BYTES,
        "communicators": float(communicator_bytes(COMMUNICATOR_BYTES, groups)),
    }
    return {cause: amount for cause, amount in found.items() if amount}


def workspace_bytes(job: Job, model: ModelGeometry | DiTGeometry, rank: int) -> float:
    """What lives while the backward of one layer of a rank, or of the logits, runs."""
    cut, kernels = cut_of(job, model), kernels_of(job)
    kinds = {kind for kind, _ in layers_of(job, model, rank)}
    each = [float(layer_workspace_bytes(kind, cut, kernels)) for kind in kinds]
    if has_head(job, rank) and isinstance(model, ModelGeometry):
        each.append(float(head_workspace_bytes(model.vocab, cut, kernels)))
    return max(each)
