"""Seconds of what selective recomputation runs again before a layer's backward."""

from __future__ import annotations

from collections.abc import Collection

from planner.derivation.training.cuts import Cuts
from planner.derivation.training.device import Device
from planner.derivation.training.elementwise import (
    activation_bytes,
    elementwise_part,
    norm_bytes,
    routed_activation_bytes,
)
from planner.derivation.training.matrix_products import Sized
from planner.derivation.training.parts import Part
from planner.memory.activations import Module, with_parts
from profiles.geometry.feed_forward import Experts
from profiles.geometry.model import LayerKind

UP_PROJECTIONS = ("q_b", "kv_b")
"""Of latent attention; a query that is not compressed has none."""


def recomputed_parts(
    device: Device, kind: LayerKind, cuts: Cuts, modules: Collection[Module], attention: Part, up: Collection[Part]
) -> list[Part]:
    """``attention`` is its forward, ``up`` are the up-projections'."""
    again, network, width = with_parts(modules), kind.feed_forward, device.element_bytes
    parts: list[Part] = []
    if "core_attention" in again:
        parts.append(attention)
    norms = len(again & {"attention_norm", "ffn_norm"})
    if norms:
        parts.append(elementwise_part(device, norms * norm_bytes(kind.hidden, cuts, width)[0]))
    if "ffn_activation" in again:
        parts.append(elementwise_part(device, activation_bytes(network, cuts, width)[0]))
    if "expert_activation" in again and isinstance(network, Experts):
        parts.append(elementwise_part(device, routed_activation_bytes(network, cuts, device.load_factor, width)))
    if "latent_up" in again:
        parts += up
    return parts


def up_projections(wanted: Collection[Sized]) -> list[Sized]:
    """Those of a layer's products."""
    return [one for one in wanted if one.product.name in UP_PROJECTIONS]
