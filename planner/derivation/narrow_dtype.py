"""What is said of prices in a narrow dtype that are above those in a wider one.

A narrower dtype has less to read and more FLOP/s, so it is slower only where the measured kernel is a poor one. The
measured time stays; the plan says so.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.derivation.account import Floats
from profiles.errors import ProfileError, shown
from profiles.families import DTYPE_BYTES
from profiles.profile import Profile

SLOWER = 1.1
"""Times slower that is worth a word: rows are hardly nearer."""


def measured_as(profile: Profile, family: str, dtype: str, workload: str = "") -> str:
    """The kernels whose rows price a family, as the profile names them."""
    key = (family, dtype, "", workload)
    names = next((table.kernels for table in profile.document.tables if table.key == key), ())
    return shown(", ".join(names) or f"its {family}", 120)


def experts_slower(times: float, dtype: str, wide: str, kernels: str, field: str) -> str:
    """That experts are so many times slower in ``dtype``, and which field of the derived form to compare."""
    more = DTYPE_BYTES[wide] / DTYPE_BYTES[dtype]
    return (
        f"experts are priced {times:.2g} times slower in {dtype} than in {wide}, as {kernels} was measured: compare "
        f"derive.{field}={wide} ({float(more):g} times their bytes), or import rows of your kernel"
    )


def times_slower(dtype: str, wide: str, seconds: Floats, price_wide: Callable[[], Floats]) -> float | None:
    """How many times slower ``seconds``, priced in ``dtype``, are than in ``wide``, as a geometric mean over them all.

    None if hardly, if ``dtype`` is no narrower, or if nothing prices the wide one.
    """
    if DTYPE_BYTES[dtype] >= DTYPE_BYTES[wide]:
        return None
    try:
        wider = price_wide()
    except ProfileError:
        return None
    times = float(np.exp(np.log(seconds / wider).mean()))
    return times if times > SLOWER else None
