"""What a row of a log may say under its header: only what a run under those conditions can have written."""

from __future__ import annotations

from profiles.families import COLLECTIVES
from profiles.measure.grid import COPIES, collective_dtype
from profiles.measure.options import COMPUTE, OPERATIONS
from profiles.measure.place import Place, Sample

PLAUSIBLE_S = (1e-10, 1e4)
"""Nothing that is run takes less, and no run waits for more."""


def contradiction(place: Place, sample: Sample, dtypes: list[str], ranks: int, backend: str) -> str | None:
    """Why no run of these conditions wrote the row, None if one may have."""
    curve, family = place.curve, place.curve.family
    if family not in OPERATIONS:
        return f"{family} is not measured here; known: {', '.join(OPERATIONS)}"
    known = _dtypes(family, dtypes, backend)
    if curve.dtype not in known:
        return f"expected dtype {' or '.join(known)} of {family} as the header says, got {curve.dtype}"
    carried = backend if family in COLLECTIVES else ""
    if curve.backend != carried:
        return f"expected backend {carried!r} of {family} as the header says, got {curve.backend!r}"
    workloads = _workloads(family, backend)
    if curve.workload not in workloads:
        return f"expected workload {' or '.join(map(repr, workloads))} of {family}, got {curve.workload!r}"
    if family in COLLECTIVES:
        axes = curve.values
        if not 2 <= axes["ranks"] <= ranks or axes["ranks"] % axes["nodes"]:
            return f"expected 2 to {ranks} ranks, a multiple of nodes, got {axes['ranks']} on {axes['nodes']} nodes"
    if place.size % curve.step:
        return f"expected {curve.along} to be a multiple of {curve.step}, got {place.size}"
    return implausible(sample)


def implausible(sample: Sample) -> str | None:
    """Why a median is no time that was measured, None if it may be."""
    low, high = PLAUSIBLE_S
    if low <= sample.median_s <= high:
        return None
    return f"expected a median of {low:g} to {high:g} s, got {sample.median_s:g}"


def _dtypes(family: str, dtypes: list[str], backend: str) -> list[str]:
    if family in COMPUTE:
        return dtypes
    return [collective_dtype(dtypes[0], backend)] if family in COLLECTIVES else ["int8"]


def _workloads(family: str, backend: str) -> tuple[str, ...]:
    if family == "memory_copy":
        return COPIES["cuda" if backend == "nccl" else "cpu"]
    return ("balanced" if family == "moe_gemm" else "",)
