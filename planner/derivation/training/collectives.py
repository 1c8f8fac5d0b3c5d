"""Seconds of collectives over groups of ranks, inside nodes from the profile, between them from the cluster's link."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.derivation.account import Floats
from planner.derivation.training.cuts import Bools, Ints
from planner.derivation.training.device import Device
from planner.derivation.training.parts import Component, Part
from planner.derivation.training.reached import Missing, left_out, reached, unpriced
from profiles.errors import ProfileError
from profiles.priced import MODELLED, Priced
from profiles.pricing import Extrapolate

NETWORK = "network"
Inside = Callable[[Floats, Floats, Extrapolate], Priced]
Between = Callable[[Floats, Floats], Priced]


def collective_part(
    device: Device,
    component: Component,
    operation: str,
    message_bytes: Floats,
    ranks: Ints,
    crosses: Bools,
    missing: Missing,
) -> Part:
    """One collective in every layout whose group has more than one rank; ``crosses``: it has ranks in several nodes."""

    def inside(message: Floats, count: Floats, extrapolate: Extrapolate) -> Priced:
        return device.profile.collective(operation, message, count, extrapolate=extrapolate)

    def between(message: Floats, count: Floats) -> Priced:
        return device.cluster.network_collective(operation, message, count)

    return tiered_part(device, component, operation, message_bytes, ranks, crosses, missing, inside, between)


def tiered_part(
    device: Device,
    component: Component,
    family: str,
    message_bytes: Floats,
    ranks: Ints,
    crosses: Bools,
    missing: Missing,
    inside: Inside,
    between: Between,
) -> Part:
    """What ``inside`` or ``between`` says of each group of more than one rank; 0 for the others."""
    seconds, source = np.zeros(len(ranks)), np.full(len(ranks), MODELLED, dtype=np.int8)
    # One lookup for each number of ranks: a number that was not measured must not refuse the others.
    for count in np.unique(ranks[(ranks > 1) & ~crosses]).tolist():
        rows = np.flatnonzero((ranks == count) & ~crosses)
        message = message_bytes[rows]

        def price(extrapolate: Extrapolate, message: Floats = message, count: int = count) -> Priced:
            return inside(message, np.full(len(message), float(count)), extrapolate)

        found = reached(device, family, missing, rows, price)
        seconds[rows], source[rows] = found.seconds, found.source
    rows = np.flatnonzero((ranks > 1) & crosses)
    if len(rows):
        found = between_nodes(missing, rows, lambda: between(message_bytes[rows], ranks[rows].astype(np.float64)))
        seconds[rows], source[rows] = found.seconds, found.source
    return Part(component, family, seconds, source)


def between_nodes(missing: Missing, rows: Ints, price: Callable[[], Priced]) -> Priced:
    """Prices of the link between nodes, each for the layout that ``rows`` names; marked where nobody states it."""
    try:
        return price()
    except ProfileError as error:
        missing.add(NETWORK, rows, left_out(error))
        return unpriced(len(rows))
