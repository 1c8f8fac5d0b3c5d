"""alpha and beta of a collective inside a node: the line through its rows, over the bytes that its table counts.

Rows count from 64 KiB on. Where so many ranks were not measured, prices interpolated at the sizes of those around are
fitted instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.attribution import Sources
from planner.derivation.account import Floats, rounded_shares, sources_of
from planner.derivation.lines import Line, line_through
from profiles.cluster import SMALLEST_FITTED_BYTES
from profiles.errors import ProfileError
from profiles.priced import SOURCES
from profiles.pricing import Extrapolate
from profiles.profile import Profile


@dataclass(frozen=True)
class CollectiveLine:
    """A line over message_bytes, and the sources of the prices behind it."""

    line: Line
    sources: Sources


def collective_line(profile: Profile, operation: str, ranks: int, extrapolate: Extrapolate) -> CollectiveLine:
    """The line of ``ranks`` ranks of one node. Raises ProfileError: no rows, fewer ranks measured, or no slope."""
    sizes = _sizes(profile, operation, ranks)
    priced = profile.collective(operation, sizes, ranks, extrapolate=extrapolate)
    line = line_through(sizes, priced.seconds)
    if line.beta <= 0:
        message = f"the {operation} of {ranks} ranks in {profile.name} does not grow with its bytes"
        raise ProfileError(message, code="out_of_range")
    shares = np.array([(priced.source == index).mean() for index in range(len(SOURCES))])
    return CollectiveLine(line, sources_of(rounded_shares(shares).tolist()))


def _sizes(profile: Profile, operation: str, ranks: int) -> Floats:
    """The sizes measured at the numbers of ranks around, as far as all of these reach; some size where there is none.

    Small messages run other protocols than those of a plan and are left out where others are left.
    """
    measured: dict[int, list[Floats]] = {}
    for table in profile.document.tables:
        if table.family == operation and not table.backend.endswith("_in_place"):
            columns = table.cost_table().columns
            for count in np.unique(columns["ranks"][columns["nodes"] == 1]).tolist():
                rows = (columns["nodes"] == 1) & (columns["ranks"] == count)
                measured.setdefault(int(count), []).append(columns["message_bytes"][rows].astype(np.float64))
    below = max((count for count in measured if count <= ranks), default=min(measured, default=0))
    above = min((count for count in measured if count >= ranks), default=max(measured, default=0))
    curves = [sizes for count in {below, above} for sizes in measured.get(count, [])]
    if not curves:
        return np.array([float(SMALLEST_FITTED_BYTES)])
    low, high = max(sizes.min() for sizes in curves), min(sizes.max() for sizes in curves)
    sizes: Floats = np.unique(np.concatenate(curves))
    sizes = sizes[(sizes >= low) & (sizes <= high)]
    large: Floats = sizes[sizes >= SMALLEST_FITTED_BYTES]
    return large if len(large) >= 4 else sizes
