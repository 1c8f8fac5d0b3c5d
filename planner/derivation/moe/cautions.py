"""What the reader of a plan should know of attention's prices: a dtype slower than a wider one, rows that stand in."""

from __future__ import annotations

from dataclasses import replace

from planner.attribution import Said
from planner.derivation.account import Floats
from planner.derivation.moe.attention_cost import attention_seconds
from planner.derivation.moe.attention_kernel import stands_in
from planner.derivation.moe.forward import Forward
from planner.derivation.narrow_dtype import measured_as, times_slower
from profiles.errors import shown


def attention_cautions(forward: Forward, samples: Floats, seconds: Floats) -> Said:
    """Of a layer's attention, priced at ``seconds`` for ``samples``."""
    said, wide = Said(), forward.activation_dtype
    wider = replace(forward, dtype=wide)
    times = times_slower(forward.dtype, wide, seconds, lambda: attention_seconds(wider, samples).seconds)
    if times is not None:
        kernels = measured_as(forward.profile, "gemm", forward.dtype)
        said["narrow_dtype_slower"] = (
            f"attention GPUs are priced {times:.2g} times slower in {forward.dtype} than in {wide}, as "
            f"{kernels} was measured: compare derive.dtype={wide}, or import rows of "
            "your kernels"
        )
    if stands_in(forward):
        said["cache_rows_stand_in"] = (
            f"profile {shown(forward.profile.name)} has no rows of attention over a cache in {forward.cache_dtype}: "
            f"its bytes count as {forward.cache_dtype}, but its time is that of {wide}"
        )
    return said
