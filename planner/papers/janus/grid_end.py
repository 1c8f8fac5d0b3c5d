"""Cheaper pools that a plan may leave out only because their batch is past the end of the batch grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.papers.janus.model import Option
from planner.papers.janus.search import TIE, Choice, cheapest


@dataclass(frozen=True)
class LeftOut:
    """Such pools, the batch where the data end, and the batch that they must reach so that none is left out."""

    pools: Choice
    ends: float
    wanted: int


def left_out(options: Sequence[Option], demands: Sequence[float], objectives: Sequence[float]) -> LeftOut | None:
    """The first of demands for which cheaper pools than its objective would do, were a_max past the grid that of its
    end; None where there is none.

    a_max never falls with the batch and all else is known of any, so no longer grid gives cheaper pools where these
    are none. Past demand x SLO requests in flight no pools are in time: so far the data have to go.
    """
    if not demands:
        return None
    wanted = {option.device: max(demands) * option.slo_s for option in options}
    short = [option for option in options if option.largest_batch < wanted[option.device]]
    if not short:
        return None
    found = cheapest([_continued(option, wanted[option.device]) for option in short], demands)
    ends = {option.device: option.largest_batch for option in short}
    for best, objective in zip(found, objectives, strict=True):
        if best and best[0].objective < objective * (1 - TIE):
            device = best[0].option.device
            return LeftOut(best[0], ends[device], math.ceil(wanted[device] * (1 - TIE)))
    return None


def _continued(option: Option, batch: float) -> Option:
    """An option whose data go a little past a batch, as they are at their end."""
    grid, rows = np.append(option.grid, 2 * batch), np.append(option.rows, option.rows[:, -1:], axis=1)
    return replace(option, grid=grid, rows=rows)
