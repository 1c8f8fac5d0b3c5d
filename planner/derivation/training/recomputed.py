"""Seconds of what selective recomputation runs again before a layer's backward."""

from __future__ import annotations

from collections.abc import Collection

from planner.derivation.training.cuts import Cuts
from planner.derivation.training.device import Device
from planner.derivation.training.elementwise import activation_bytes, elementwise_part, norm_bytes
from planner.derivation.training.matrix_products import Sized
from planner.derivation.training.parts import Part
from planner.memory.activations import Module
from profiles.geometry.model import LayerKind

UP_PROJECTIONS = ("q_b", "kv_b")
"""Of latent attention; a query that is not compressed has none."""


def recomputed_parts(
    device: Device, kind: LayerKind, cuts: Cuts, modules: Collection[Module], attention: Part, up: Collection[Part]
) -> list[Part]:
    """``attention`` is its forward, ``up`` are the up-projections'."""
    parts: list[Part] = []
    if "core_attention" in modules:
        parts.append(attention)
    if "norms" in modules:
        parts.append(elementwise_part(device, 2 * norm_bytes(kind.hidden, cuts, device.element_bytes)[0]))
    if "ffn_activation" in modules:
        parts.append(elementwise_part(device, activation_bytes(kind.feed_forward, cuts, device.element_bytes)[0]))
    if "latent_up" in modules:
        parts += up
    return parts


def up_projections(wanted: Collection[Sized]) -> list[Sized]:
    """Those of a layer's products."""
    return [one for one in wanted if one.product.name in UP_PROJECTIONS]
