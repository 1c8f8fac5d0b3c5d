"""Multipliers that measured runs teach, and a layer's times under them as rows of a cost table hold them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from planner.derivation.account import Floats
from planner.derivation.training.parts import COMMUNICATED, Component, LayerTimes, Part
from planner.validation import Document
from profiles.priced import SOURCES, STATED


class Calibration(Document):
    """Multipliers of priced seconds, and seconds that no price has; left out, prices stay as they are."""

    gemm: float = Field(default=1.0, gt=0, le=100, description="of products")
    attention: float = Field(default=1.0, gt=0, le=100)
    experts: float = Field(default=1.0, gt=0, le=100)
    elementwise: float = Field(default=1.0, gt=0, le=100)
    communication: float = Field(default=1.0, gt=0, le=100, description="of collectives, rings, exchanges and hops")
    layer_s: float = Field(default=0.0, ge=0, le=10, description="of each layer's forward, twice of its backward")
    fixed_s: float = Field(default=0.0, ge=0, le=1e4, description="of a step")

    def of(self, component: Component) -> float:
        """The multiplier of a component."""
        return self.communication if component in COMMUNICATED else float(getattr(self, component))


@dataclass(frozen=True)
class RowTimes:
    """Seconds of one layer and micro-batch over the layouts, nan where a price is missing.

    ``by_source`` (4, layouts) and ``by_family`` split forward, backward and what communication shows of both.
    """

    forward_s: Floats
    backward_s: Floats
    comm_forward_s: Floats
    comm_backward_s: Floats
    selective_s: Floats
    by_source: Floats
    by_family: dict[str, Floats]


def calibrated(times: LayerTimes, calibration: Calibration, *, layer: bool = True) -> RowTimes:
    """Parts times their multipliers; of the ring over context ranks, what attention does not hide.

    A step of the ring hides behind the attention of the block before it, so of c blocks c - 1 hide something.
    ``layer``: whether it is a layer, which takes ``layer_s`` more, or an end.
    """
    launch = calibration.layer_s if layer else 0.0
    forward = _exposed(_scaled(times.forward, calibration), times)
    backward = _exposed(_scaled(times.backward, calibration), times)
    zero = np.zeros(len(times.missing))
    by_source = np.zeros((len(SOURCES), len(zero)))
    by_family: dict[str, Floats] = {}
    by_source[STATED] += 3 * launch
    for part in (*forward, *backward):
        by_family[part.family] = by_family.get(part.family, zero) + part.seconds
        for index in range(len(SOURCES)):
            by_source[index] += np.where(part.source == index, part.seconds, 0.0)
    return RowTimes(
        forward_s=_sum(forward, zero, communicated=False) + launch,
        backward_s=_sum(backward, zero, communicated=False) + 2 * launch,
        comm_forward_s=_sum(forward, zero, communicated=True),
        comm_backward_s=_sum(backward, zero, communicated=True),
        selective_s=_sum(_scaled(times.selective, calibration), zero, communicated=False),
        by_source=by_source,
        by_family=by_family,
    )


def _scaled(parts: Iterable[Part], calibration: Calibration) -> list[Part]:
    return [
        Part(part.component, part.family, calibration.of(part.component) * part.seconds, part.source) for part in parts
    ]


def _exposed(parts: list[Part], times: LayerTimes) -> list[Part]:
    attention = sum((part.seconds for part in parts if part.component == "attention"), np.zeros(len(times.cp)))
    hidden = attention * (times.cp - 1) / times.cp
    return [
        Part(part.component, part.family, np.maximum(part.seconds - hidden, 0.0), part.source)
        if part.component == "cp"
        else part
        for part in parts
    ]


def _sum(parts: Iterable[Part], zero: Floats, *, communicated: bool) -> Floats:
    mine = (part.seconds for part in parts if (part.component in COMMUNICATED) == communicated)
    return np.asarray(sum(mine, zero))
