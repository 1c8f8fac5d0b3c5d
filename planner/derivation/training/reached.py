"""Lookups that price what the tables reach and mark the rest, in place of refusing all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from planner.derivation.training.cuts import Bools, Ints
from planner.derivation.training.device import Device
from profiles.errors import ProfileError
from profiles.priced import MODELLED, Priced
from profiles.pricing import Extrapolate

_LEFT_OUT = ("outside_measured_range", "missing_field")


@dataclass
class Missing:
    """Which layouts have no price, and why: the first message of each family."""

    rows: Bools
    reasons: dict[str, str] = field(default_factory=dict)

    @classmethod
    def none(cls, size: int) -> Missing:
        """Of ``size`` layouts, so far."""
        return cls(np.zeros(size, dtype=bool))

    def add(self, family: str, rows: Ints, message: str) -> None:
        """Mark layouts by their index."""
        if len(rows):
            self.rows[rows] = True
            self.reasons.setdefault(family, message)


def reached(
    device: Device, family: str, missing: Missing, rows: Ints, price: Callable[[Extrapolate], Priced]
) -> Priced:
    """The prices of lookups, each for the layout that ``rows`` names, under the device's own rule.

    Those that it refuses are nan, and their layouts marked in ``missing``. Rows inside the measured range are measured
    or interpolated, so what a model alone prices lies outside.
    """
    refused = None
    if device.extrapolate == "refuse":
        try:
            return price("refuse")
        except ProfileError as error:
            refused = left_out(error)
    try:
        modelled = price("roofline")
    except ProfileError as error:
        missing.add(family, rows, refused or left_out(error))
        return unpriced(len(rows))
    if refused is None:
        return modelled
    outside = modelled.source == MODELLED
    missing.add(family, rows[outside], refused)
    return Priced(np.where(outside, np.nan, modelled.seconds), modelled.source)


def unpriced(size: int) -> Priced:
    """No price for ``size`` layouts."""
    return Priced(np.full(size, np.nan), np.full(size, MODELLED, dtype=np.int8))


def left_out(error: ProfileError) -> str:
    """The message of a price that is not there; any other error is somebody's fault and goes on."""
    if error.code not in _LEFT_OUT:
        raise error
    return error.message
