"""Seconds of one layer of any kind in training, on one rank, for one micro-batch, over arrays of layouts."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

import numpy as np

from planner.derivation.training.causal import attention_backward, attention_forward
from planner.derivation.training.context_parallel import ring_parts
from planner.derivation.training.cuts import Cuts, Ints
from planner.derivation.training.device import Device
from planner.derivation.training.elementwise import elementwise_part, layer_bytes
from planner.derivation.training.expert_parallel import exchange_parts
from planner.derivation.training.matrix_products import Sized, product_parts
from planner.derivation.training.parts import LayerTimes, Part
from planner.derivation.training.rank_products import rank_products
from planner.derivation.training.reached import Missing
from planner.derivation.training.recomputed import recomputed_parts, up_projections
from planner.derivation.training.routed_experts import expert_parts
from planner.derivation.training.tensor_parallel import tensor_parts
from planner.memory.activations import Module
from profiles.errors import ProfileError
from profiles.geometry.feed_forward import Experts
from profiles.geometry.model import LayerKind
from profiles.geometry.weights import Weight

CORE_ATTENTION: tuple[Module, ...] = ("core_attention",)


def layer_times(
    device: Device, kind: LayerKind, cuts: Cuts, modules: Collection[Module] = CORE_ATTENTION
) -> LayerTimes:
    """Forward and backward of a layer, and of the ``modules`` that selective recomputation runs again.

    Left out: what a launch costs, the router's softmax and choice, dropout. Raises ProfileError (missing_field) if the
    memory bandwidth is unknown; all else that has no price is marked as missing.
    """
    found = _beside_experts(device, kind, cuts, modules)
    if not isinstance(kind.feed_forward, Experts):
        return found
    missing = Missing(found.missing, found.reasons)
    forward, backward = expert_parts(device, kind.hidden, kind.feed_forward, cuts, missing)
    exchanged = exchange_parts(device, kind.hidden, kind.feed_forward, cuts, missing)
    return replace(
        found,
        forward=(*found.forward, *forward, *exchanged),
        backward=(*found.backward, *backward, *exchanged),
    )


def _beside_experts(device: Device, kind: LayerKind, cuts: Cuts, modules: Collection[Module]) -> LayerTimes:
    """All but routed experts, which does not depend on how these are cut: priced once for every other cut."""
    first, where = _distinct(cuts)
    few = cuts.at(first)
    missing = Missing.none(len(few))
    sized = sized_products(device, kind.weights, few, missing)
    products, gradients = product_parts(device, sized, missing)
    up, _ = product_parts(device, up_projections(sized), missing)
    attention = attention_forward(device, kind.attention, few, missing)
    ring, ring_back = ring_parts(device, kind.attention, few, missing)
    gathered, gathered_back = tensor_parts(device, kind, few, missing)
    moved = layer_bytes(kind.hidden, kind.attention, kind.feed_forward, few, device.element_bytes)
    elementwise, elementwise_back = (elementwise_part(device, amount) for amount in moved)
    again = recomputed_parts(device, kind, few, modules, attention, up)
    forward = [*products, attention, elementwise, *gathered, ring]
    backward = [*gradients, attention_backward(attention), elementwise_back, *gathered_back, ring_back]
    return LayerTimes(
        spread(forward, where),
        spread(backward, where),
        spread(again, where),
        cuts.cp,
        missing.rows[where],
        missing.reasons,
    )


def sized_products(device: Device, weights: Iterable[Weight], cuts: Cuts, missing: Missing) -> list[Sized]:
    """A rank's products of all weights but routed experts: cut ones of all tokens, whole ones of its own."""
    mine = [weight for weight in weights if weight.part != "experts" and not _is_column(weight)]
    found = []
    for ranks in np.unique(cuts.tp).tolist():
        rows = np.flatnonzero(cuts.tp == ranks)
        try:
            shared = rank_products(mine, ranks)
        except ProfileError as error:
            missing.add("tp", rows, f"tp {ranks}: {error.message}")
            continue
        for one in shared:
            tokens = cuts.own_tokens if one.whole else cuts.tokens
            dtype = device.activation_dtype if one.product.name == "router" else device.dtype
            found.append(Sized(one.product, dtype, tokens[rows], rows))
    return found


def spread(parts: Iterable[Part], where: Ints) -> tuple[Part, ...]:
    """Parts of few layouts as those of the layouts that ``where`` numbers."""
    return tuple(replace(part, seconds=part.seconds[where], source=part.source[where]) for part in parts)


def _distinct(cuts: Cuts) -> tuple[Ints, Ints]:
    """The first layout of every cut that does not ask how experts are cut, and the number of each layout's own."""
    stacked = np.stack([cuts.micro_batch, cuts.tp, cuts.cp, cuts.sequence_parallel.astype(np.int64)])
    _, first, where = np.unique(stacked, axis=1, return_index=True, return_inverse=True)
    return first.astype(np.int64), where.reshape(-1).astype(np.int64)


def _is_column(weight: Weight) -> bool:
    """The gate that weighs shared experts: one number a token."""
    return weight.out_features == 1
