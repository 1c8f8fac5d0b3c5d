"""How far a formula is off experts that were not measured, from how far it is off those that were.

A formula of a few numbers misses what a kernel does at a given fill of its experts, and misses it alike for experts of
like size. So what it is off along each measured curve is carried over, the curves nearest in size counting most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiles.sizes import Floats

NEAR = 0.1
"""Curves nearer than this, as a distance of log sizes, count about alike."""
FALL = 3
"""Weights fall with this power of the distance: held-out geometries are met best by 3 or 4."""


@dataclass(frozen=True)
class OffCurve:
    """log(measured / formula) of one geometry, by ascending log copies an expert; ``sizes`` are logs of its sizes."""

    sizes: Floats
    copies: Floats
    off: Floats


def off_curve(sizes: Floats, copies: Floats, ratio: Floats) -> OffCurve:
    """The curve of rows in any order: positive sizes, copies an expert, and measured over formula."""
    order = np.argsort(copies, kind="stable")
    return OffCurve(np.log(sizes), np.log(copies[order]), np.log(ratio[order]))


def correction(curves: Sequence[OffCurve], sizes: Floats, copies: Floats) -> Floats:
    """What to multiply the formula by at ``copies`` an expert, for experts of ``sizes``; ones without any curve.

    Beyond a curve's ends it holds the level measured there.
    """
    if not curves:
        return np.ones_like(copies)
    apart = np.array([float(((curve.sizes - np.log(sizes)) ** 2).sum()) for curve in curves])
    weight = (np.sqrt(apart) + NEAR) ** -FALL
    each = np.array([np.interp(np.log(copies), curve.copies, curve.off) for curve in curves])
    return np.asarray(np.exp(weight @ each / weight.sum()))
