"""Parameters of one device, before data parallelism shards them (3.3); the counts are those of profiles.geometry.

A model is a `ModelGeometry` or a `DiTGeometry`. Multi-token-prediction modules are left out. Rank counts may be arrays;
each is asked once for every number that occurs. `ProfileError` where a number does not divide what it cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from planner.memory.amounts import Amount
from planner.memory.models import Layer, Model
from planner.memory.split import layers_of_stages, stages_of_rank
from profiles.geometry.weights import Weight, on_rank


class Parameters(NamedTuple):
    """Counts on one device: all but the routed experts, and the routed experts."""

    dense: Amount
    experts: Amount


def layer(
    kind: Layer, tensor_ranks: Amount = 1, expert_ranks: Amount = 1, expert_tensor_ranks: Amount = 1
) -> Parameters:
    """Parameters of one layer on one rank."""
    return Parameters(
        _each(lambda t: on_rank(_beside_experts(kind), t)[0], tensor_ranks),
        _each(lambda e, u: on_rank(_experts(kind), 1, e, u)[1], expert_ranks, expert_tensor_ranks),
    )


def embedding(model: Model, tensor_ranks: Amount = 1) -> Amount:
    """What joins the first layer: the vocabulary's rows, and learned positions, which each t rank copies."""
    weights = [weight for weight in model.ends if weight.part == "embeddings"]
    return _each(lambda t: on_rank(_padded(weights, t), t)[0], tensor_ranks)


def head(model: Model, tensor_ranks: Amount = 1, *, alone: bool = False) -> Amount:
    """What joins the last layer: final norm and head.

    A tied head is a copy of the embedding, and nothing where it is ``alone`` with it, on one and the same rank.
    """
    weights = [weight for weight in model.ends if weight.part != "embeddings"]
    if not alone and not any(weight.part == "head" for weight in weights):
        weights += [weight for weight in model.ends if weight.name == "embedding"]
    return _each(lambda t: on_rank(_padded(weights, t), t)[0], tensor_ranks)


def of_rank(
    model: Model,
    pipeline_rank: int,
    *,
    num_stages: int = 1,
    chunks_per_rank: int = 1,
    tensor_ranks: Amount = 1,
    expert_ranks: Amount = 1,
    expert_tensor_ranks: Amount = 1,
) -> Parameters:
    """Parameters of one pipeline rank, all its chunks together, under an even split of the layers."""
    stages = stages_of_rank(pipeline_rank, num_stages, chunks_per_rank)
    parts = num_stages * chunks_per_rank
    return of_stages(model, stages, parts, tensor_ranks, expert_ranks, expert_tensor_ranks)


def of_stages(
    model: Model,
    stages: Sequence[int],
    num_parts: int,
    tensor_ranks: Amount = 1,
    expert_ranks: Amount = 1,
    expert_tensor_ranks: Amount = 1,
) -> Parameters:
    """Parameters of some of ``num_parts`` equal virtual stages on one rank: with the first the embedding, with the last
    the head."""
    total, experts = sum(_ends_of(model, stages, num_parts, tensor_ranks)), 0
    for kind, count in layers_of_stages(model, stages, num_parts):
        one = layer(kind, tensor_ranks, expert_ranks, expert_tensor_ranks)
        total, experts = total + count * one.dense, experts + count * one.experts
    return Parameters(total, experts)


def units_of_rank(
    model: Model,
    pipeline_rank: int,
    *,
    num_stages: int = 1,
    chunks_per_rank: int = 1,
    tensor_ranks: Amount = 1,
    expert_ranks: Amount = 1,
    expert_tensor_ranks: Amount = 1,
) -> Parameters:
    """The most that sharding gathers at once on a rank: a layer, embedding with positions, or final norm with head.

    Of the experts: those of one layer.
    """
    stages = stages_of_rank(pipeline_rank, num_stages, chunks_per_rank)
    parts = num_stages * chunks_per_rank
    return units_of_stages(model, stages, parts, tensor_ranks, expert_ranks, expert_tensor_ranks)


def units_of_stages(
    model: Model,
    stages: Sequence[int],
    num_parts: int,
    tensor_ranks: Amount = 1,
    expert_ranks: Amount = 1,
    expert_tensor_ranks: Amount = 1,
) -> Parameters:
    """`units_of_rank` of a rank with some of ``num_parts`` equal virtual stages."""
    dense = _ends_of(model, stages, num_parts, tensor_ranks)
    experts: list[Amount] = [0]
    for kind, _ in layers_of_stages(model, stages, num_parts):
        one = layer(kind, tensor_ranks, expert_ranks, expert_tensor_ranks)
        dense.append(one.dense)
        experts.append(one.experts)
    return Parameters(_largest(dense), _largest(experts))


def _ends_of(model: Model, stages: Sequence[int], num_parts: int, tensor_ranks: Amount) -> list[Amount]:
    found, first = [], 0 in stages
    if first:
        found.append(embedding(model, tensor_ranks))
    if num_parts - 1 in stages:
        found.append(head(model, tensor_ranks, alone=first))
    return found


def _beside_experts(kind: Layer) -> list[Weight]:
    return [weight for weight in kind.weights if weight.part != "experts"]


def _experts(kind: Layer) -> list[Weight]:
    return [weight for weight in kind.weights if weight.part == "experts"]


def _padded(weights: Iterable[Weight], ranks: int) -> list[Weight]:
    """A vocabulary that the ranks do not divide is padded, as launchers do."""
    return [
        replace(weight, out_features=-(-weight.out_features // ranks) * ranks)
        if weight.name in ("embedding", "head")
        else weight
        for weight in weights
    ]


def _largest(amounts: list[Amount]) -> Amount:
    found = amounts[0]
    for amount in amounts[1:]:
        found = np.maximum(found, amount) if np.ndim(found) or np.ndim(amount) else max(found, amount)
    return found


def _each(count: Callable[..., int], *ranks: Amount) -> Amount:
    """``count`` of every combination in arrays of rank counts, each asked once; of plain numbers, a plain number."""
    if not any(np.ndim(each) for each in ranks):
        return count(*(int(each) for each in ranks))
    arrays = np.broadcast_arrays(*ranks)
    values, places = zip(*(np.unique(array, return_inverse=True) for array in arrays), strict=True)
    shape = tuple(len(each) for each in values)
    codes = np.ravel_multi_index([place.reshape(arrays[0].shape) for place in places], shape)
    occurring, where = np.unique(codes, return_inverse=True)
    chosen = [each[index] for each, index in zip(values, np.unravel_index(occurring, shape), strict=True)]
    table = np.array([count(*(int(number) for number in row)) for row in zip(*chosen, strict=True)], dtype=np.int64)
    return table[where].reshape(codes.shape)
