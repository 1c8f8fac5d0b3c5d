"""Seconds of a layer's attention between its projections: forward, and backward as so many forwards."""

from __future__ import annotations

import numpy as np

from planner.derivation.causal_attention import grouped_causal
from planner.derivation.training.cuts import Cuts, Ints
from planner.derivation.training.device import Device
from planner.derivation.training.parts import Part
from planner.derivation.training.reached import Missing, reached
from profiles.geometry.attention import Attention, LatentAttention
from profiles.latent import has_known_widths, latent_prefill
from profiles.priced import MODELLED, Priced
from profiles.pricing import Extrapolate

BACKWARD_ATTENTION = 2.5
"""FLOPs of the backward over the forward kernel: five products against two (FlashAttention-2, arXiv 2307.08691)."""


def attention_forward(device: Device, attention: Attention, cuts: Cuts, missing: Missing) -> Part:
    """Causal attention of whole sequences; of c context ranks each does 1/c, which is modelled.

    Attention is never narrower than activations.
    """
    family = f"{'mla_prefill' if isinstance(attention, LatentAttention) else 'prefill_attention'}/"
    family += device.activation_dtype
    rows = np.arange(len(cuts))
    if isinstance(attention, LatentAttention) and not (attention.indexer is None and has_known_widths(attention)):
        missing.add(family, rows, "no rows or formula of sparse attention, or of latent attention of these widths")
        return Part("attention", family, np.full(len(cuts), np.nan), np.full(len(cuts), MODELLED, dtype=np.int8))
    stands_in = False

    def price(extrapolate: Extrapolate) -> Priced:
        nonlocal stands_in
        found, stands_in = _whole(device, attention, cuts, extrapolate)
        return found

    found = reached(device, family, missing, rows, price)
    source = np.where((cuts.cp > 1) | stands_in, MODELLED, found.source).astype(np.int8)
    return Part("attention", family, found.seconds / cuts.cp, source)


def attention_backward(forward: Part) -> Part:
    """The same work so many times over."""
    source = np.full_like(forward.source, MODELLED)
    return Part("attention", forward.family, BACKWARD_ATTENTION * forward.seconds, source)


def heads_on_rank(attention: Attention, ranks: Ints) -> tuple[Ints, Ints]:
    """Query and key-value heads; several ranks hold a head each where there are fewer heads than ranks."""
    heads = np.maximum(attention.heads // ranks, 1)
    if isinstance(attention, LatentAttention):
        return heads, heads
    return heads, np.maximum(attention.kv_heads // ranks, 1)


def _whole(device: Device, attention: Attention, cuts: Cuts, extrapolate: Extrapolate) -> tuple[Priced, bool]:
    """A rank's heads over whole sequences, and whether other shapes stand in for a window."""
    length, batch = cuts.sequence_length, cuts.micro_batch.astype(np.float64)
    heads, kv_heads = heads_on_rank(attention, cuts.tp)
    dtype = device.activation_dtype
    if isinstance(attention, LatentAttention):
        return latent_prefill(device.profile, length, batch, heads, dtype=dtype, extrapolate=extrapolate), False
    window = attention.window
    return grouped_causal(
        device.profile, length, batch, heads, kv_heads, attention.head_dim, window, dtype=dtype, extrapolate=extrapolate
    )
