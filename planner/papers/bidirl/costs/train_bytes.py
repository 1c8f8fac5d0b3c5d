"""Bytes on the fullest GPU of a replica that trains, by cause: FSDP over the replica, or Megatron."""

from __future__ import annotations

import numpy as np

from planner.derivation.bytes_per_parameter import BytesPerParameter
from planner.memory.activations import Cut, Stored, embedding_bytes, head_bytes, layer_bytes
from planner.memory.in_flight import in_flight_chunks
from planner.memory.parameters import Parameters, of_rank, units_of_rank
from planner.memory.split import layers_of_rank
from planner.memory.states import gradients_bytes, optimizer_bytes, parameters_bytes
from planner.memory.workspace import head_workspace_bytes, layer_workspace_bytes
from planner.papers.bidirl.costs.candidates import Candidate
from planner.papers.bidirl.derived import Train
from profiles.geometry.feed_forward import Experts
from profiles.geometry.model import ModelGeometry

ACTIVATION_BYTES = 2.0


def train_bytes(given: Train, model: ModelGeometry, candidate: Candidate, sequence_tokens: int) -> dict[str, float]:
    """States, activations, what one layer's backward needs, and the runtime; of the pipeline stage that holds most.

    Raises ProfileError where the degrees do not divide the model.
    """
    every = [_of_stage(given, model, candidate, sequence_tokens, rank) for rank in range(candidate.pp)]
    return max(every, key=lambda causes: sum(causes.values()))


def fsdp_states(parameters: float, unit: float, dtypes: BytesPerParameter, shard: int) -> dict[str, float]:
    """ZeRO stage 3 over ``shard`` ranks: two units of weights gathered at once, one of gradients reduced."""
    return {
        "weights": float(parameters_bytes("gather", parameters * dtypes.param, unit * dtypes.param, shard)),
        "gradients": float(gradients_bytes("sharded", parameters * dtypes.grad, unit * dtypes.grad, shard)),
        "optimizer": float(optimizer_bytes("sharded", parameters * dtypes.optimizer, shard)),
    }


def _of_stage(
    given: Train, model: ModelGeometry, candidate: Candidate, sequence_tokens: int, rank: int
) -> dict[str, float]:
    found = {
        **_states(given, model, candidate, rank),
        **_activations(given, model, candidate, sequence_tokens, rank),
        "runtime": given.runtime_bytes,
    }
    return {cause: amount for cause, amount in found.items() if amount}


def _states(given: Train, model: ModelGeometry, candidate: Candidate, rank: int) -> dict[str, float]:
    experts_over = expert_ranks(model, candidate)
    cuts = {"num_stages": candidate.pp, "tensor_ranks": candidate.tp, "expert_ranks": experts_over}
    parameters, dtypes = of_rank(model, rank, **cuts), given.dtypes
    whole = _both(parameters)
    if given.backend == "fsdp":
        return fsdp_states(whole, _both(units_of_rank(model, rank, **cuts)), dtypes, candidate.shard)
    optimizer = whole
    if given.distributed_optimizer:
        # Ranks that hold the same parameters: of experts those of the stage that do not share them already.
        alike = candidate.tp * candidate.cp // experts_over
        optimizer = int(parameters.dense) / candidate.cp + int(parameters.experts) / alike
    return {
        "weights": whole * dtypes.param,
        "gradients": whole * dtypes.grad,
        "optimizer": optimizer * dtypes.optimizer,
    }


def expert_ranks(model: ModelGeometry, candidate: Candidate) -> int:
    """Megatron's experts are over the tensor and context ranks, as far as they divide them; FSDP shards them itself."""
    counts = [run.kind.feed_forward.count for run in model.runs if isinstance(run.kind.feed_forward, Experts)]
    ranks = 1 if candidate.shard else candidate.tp * candidate.cp
    return int(np.gcd.reduce([ranks, *counts])) if counts else 1


def _activations(
    given: Train, model: ModelGeometry, candidate: Candidate, sequence_tokens: int, rank: int
) -> dict[str, float]:
    if given.activation_bytes is not None:
        return {"activations": given.activation_bytes}
    cut = Cut(
        tokens=sequence_tokens / candidate.cp * given.micro_batch,
        sequence_length=sequence_tokens,
        tensor_ranks=candidate.tp,
        norm_ranks=candidate.tp,
    )
    kernels = given.training_code.kernels(ACTIVATION_BYTES)
    layers = layers_of_rank(model, rank, candidate.pp, 1)
    stored = [(layer_bytes(kind, cut, kernels), count) for kind, count in layers]
    flight = float(in_flight_chunks("1f1b", rank, num_stages=candidate.pp, num_micro_batches=given.micro_batches))
    kept = flight * sum(count * _kept(given, each) for each, count in stored)
    if given.recompute == "full":
        kept += max(float(each.kept - each.input) for each, _ in stored)
    ends, workspace = _ends(given, model, candidate, cut, rank)
    workspace = max(workspace, *(float(layer_workspace_bytes(kind, cut, kernels)) for kind, _ in layers))
    return {"activations": kept + ends, "workspace": workspace}


def _kept(given: Train, stored: Stored) -> float:
    """Bytes that a layer keeps of one micro-batch."""
    return float({"none": stored.kept, "selective": stored.selective, "full": stored.input}[given.recompute])


def _ends(given: Train, model: ModelGeometry, candidate: Candidate, cut: Cut, rank: int) -> tuple[float, float]:
    """What embedding and head keep on a stage that has them, and what the head's backward needs."""
    kernels = given.training_code.kernels(ACTIVATION_BYTES)
    kept, workspace = 0.0, 0.0
    if rank == 0:
        ahead = min(given.micro_batches, candidate.pp)
        kept += ahead * float(embedding_bytes(model.hidden, cut, dropout=kernels.dropout))
    if rank == candidate.pp - 1:
        kept += float(head_bytes(model.hidden, model.vocab, cut, kernels))
        workspace = float(head_workspace_bytes(model.vocab, cut, kernels))
    return kept, workspace


def _both(counted: Parameters) -> float:
    return float(int(counted.dense) + int(counted.experts))
