"""Rows that do not get faster with size: the largest set of measured rows that a curve can keep.

Measured curves hold noise, spikes and changes of kernel; 3 to 27 % of their steps get faster with more work. A plan
must not gain from adding work, so each curve keeps its longest or heaviest non-decreasing part. Every kept row is a
measurement as it was taken (nothing is smoothed), a lone spike up or down never survives, and lookups are
non-decreasing along the curve because interpolation between kept rows is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def longest_rising(values: Floats) -> Bools:
    """A mask of a longest non-decreasing subsequence of `values`; among several, the one with the smallest tails."""
    tails: list[float] = []
    tail_at: list[int] = []
    before = np.full(len(values), -1, dtype=np.int64)
    for index, value in enumerate(values.tolist()):
        place = bisect_right(tails, value)
        before[index] = tail_at[place - 1] if place else -1
        if place == len(tails):
            tails.append(value)
            tail_at.append(index)
        else:
            tails[place], tail_at[place] = value, index
    keep = np.zeros(len(values), dtype=bool)
    index = tail_at[-1] if tail_at else -1
    while index >= 0:
        keep[index] = True
        index = int(before[index])
    return keep


def rising_rows(
    columns: Mapping[str, Ints], seconds: Floats, along: str, among: Bools, weight: Floats | None = None
) -> Bools:
    """A mask over rows: on each line parallel to the axis `along`, the largest non-decreasing part of `among`.

    The largest is the longest, or that of the greatest total `weight`.
    """
    keep = np.zeros(len(seconds), dtype=bool)
    for line in lines(columns, along):
        left = line[among[line]]
        part = longest_rising(seconds[left]) if weight is None else heaviest_rising(seconds[left], weight[left])
        keep[left[part]] = True
    return keep


def heaviest_rising(values: Floats, weight: Floats) -> Bools:
    """A mask of a non-decreasing subsequence of `values` with the greatest total weight, all above zero; O(n log n)."""
    rank = np.unique(values, return_inverse=True)[1].reshape(-1).tolist()
    size = len(rank)
    # A Fenwick tree of prefix maxima over the ranks: the best total that ends at a value so far, and where.
    best: list[tuple[float, int]] = [(0.0, -1)] * (size + 1)
    before, top = [-1] * size, (0.0, -1)
    for index, (place, own) in enumerate(zip(rank, weight.tolist(), strict=True)):
        found, at = (0.0, -1), place + 1
        while at > 0:
            found = max(found, best[at], key=lambda end: end[0])
            at -= at & -at
        before[index] = found[1]
        ends = (found[0] + own, index)
        top = ends if ends[0] > top[0] else top
        at = place + 1
        while at <= size:
            if ends[0] > best[at][0]:
                best[at] = ends
            at += at & -at
    keep = np.zeros(size, dtype=bool)
    index = top[1]
    while index >= 0:
        keep[index] = True
        index = before[index]
    return keep


def hold_ends(columns: Mapping[str, Ints], seconds: Floats, along: str, keep: Bools) -> tuple[Floats, Bools, Bools]:
    """Seconds, kept rows and held rows, such that each curve spans all that was measured.

    The first or last row of a line that was not kept comes back with the time of the nearest kept row: below, less
    work at that price; above, more work that was measured to be no slower than it.
    """
    seconds, keep, held = seconds.copy(), keep.copy(), np.zeros(len(seconds), dtype=bool)
    for line in lines(columns, along):
        left = line[keep[line]]
        if not len(left):
            continue
        for end, nearest in ((line[0], left[0]), (line[-1], left[-1])):
            if not keep[end]:
                seconds[end], keep[end], held[end] = seconds[nearest], True, True
    return seconds, keep, held


def lines(columns: Mapping[str, Ints], along: str) -> list[Ints]:
    """Row numbers of each line parallel to the axis `along`, each sorted along it."""
    others = [column for axis, column in columns.items() if axis != along]
    order = np.lexsort((columns[along], *others))
    if not len(order):
        return []
    change = np.zeros(len(order), dtype=bool)
    for column in others:
        change[1:] |= column[order][1:] != column[order][:-1]
    return np.split(order, np.flatnonzero(change))
