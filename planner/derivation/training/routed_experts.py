"""Seconds of a rank's routed experts, forward and backward."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.derivation.expert_share import expert_share
from planner.derivation.training.cuts import Cuts
from planner.derivation.training.device import Device
from planner.derivation.training.matrix_products import BACKWARD_PRODUCTS, Sized, product_parts
from planner.derivation.training.parts import Part
from planner.derivation.training.reached import Missing, reached
from profiles.experts import FAMILY, ExpertRows
from profiles.geometry.feed_forward import Experts
from profiles.geometry.products import Product
from profiles.priced import MODELLED, Priced
from profiles.pricing import Extrapolate


def expert_parts(
    device: Device, hidden: int, experts: Experts, cuts: Cuts, missing: Missing
) -> tuple[list[Part], list[Part]]:
    """A rank's share of E experts over e ranks, each expert over u: copies K (T/q) u, weights 1/(e u) of all.

    Experts of two products, and dtypes without rows of experts, are products of their own, one after the other.
    """
    dtype, rows = device.experts_dtype, np.arange(len(cuts))
    uneven = np.flatnonzero(experts.ffn % cuts.etp)
    missing.add("etp", uneven, f"expert-tensor ranks do not divide the {experts.ffn} of an expert")
    tokens = cuts.own_tokens * cuts.ep * cuts.etp * device.load_factor
    if as_products(device, experts):
        return _as_products(device, hidden, experts, cuts, missing)
    of = ExpertRows(device.profile, hidden, experts.ffn, experts.count, experts.top_k, device.workload, dtype)
    family = f"{FAMILY}/{dtype}"

    def price(extrapolate: Extrapolate) -> Priced:
        return expert_share(of, tokens, (cuts.ep * cuts.etp).astype(np.float64), extrapolate)

    found = reached(device, family, missing, rows, price)
    source = np.where(cuts.etp > 1, MODELLED, found.source).astype(np.int8)
    back = np.full_like(source, MODELLED)
    return (
        [Part("experts", family, found.seconds, source)],
        [Part("experts", family, BACKWARD_PRODUCTS * found.seconds, back)],
    )


def as_products(device: Device, experts: Experts) -> bool:
    """Whether no rows of experts can price these: they are not gated, or none is of their dtype."""
    tables = device.profile.document.tables
    measured = any((table.family, table.dtype) == (FAMILY, device.experts_dtype) for table in tables)
    return not (experts.gated and measured)


def _as_products(
    device: Device, hidden: int, experts: Experts, cuts: Cuts, missing: Missing
) -> tuple[list[Part], list[Part]]:
    wanted = []
    copies = cuts.own_tokens * cuts.ep * cuts.etp * device.load_factor * experts.top_k / experts.count
    for ranks in np.unique(cuts.etp).tolist():
        rows = np.flatnonzero(cuts.etp == ranks)
        width = -(-experts.ffn // ranks)
        for n, k in (((2 if experts.gated else 1) * width, hidden), (hidden, width)):
            product = Product("expert", n, k)
            times = experts.count / cuts.ep[rows]
            wanted.append(Sized(product, device.experts_dtype, np.maximum(copies[rows], 1.0), rows, times))
    forward, backward = product_parts(device, wanted, missing)
    return (
        [replace(part, component="experts") for part in forward],
        [replace(part, component="experts") for part in backward],
    )
