"""Operators as the explicit form writes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.attribution import Sources
from planner.derivation.account import nine_digits, rounded_shares, sources_of
from planner.derivation.lines import Line
from planner.papers.compass.costs.setting import Floats
from planner.papers.compass.costs.stages import Stages
from planner.papers.compass.derived import Derive
from planner.papers.compass.problem import Contention, Fused, Operator, Point, Stage
from profiles.priced import SOURCES

_MODELLED = tuple(float(source == "modelled") for source in SOURCES)


def operator_of(given: Derive, stages: Stages) -> Operator:
    """One operator: a table and the sequential time beside it, or lines alone; fused kernels where they are offered."""
    pair = stages.pair
    lines = stages.table is None and len(stages.degrees) > 0
    return Operator(
        id=pair.id,
        op=pair.op,
        count=pair.count,
        tp_size=pair.ranks,
        gemm_name=pair.gemm_name,
        split_extent=pair.extent,
        split_multiple=pair.multiple,
        max_degree=given.max_degree,
        comm=_stage(stages.comm, stages.shares.comm),
        gemm=_stage(stages.gemm, stages.shares.gemm),
        contention=given.contention or Contention(),
        sequential_time_s=None if lines else nine_digits(np.array([stages.sequential_s]))[0],
        sequential_sources=None if lines else _sources(stages.shares.sequential),
        fused=tuple(
            Fused(id=kernel, time_s=nine_digits(np.array([seconds]))[0], sources=sources_of(_MODELLED))
            for kernel, seconds in stages.fused.items()
        ),
        inter_decom_table=None if stages.table is None else _points(stages),
        table_sources=None if stages.table is None else sources_of(_MODELLED),
        allowed_strategies=given.allowed_strategies,
        overlap_bytes={"user buffer": pair.message_bytes},
    )


def _points(stages: Stages) -> tuple[Point, ...]:
    times: Sequence[float] = nine_digits(stages.table) if stages.table is not None else ()
    return tuple(Point(degree=d, time_s=t) for d, t in zip(stages.degrees.tolist(), times, strict=True))


def _stage(line: Line | None, shares: Floats) -> Stage | None:
    return None if line is None else Stage(startup_s=line.alpha, payload_s=line.beta, sources=_sources(shares))


def _sources(shares: Floats) -> Sources:
    return sources_of(rounded_shares(shares).tolist())
