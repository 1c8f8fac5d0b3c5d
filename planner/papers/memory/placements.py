"""Every placement that keeps the rules (page, sections 3.1 and 4), as arrays in the order of ties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.papers.memory.options import (
    Option,
    activations_options,
    gradients_options,
    optimizer_options,
    parameters_options,
)
from planner.papers.memory.problem import MemoryProblem
from planner.papers.memory.traffic import Floats, Groups, Traffic

Ints = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

EQUAL = 1 + 1e-9
"""Figures within this ratio tie."""
ROUNDED = 1 + 1e-12
"""What rounding may put above a capacity."""


@dataclass(frozen=True)
class Placements:
    """One entry a placement. ``modes`` [4] count a state's modes in the order of ties, ``prefixes`` [3] dimensions."""

    modes: Ints
    prefixes: Ints
    device_bytes: Floats
    host_bytes: Floats
    sent_bytes: Floats
    overhead_s: Floats

    def __len__(self) -> int:
        return len(self.overhead_s)

    def best(self, allowed: Truths) -> int | None:
        """The place of the least overhead; of ties fewer device bytes, fewer host bytes, then order. None: of none."""
        left = np.flatnonzero(allowed)
        if not left.size:
            return None
        for figures in (self.overhead_s, self.device_bytes, self.host_bytes):
            left = left[figures[left] <= figures[left].min() * EQUAL]
        return int(left[0])


def placements(problem: MemoryProblem) -> Placements:
    """All of them, whether they fit or not, sorted by modes as listed on the page, then prefixes.

    All ranks run the same one: its bytes are those of the fullest rank, its seconds those of the slowest.
    """
    found = [_of_rank(each) for each in problem.each_rank()]
    most = {name: np.max([getattr(one, name) for one in found], axis=0) for name in _FIGURES}
    return replace(found[0], **most)


_FIGURES = ("device_bytes", "host_bytes", "sent_bytes", "overhead_s")


def _of_rank(problem: MemoryProblem) -> Placements:
    """All of them on the problem's own rank."""
    groups = Groups(problem)
    offered = (
        parameters_options(groups),
        gradients_options(groups),
        optimizer_options(groups),
        activations_options(problem),
    )
    p, g, o, a = (axis.ravel() for axis in np.indices([len(options) for options in offered]))
    of = [_columns(options) for options in offered]
    i_p, i_g, i_o = of[0].prefix[p], of[1].prefix[g], of[2].prefix[o]
    carried = of[2].offloaded[o] | ~(of[0].offloaded[p] | of[1].offloaded[g])
    kept = (i_p <= i_g) & (i_g <= i_o) & carried
    chosen = [picked[kept] for picked in (p, g, o, a)]
    i_p, i_g, i_o = i_p[kept], i_g[kept], i_o[kept]
    once_s, once_bytes = _pairs(groups, groups.gradients_scatter_once)
    update_s, update_bytes = _pairs(groups, groups.parameters_update)
    own = [columns.at(picked) for columns, picked in zip(of, chosen, strict=True)]
    modes = np.array([columns.mode for columns in own], dtype=np.int64)
    prefixes = np.array([i_p, i_g, i_o], dtype=np.int64)
    order = np.lexsort((*prefixes[::-1], *modes[::-1]))
    return Placements(
        modes[:, order],
        prefixes[:, order],
        problem.other_bytes
        + problem.workspace_bytes
        + np.sum([columns.device_bytes for columns in own], axis=0)[order],
        np.sum([columns.host_bytes for columns in own], axis=0)[order],
        (np.sum([columns.sent_bytes for columns in own], axis=0) + once_bytes[i_g, i_o] + update_bytes[i_p, i_o])[
            order
        ],
        (np.sum([columns.seconds for columns in own], axis=0) + once_s[i_g, i_o] + update_s[i_p, i_o])[order],
    )


def fitting(problem: MemoryProblem, found: Placements) -> tuple[Truths, Truths]:
    """Which placements the device holds, and which the host does."""
    host_bytes = problem.host.capacity_bytes if problem.host else 0.0
    return (
        found.device_bytes <= problem.capacity_bytes * ROUNDED,
        found.host_bytes <= host_bytes * ROUNDED,
    )


@dataclass(frozen=True)
class _Columns:
    """Options of one state, field by field."""

    mode: Ints
    prefix: Ints
    offloaded: Truths
    device_bytes: Floats
    host_bytes: Floats
    sent_bytes: Floats
    seconds: Floats

    def at(self, picked: Ints) -> _Columns:
        return _Columns(*(getattr(self, field)[picked] for field in _FIELDS))


_FIELDS = Option._fields


def _columns(options: list[Option]) -> _Columns:
    rows = list(zip(*options, strict=True)) or [()] * len(_FIELDS)
    types = (np.int64, np.int64, np.bool_, np.float64, np.float64, np.float64, np.float64)
    return _Columns(*(np.array(row, dtype=kind) for row, kind in zip(rows, types, strict=True)))


def _pairs(groups: Groups, collective: Callable[[int, int], Traffic]) -> tuple[Floats, Floats]:
    """Seconds and sent bytes of a collective by the two prefixes that bound it."""
    span = groups.num_dims + 1
    seconds, sent = np.zeros((span, span)), np.zeros((span, span))
    for first in range(span):
        for end in range(first, span):
            moved = collective(first, end)
            seconds[first, end], sent[first, end] = moved.seconds.sum(), moved.sent_bytes.sum()
    return seconds, sent
