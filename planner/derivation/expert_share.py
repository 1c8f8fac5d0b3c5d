"""Seconds of a rank's experts, as its share of what all of them take on one device."""

from __future__ import annotations

import numpy as np

from planner.derivation.account import Floats
from profiles.experts import ExpertRows, launch_seconds, whole_products
from profiles.priced import Priced
from profiles.pricing import Extrapolate


def expert_share(rows: ExpertRows, tokens: Floats, ranks: Floats | int, extrapolate: Extrapolate) -> Priced:
    """When all ranks together have ``tokens`` before routing; what a launch costs is not shared.

    Raises ProfileError outside the tables.
    """
    price = whole_products(rows, tokens, extrapolate)
    launch = np.minimum(launch_seconds(rows), price.seconds)
    return Priced(launch + (price.seconds - launch) / ranks, price.source)
