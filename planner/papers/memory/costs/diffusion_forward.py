"""Seconds of the forward of a diffusion transformer's block on one rank, one micro-batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.derivation.account import Floats
from planner.derivation.training.context_parallel import ring_parts
from planner.derivation.training.cuts import Cuts
from planner.derivation.training.device import Device
from planner.derivation.training.elementwise import elementwise_part, layer_bytes
from planner.derivation.training.matrix_products import Sized, product_parts
from planner.derivation.training.parts import LayerTimes, Part
from planner.derivation.training.reached import Missing, reached
from planner.derivation.training.tensor_parallel import gathered_and_summed
from profiles.geometry import DiTGeometry, Projection
from profiles.geometry.diffusion_blocks import DiffusionBlock
from profiles.geometry.products import Product
from profiles.priced import MODELLED, Priced
from profiles.pricing import Extrapolate

_CUT_BY_INPUT = ("out", "ffn_out", "cross_out")
_ALL = np.array([0])


def block_forward(device: Device, model: DiTGeometry, block: DiffusionBlock, cuts: Cuts) -> LayerTimes:
    """The forward of one block; ``cuts`` is one layout, whose sequence is of image or video tokens.

    Tokens of the text are whole on every rank of a context-parallel group. Modulation, a product a sample, and rotary
    embeddings of the text are left out. Raises ProfileError (missing_field) if the memory bandwidth is unknown.
    """
    missing = Missing.none(len(cuts))
    products, _ = product_parts(device, list(_products(device, model, block, cuts)), missing)
    gathered = [gathered_and_summed(device, block.hidden, block.hidden, cuts, missing)[0] for _ in range(2)]
    moved, _ = layer_bytes(block.hidden, block.attention, block.feed_forward, cuts, device.element_bytes)
    ring, _ = ring_parts(device, block.attention, cuts, missing)
    forward = [
        *products,
        *_attention(device, model, cuts, missing),
        elementwise_part(device, moved),
        *(part for parts in gathered for part in parts),
        ring,
    ]
    return LayerTimes(tuple(forward), (), (), cuts.cp, missing.rows, missing.reasons)


def _products(device: Device, model: DiTGeometry, block: DiffusionBlock, cuts: Cuts) -> Iterator[Sized]:
    text = cuts.micro_batch * float(model.text_tokens)
    rows = {"image": cuts.tokens, "text": text, "joint": cuts.tokens + text}
    for one in _projections(model, block):
        ranks = int(cuts.tp[0])
        n, k = one.out_features, one.in_features
        product = Product(one.name, n, k // ranks) if one.name in _CUT_BY_INPUT else Product(one.name, n // ranks, k)
        if rows[one.rows][0]:
            yield Sized(product, device.dtype, np.asarray(rows[one.rows]), _ALL, float(one.count))


def _projections(model: DiTGeometry, block: DiffusionBlock) -> tuple[Projection, ...]:
    return model.projections() if block.kind == "adaln" else model.projections(block.kind)


def _attention(device: Device, model: DiTGeometry, cuts: Cuts, missing: Missing) -> Iterator[Part]:
    """A rank's queries to the keys of all; those of cross-attention to the keys of the text."""
    own, length, text = cuts.tokens / cuts.micro_batch, float(cuts.sequence_length), float(model.text_tokens)
    if model.joint:
        yield _kernel(device, own + text, length + text, model, cuts, missing)
        return
    yield _kernel(device, own, length, model, cuts, missing)
    if text:
        yield _kernel(device, own, text, model, cuts, missing)


def _kernel(device: Device, queries: Floats, keys: float, model: DiTGeometry, cuts: Cuts, missing: Missing) -> Part:
    heads, dtype = model.heads / cuts.tp, device.activation_dtype

    def price(extrapolate: Extrapolate) -> Priced:
        return device.profile.attention(queries, keys, heads, model.head_dim, dtype=dtype, extrapolate=extrapolate)

    family = f"encoder_attention/{dtype}"
    found = reached(device, family, missing, _ALL, price)
    # One sequence is measured; the others of a micro-batch take as long.
    source = np.where(cuts.micro_batch > 1, MODELLED, found.source).astype(np.int8)
    return Part("attention", family, cuts.micro_batch * found.seconds, source)
