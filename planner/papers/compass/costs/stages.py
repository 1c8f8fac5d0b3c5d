"""From the chunks of a pair to what the explicit form says of it: a table by eq. 2, or lines.

Where rows of the profile reach every degree, eq. 2 on prices is the table that decides. Where they do not, a table
would set modelled degrees beside measured ones, so lines a + v / d through all points stand for both stages (eq. 4a).
A ring has no chunk that fills it (page, section 3.6), so its two degrees are always a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from planner.derivation.account import nine_digits
from planner.derivation.lines import Line, line_through
from planner.papers.compass.costs.chunks import Chunks
from planner.papers.compass.costs.fused import RingLink, fused_seconds
from planner.papers.compass.costs.pairs import Pair
from planner.papers.compass.costs.setting import Floats, Ints
from planner.papers.compass.derived import Derive
from planner.papers.compass.problem import Contention
from planner.papers.compass.ring import ring_exchange_s
from profiles.priced import SOURCES, Sources


class Shares(NamedTuple):
    """Where seconds come from, in the order of SOURCES: of the sequential run, of all points of either stage."""

    sequential: Floats
    comm: Floats
    gemm: Floats


@dataclass(frozen=True)
class Stages:
    """One operator: seconds one after the other, by degree (``table``, as ``degrees``), of both stages as lines.

    ``table`` None: the lines decide. Lines None: there is no other reading than the table. ``fused`` are seconds by
    kernel.
    """

    pair: Pair
    degrees: Ints
    comm_s: float
    gemm_s: float
    table: Floats | None
    comm: Line | None
    gemm: Line | None
    shares: Shares
    fused: dict[str, float]

    @property
    def sequential_s(self) -> float:
        """Seconds of the whole collective and the whole GEMM."""
        return self.comm_s + self.gemm_s


def stages_of(chunks: Chunks, given: Derive, link: RingLink | None) -> Stages:
    """The operator of one pair. ``link`` is that of fused kernels; None: its hops are parts of the collective."""
    pair, degrees = chunks.pair, chunks.degrees[1:]
    contention = given.contention or Contention()
    ring = pair.cutting == "shards"
    table = None
    if len(degrees) and (ring or (chunks.covered and given.fit == "table")):
        table = _ring_times(chunks, contention) if ring else _chunk_times(chunks, contention)
    comm_s, gemm_s = float(chunks.comm[0]), float(chunks.gemm[0])
    return Stages(
        pair=pair,
        degrees=degrees,
        comm_s=comm_s,
        gemm_s=gemm_s,
        table=table,
        comm=None if ring else _line(chunks.degrees, chunks.comm),
        gemm=None if ring else _line(chunks.degrees, chunks.gemm),
        shares=Shares(
            (comm_s * _shares(chunks.comm_source[:1]) + gemm_s * _shares(chunks.gemm_source[:1])) / (comm_s + gemm_s),
            _shares(chunks.comm_source),
            _shares(chunks.gemm_source),
        ),
        fused={} if given.fused is None else fused_seconds(pair, comm_s, gemm_s, given.fused, link),
    )


def merged(parts: Sequence[Stages]) -> Stages:
    """Operators that a launcher sets as one: every call takes the mean over all their calls, so totals are theirs."""
    if len(parts) == 1:
        return parts[0]
    counts = np.array([part.pair.count for part in parts], dtype=np.float64)
    seconds = counts * [part.sequential_s for part in parts]
    tables = [part.table for part in parts if part.table is not None]
    return replace(
        parts[0],
        pair=replace(parts[0].pair, count=int(counts.sum())),
        comm_s=float(np.average([part.comm_s for part in parts], weights=counts)),
        gemm_s=float(np.average([part.gemm_s for part in parts], weights=counts)),
        table=np.average(tables, axis=0, weights=counts) if len(tables) == len(parts) else None,
        comm=_mean_line([part.comm for part in parts], counts),
        gemm=_mean_line([part.gemm for part in parts], counts),
        shares=Shares(
            *(
                np.average(column, axis=0, weights=seconds)
                for column in zip(*(part.shares for part in parts), strict=True)
            )
        ),
    )


def _chunk_times(chunks: Chunks, contention: Contention) -> Floats:
    """Eq. 2 at every degree."""
    comm, gemm, d = chunks.comm[1:], chunks.gemm[1:], chunks.degrees[1:]
    return np.asarray(comm + gemm + (d - 1) * np.maximum(contention.comm * comm, contention.gemm * gemm))


def _ring_times(chunks: Chunks, contention: Contention) -> Floats:
    """p steps of one shard, or p/2 of two."""
    p, hop, gemm, d = chunks.pair.ranks, chunks.comm[1:], chunks.gemm[1:], chunks.degrees[1:]
    first = np.where(d == p, 0.0, chunks.comm[0] / (p - 1))
    return ring_exchange_s(d, first, hop, gemm, (contention.comm, contention.gemm))


def _line(degrees: Ints, seconds: Floats) -> Line:
    """a + v / d through the points; a single one is all payload."""
    if len(degrees) == 1:
        return Line(0.0, float(f"{seconds[0]:.8e}"), 0.0, 0.0)
    return line_through(1.0 / degrees, seconds)


def _mean_line(lines: Sequence[Line | None], weights: Floats) -> Line | None:
    found = [line for line in lines if line is not None]
    if len(found) < len(lines):
        return None
    alpha, beta = nine_digits(np.average([(line.alpha, line.beta) for line in found], axis=0, weights=weights))
    return Line(alpha, beta, max(line.mape for line in found), max(line.worst for line in found))


def _shares(source: Sources) -> Floats:
    return np.bincount(source, minlength=len(SOURCES)) / len(source)
