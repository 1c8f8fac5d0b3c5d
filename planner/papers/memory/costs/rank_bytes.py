"""Bytes of one pipeline rank before data parallelism: parameters, and activations at its peak (page, 3.3 to 3.5)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from planner.memory.activations import Cut, Kernels, Stored, embedding_bytes, head_bytes, kept_by_part, layer_bytes
from planner.memory.in_flight import chunks_at_peak, in_flight_chunks
from planner.memory.parameters import Parameters, embedding, head, of_stages, units_of_stages
from planner.memory.split import Counted, layers_of_stage, layers_of_stages, stages_of_rank
from planner.papers.memory.job import Job
from profiles.geometry import DiTGeometry, ModelGeometry
from profiles.geometry.weights import by_part

Model = ModelGeometry | DiTGeometry

ACTIVATION_BYTES = 2.0

_NAMES = {"dense_ffn": "feed-forward", "shared_experts": "shared experts"}
"""Parts of a layer that readers know by another name."""


@dataclass(frozen=True)
class RankBytes:
    """Of one pipeline rank: counts of parameters and of the largest unit, bytes of activations by mode and cause.

    ``parts`` are the parameters that are no experts', by what they are of. ``micro_batch_bytes`` are what one
    micro-batch keeps over all chunks of the rank, ends left out.
    """

    rank: int
    parameters: Parameters
    parts: Mapping[str, int]
    units: Parameters
    kept: Mapping[str, float]
    materialised: Mapping[str, float]
    offloaded: Mapping[str, float]
    micro_batch_bytes: float


def rank_bytes(job: Job, model: Model, rank: int) -> RankBytes:
    """The bytes of a rank. Raises ProfileError where the layout does not divide the model."""
    layout, stages = job.layout, stages_of(job, rank)
    parts, cuts = layout.pp * layout.vpp, (layout.tp, layout.ep, layout.etp)
    stored = [_stored(job, model, stage) for stage in stages]
    layers = [layer for chunk in stored for layer in chunk]
    kept = [[_kept(layer, job) for layer in chunk] for chunk in stored]
    inputs = [sum(layer.input for layer in chunk) for chunk in stored]
    ends = _ends(job, model, rank)
    largest = max(each for chunk in kept for each in chunk)
    return RankBytes(
        rank,
        of_stages(model, stages, parts, *cuts),
        _parts(job, model, rank),
        units_of_stages(model, stages, parts, *cuts),
        _some({**_kept_in_flight(job, model, rank, kept), **ends}),
        _some(
            {
                "layer inputs in flight": _resident(job, rank, inputs),
                "one layer recomputed": max(float(layer.kept - layer.input) for layer in layers),
                **ends,
            }
        ),
        _some({"double buffer": 2 * largest, **ends}),
        sum(sum(chunk) for chunk in kept),
    )


def _parts(job: Job, model: Model, rank: int) -> dict[str, int]:
    layout, found = job.layout, dict[str, int]()
    if rank == 0:
        found["embedding"] = int(embedding(model, layout.tp))
    for kind, count in layers_of(job, model, rank):
        counted = by_part(kind.weights, lambda weight: weight.on_rank(layout.tp, layout.ep, layout.etp))
        for part, amount in counted.items():
            if part != "experts":
                name = _NAMES.get(part, part)
                found[name] = found.get(name, 0) + count * amount
    if has_head(job, rank):
        found["final norm and head"] = int(head(model, layout.tp, alone=rank == 0))
    return found


def layers_of(job: Job, model: Model, rank: int) -> Counted:
    """The layers of all chunks of a rank."""
    return layers_of_stages(model, stages_of(job, rank), job.layout.pp * job.layout.vpp)


def has_head(job: Job, rank: int) -> bool:
    """Whether the head, and with it the logits, are on a rank."""
    return job.layout.pp * job.layout.vpp - 1 in stages_of(job, rank)


def stages_of(job: Job, rank: int) -> tuple[int, ...]:
    """The virtual stages of a rank, chunk after chunk."""
    return stages_of_rank(rank, job.layout.pp, job.layout.vpp, v_shaped=job.layout.v_shaped)


def _stored(job: Job, model: Model, stage: int) -> list[Stored]:
    """What each layer of a virtual stage keeps of one micro-batch."""
    layout, kernels, cut = job.layout, kernels_of(job), cut_of(job, model)
    counted = layers_of_stage(model, stage, layout.pp * layout.vpp)
    return [layer_bytes(kind, cut, kernels) for kind, count in counted for _ in range(count)]


def kernels_of(job: Job) -> Kernels:
    """What the training code keeps, in 16-bit activations."""
    return job.training_code.kernels(ACTIVATION_BYTES)


def _kept_in_flight(job: Job, model: Model, rank: int, kept: list[list[float]]) -> dict[str, float]:
    """What the layers of a rank keep at its peak, by part."""
    layout, kernels, cut = job.layout, kernels_of(job), cut_of(job, model)
    found = dict[str, float]()
    in_flight = _in_flight(job, rank, [sum(layers) for layers in kept])
    for stage, times in zip(stages_of(job, rank), in_flight, strict=True):
        for kind, count in layers_of_stage(model, stage, layout.pp * layout.vpp):
            each = kept_by_part(kind, cut, kernels, selective=job.recompute == "selective")
            for part, amount in each.items():
                name = _NAMES.get(part, part)
                found[name] = found.get(name, 0.0) + times * count * float(amount)
    return found


def _kept(layer: Stored, job: Job) -> float:
    return float(layer.selective if job.recompute == "selective" else layer.kept)


def cut_of(job: Job, model: Model) -> Cut:
    """How a micro-batch is cut. Text tokens of joint layers are whole on every rank of a context-parallel group."""
    layout, length = job.layout, job.batch.sequence_length
    text = model.text_tokens if isinstance(model, DiTGeometry) and model.joint else 0
    return Cut(
        tokens=(length / layout.cp + text) * job.batch.micro_batch,
        sequence_length=length + text,
        tensor_ranks=layout.tp,
        norm_ranks=layout.norm_ranks,
        expert_tensor_ranks=layout.etp,
        load_factor=job.load_factor,
    )


def _ends(job: Job, model: Model, rank: int) -> dict[str, float]:
    """Embedding of the micro-batches ahead of the last stage on the first rank; norm, logits and loss on the last."""
    layout, cut = job.layout, cut_of(job, model)
    if isinstance(model, DiTGeometry):
        return {}
    found = {}
    if rank == 0:
        ahead = min(job.batch.num_micro_batches, layout.pp)
        found["embedding"] = ahead * float(embedding_bytes(model.hidden, cut, dropout=job.training_code.dropout))
    if has_head(job, rank):
        found["logits"] = float(head_bytes(model.hidden, model.vocab, cut, kernels_of(job)))
    return found


def _resident(job: Job, rank: int, chunks: list[float]) -> float:
    """The most that the rank holds at once of what its chunks keep of each micro-batch."""
    return math.fsum(times * each for times, each in zip(_in_flight(job, rank, chunks), chunks, strict=True))


def _in_flight(job: Job, rank: int, chunks: list[float]) -> list[int]:
    """Of each chunk the micro-batches that are in flight when the rank holds most of ``chunks``."""
    layout, order, m = job.layout, job.layout.order, job.batch.num_micro_batches
    if order == "interleaved":
        return chunks_at_peak(order, rank, chunks, num_stages=layout.pp, num_micro_batches=m)
    return [int(in_flight_chunks(order, rank, num_stages=layout.pp, num_micro_batches=m))] * len(chunks)


def _some(causes: Mapping[str, float]) -> dict[str, float]:
    return {name: amount for name, amount in causes.items() if amount}
