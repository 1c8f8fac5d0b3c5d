"""Where to measure next: first every curve coarsely, then where the curves bend.

A size between two others is predicted from them, linear in the logarithms as a lookup would. Where prediction and
measurement disagree most, times the distance of the two, the wider of the two gaps is halved. The choice depends on
the samples alone, so a run that continues chooses as one that was never interrupted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from profiles.measure.effort import Measured, log_interpolated
from profiles.measure.place import Curve, Ladder, Place, Sample

LEAST_RATIO = 1.15
"""Sizes closer than this are one place: noise would draw more and more of them."""


@dataclass(frozen=True)
class Bend:
    """A disagreement at a size between two others: the relative error in logarithms, weighted by their distance."""

    weight: float
    place: Place


def next_place(
    ladders: Sequence[Ladder], measured: Measured, skipped: Collection[Place], tolerance: float
) -> Place | None:
    """The next place to measure, None once every prediction is within `tolerance` (a relative error)."""
    return _next_rung(ladders, measured, skipped) or _next_bend(measured, skipped, tolerance)


def _next_rung(ladders: Sequence[Ladder], measured: Measured, skipped: Collection[Place]) -> Place | None:
    """The smallest open size of the curve that is least far up its ladder; families take turns."""
    gone: dict[str, list[int]] = {}
    openings = []
    for number, ladder in enumerate(ladders):
        own = measured.get(ladder.curve, {})
        left = [size for size in ladder.sizes if size not in own and Place(ladder.curve, size) not in skipped]
        count = gone.setdefault(ladder.curve.family, [0, 0])
        count[0] += len(ladder.sizes) - len(left)
        count[1] += len(ladder.sizes)
        if left:
            openings.append((len(ladder.sizes) - len(left), number, Place(ladder.curve, left[0])))
    if not openings:
        return None

    def order(opening: tuple[int, int, Place]) -> tuple[float, int, int]:
        done, total = gone[opening[2].curve.family]
        return done / total, opening[0], opening[1]

    return min(openings, key=order)[2]


def _next_bend(measured: Measured, skipped: Collection[Place], tolerance: float) -> Place | None:
    bends = [bend for curve in sorted(measured) for bend in _bends(curve, measured[curve], skipped, tolerance)]
    return min(bends, key=lambda bend: (-bend.weight, bend.place)).place if bends else None


def _bends(curve: Curve, samples: Mapping[int, Sample], skipped: Collection[Place], tolerance: float) -> list[Bend]:
    sizes = sorted(samples)
    bends = []
    for low, size, high in zip(sizes, sizes[1:], sizes[2:], strict=False):
        predicted = log_interpolated(size, (low, samples[low].median_s), (high, samples[high].median_s))
        error = abs(float(np.log(predicted / samples[size].median_s)))
        # A size whose own runs scatter as much tells nothing about the curve.
        if error <= max(np.log1p(tolerance), samples[size].spread):
            continue
        gaps = sorted(((low, size), (size, high)), key=lambda gap: -gap[1] / gap[0])
        for gap in gaps:
            middle = halved(gap, curve.step)
            place = Place(curve, middle) if middle is not None else None
            if place is not None and place not in skipped:
                bends.append(Bend(error * float(np.log(high / low)), place))
                break
    return bends


def halved(gap: tuple[int, int], step: int) -> int | None:
    """The geometric middle of a gap as a multiple of `step`, None if the gap is too narrow for one."""
    low, high = gap
    if high / low < LEAST_RATIO**2:
        return None
    root = float(np.sqrt(low * high))
    # Round sizes to three bits or so: kernels like them, and so do readers.
    grain = max(step, step * 2 ** int(np.log2(max(1.0, root / step / 8))))
    middle = round(root / grain) * grain
    return middle if low < middle < high else None
