"""Seconds of what stands around the layers in training: the embedding before them, the head and the loss behind."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from planner.derivation.training.cuts import Cuts
from planner.derivation.training.device import Device
from planner.derivation.training.elementwise import elementwise_part, embedding_bytes, head_bytes
from planner.derivation.training.matrix_products import Sized, product_parts
from planner.derivation.training.parts import LayerTimes, Part
from planner.derivation.training.reached import Missing
from planner.derivation.training.tensor_parallel import tensor_collective
from profiles.geometry.model import ModelGeometry
from profiles.geometry.products import Product


def end_times(device: Device, geometry: ModelGeometry, end: Literal["embedding", "head"], cuts: Cuts) -> LayerTimes:
    """Forward and backward of an end for one micro-batch; neither is ever recomputed.

    The vocabulary is cut over tensor ranks: each looks up its own rows, and the sum is scattered; the head's input is
    gathered, and the loss needs three numbers a token, which are left out. Raises ProfileError (missing_field).
    """
    missing = Missing.none(len(cuts))
    forward, backward = (_embedding if end == "embedding" else _head)(device, geometry, cuts, missing)
    return LayerTimes(tuple(forward), tuple(backward), (), cuts.cp, missing.rows, missing.reasons)


def _embedding(device: Device, geometry: ModelGeometry, cuts: Cuts, missing: Missing) -> tuple[list[Part], list[Part]]:
    apart, width = cuts.sequence_parallel, geometry.hidden
    moved = embedding_bytes(width, cuts, device.element_bytes)
    forward, backward = ([elementwise_part(device, amount)] for amount in moved)
    forward.append(tensor_collective(device, "reduce_scatter", width, cuts, apart, missing))
    forward.append(tensor_collective(device, "all_reduce", width, cuts, ~apart, missing))
    backward.append(tensor_collective(device, "all_gather", width, cuts, apart, missing))
    return forward, backward


def _head(device: Device, geometry: ModelGeometry, cuts: Cuts, missing: Missing) -> tuple[list[Part], list[Part]]:
    apart, width = cuts.sequence_parallel, geometry.hidden
    forward, backward = product_parts(device, _head_products(device, geometry, cuts), missing)
    ahead, back = head_bytes(width, geometry.vocab, cuts, device.element_bytes)
    forward += [
        elementwise_part(device, ahead),
        tensor_collective(device, "all_gather", width, cuts, apart, missing),
    ]
    backward += [
        elementwise_part(device, back),
        tensor_collective(device, "reduce_scatter", width, cuts, apart, missing),
        tensor_collective(device, "all_reduce", width, cuts, ~apart, missing),
    ]
    return forward, backward


def _head_products(device: Device, geometry: ModelGeometry, cuts: Cuts) -> list[Sized]:
    """A rank's rows of the vocabulary, as many on each."""
    found = []
    for ranks in np.unique(cuts.tp).tolist():
        rows = np.flatnonzero(cuts.tp == ranks)
        product = Product("head", math.ceil(geometry.vocab / ranks), geometry.hidden)
        found.append(Sized(product, device.activation_dtype, cuts.tokens[rows], rows))
    return found
