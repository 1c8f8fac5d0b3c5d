"""What the reader of a plan should know of derived prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.derivation.devices import differ
from planner.derivation.narrow_dtype import experts_slower, measured_as, times_slower
from planner.papers.compass.costs.setting import Floats, Setting
from planner.papers.compass.costs.stages import Stages
from planner.papers.compass.problem import Caution
from profiles.errors import shown
from profiles.experts import whole_products
from profiles.geometry.feed_forward import Experts


def cautions(setting: Setting, stages: Sequence[Stages], unpriced: Sequence[str]) -> dict[Caution, str]:
    """By code. ``unpriced`` is what no row of the profile reaches of the rest of a step."""
    given, said = setting.given, dict[Caution, str]()
    own = given.runs.keys() | given.stages.keys()
    priced = [part for part in stages if part.pair.id not in own]
    if given.contention is None and any(len(part.degrees) for part in stages if part.pair.id not in given.runs):
        said["contention_unmeasured"] = (
            "no slow-down was measured while a GEMM and a collective share the GPU: both run as fast as alone here; "
            "state derive.contention"
        )
    if any(part.table is not None for part in priced):
        said["composed_table"] = (
            f"times by degree are composed from rows of {shown(setting.profile.name)} for GEMM and collective alone, "
            "no overlapped run was measured"
        )
    lines = [part for part in priced if part.table is None and len(part.degrees)]
    if lines:
        worst = max(line.worst for part in lines for line in (part.comm, part.gemm) if line is not None)
        names = _named([part.pair.id for part in lines])
        said["affine_fit"] = f"{names}: lines a + v / d decide, up to {worst:.0%} off the prices they were fitted to"
    if setting.rules == "none" and given.fused is None:
        said["fused_missing"] = "no profile has rows of a fused kernel and none is offered: derive.fused models them"
    elif given.fused is not None:
        said["fused_modelled"] = (
            "fused kernels are priced by eq. 7 with the slow-downs and start-ups of derive.fused: none was measured"
        )
    left = _left_out(setting, unpriced)
    if left:
        said["left_out"] = left
    other = _other_device(setting)
    if other:
        said["other_device"] = other
    slower = _slower(setting)
    if slower is not None:
        said["narrow_dtype_slower"] = slower
    return said


def _other_device(setting: Setting) -> str:
    """That rows of one device price another, and what then are two machines in one plan."""
    own, priced = setting.cluster.device_classes[0].device, setting.profile.device.name
    if not differ(own, priced):
        return ""
    mixed = "; hops of fused kernels are of the cluster's own links" if setting.given.fused is not None else ""
    return (
        f"the cluster is of {shown(own or '')}, but GEMMs and library collectives are priced by rows of "
        f"{shown(priced)} and its links{mixed}: measure or import a profile of this machine"
    )


def _left_out(setting: Setting, unpriced: Sequence[str]) -> str:
    parts = []
    dropped = sorted({pair.id for pair in setting.dropped if pair.cutting != "experts"})
    if dropped:
        parts.append(f"{_named(dropped)}: transformer_engine overlaps them in bulk or not at all")
    has_experts = any(isinstance(kind.feed_forward, Experts) for kind, _ in setting.geometry.kinds())
    if has_experts and setting.rules != "none":
        parts.append("experts: transformer_engine overlaps no all-to-all")
    elif has_experts and setting.experts is None:
        parts.append("experts: give derive.expert_parallel_size to have their dispatch among the operators")
    if unpriced:
        parts.append(f"no rows of {', '.join(unpriced)}: the rest of the step is larger than stated")
    return "; ".join(parts)


def _slower(setting: Setting) -> str | None:
    """That whole GEMMs, or else whole experts, are slower in a narrow dtype than in the activations'."""
    given, profile = setting.given, setting.profile
    dtype, wide = given.dtype, given.activation_dtype
    pairs = [pair for pair in setting.pairs if pair.cutting != "experts"]
    m, n, k = (np.array([getattr(pair, axis) for pair in pairs], dtype=np.float64) for axis in "mnk")

    def gemms(dtype: str) -> Floats:
        return profile.gemm(m, n, k, dtype=dtype, extrapolate=given.extrapolate).seconds

    def experts(dtype: str) -> Floats:
        every = setting.pairs + setting.dropped
        tokens = np.array([float(pair.m) for pair in every if pair.cutting == "experts"][:1])
        return whole_products(replace(setting.expert_rows, dtype=dtype), tokens, given.extrapolate).seconds

    if dtype == wide:
        return None
    times = times_slower(dtype, wide, gemms(dtype), lambda: gemms(wide)) if pairs else None
    if times is not None:
        return (
            f"GEMMs are priced {times:.2g} times slower in {dtype} than in {wide}, as "
            f"{measured_as(profile, 'gemm', dtype)} was measured: compare derive.dtype={wide}"
        )
    times = None if setting.experts is None else times_slower(dtype, wide, experts(dtype), lambda: experts(wide))
    if times is None:
        return None
    kernels = measured_as(profile, "moe_gemm", dtype, given.workload)
    return experts_slower(times, dtype, wide, kernels, "dtype")


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
