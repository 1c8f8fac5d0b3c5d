"""Seconds of what tensor parallelism gathers and sums around the products of a layer."""

from __future__ import annotations

import numpy as np

from planner.derivation.training.collectives import collective_part
from planner.derivation.training.cuts import Bools, Cuts
from planner.derivation.training.device import Device
from planner.derivation.training.parts import Part
from planner.derivation.training.reached import Missing
from planner.memory.messages import tensor_message_bytes
from profiles.geometry.attention import LatentAttention
from profiles.geometry.feed_forward import Experts
from profiles.geometry.model import LayerKind


def tensor_parts(device: Device, kind: LayerKind, cuts: Cuts, missing: Missing) -> tuple[list[Part], list[Part]]:
    """Forward and backward: around attention, and around a dense network or shared experts.

    With sequence parallelism inputs are gathered and sums scattered, without it sums are all-reduced; of latent
    attention what was compressed is gathered. Routed experts get their tokens by other means. The second gather of
    inputs for weight gradients is left out: launchers hide it behind a product.
    """
    forward, backward = [], []
    for width in _widths(kind):
        ahead, back = gathered_and_summed(device, width, kind.hidden, cuts, missing)
        forward += ahead
        backward += back
    return forward, backward


def gathered_and_summed(
    device: Device, gathered: int, summed: int, cuts: Cuts, missing: Missing
) -> tuple[list[Part], list[Part]]:
    """Before products cut by output features, ``gathered`` numbers a token; behind those cut by input, ``summed``."""
    parts: dict[tuple[str, int], Part] = {}
    for operation, among in (("all_gather", True), ("reduce_scatter", True), ("all_reduce", False)):
        for width in {gathered, summed}:
            parts[operation, width] = tensor_collective(
                device, operation, width, cuts, cuts.sequence_parallel == among, missing
            )
    forward = [parts["all_gather", gathered], parts["reduce_scatter", summed], parts["all_reduce", summed]]
    backward = [parts["all_gather", summed], parts["reduce_scatter", gathered], parts["all_reduce", gathered]]
    return forward, backward


def tensor_collective(device: Device, operation: str, width: int, cuts: Cuts, where: Bools, missing: Missing) -> Part:
    """One collective of ``width`` numbers of each token in the layouts of a mask."""
    ranks = np.where(where, cuts.tp, 1)
    message = np.asarray(tensor_message_bytes(width, cuts.tokens, device.element_bytes))
    return collective_part(device, "tp", operation, message, ranks, ranks > device.node, missing)


def _widths(kind: LayerKind) -> list[int]:
    """Numbers a token that are gathered before each pair of products."""
    attention = kind.attention
    first = kind.hidden
    if isinstance(attention, LatentAttention) and attention.q_lora is not None:
        first = attention.q_lora + attention.kv_lora + attention.rope
    alone = isinstance(kind.feed_forward, Experts) and not kind.feed_forward.shared_ffn
    return [first] if alone else [first, kind.hidden]
