"""What the name of a key or column says of step times: that it holds them, and in which unit."""

from __future__ import annotations

import re
from collections.abc import Sequence

STEP_NAMES = ("step", "global_step", "iteration", "iter", "_step", "training/global_step", "trainer/global_step")
"""Names of step numbers."""
_KNOWN = {"timing_s/step": 1.0, "perf/time_per_step": 1.0, "time_metrics/end_to_end(s)": 1.0}
_STEMS = (
    r"(?:train_|total_)?step_?(?:time|timing|duration)|(?:elapsed_)?time_per_(?:step|iteration)|"
    r"iter(?:ation)?_(?:time|duration)"
)
_UNITS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3, "us": 1e-6}
_NAMED = re.compile(rf"(?:{_STEMS})(?:_?\(|_in_|_)?(?P<unit>{'|'.join(_UNITS)})?\)?")


def seconds_of_unit(name: str) -> float | None:
    """Seconds of one unit of a key or column; 0 if it is of step times but says no unit, None if it is of another."""
    if name in _KNOWN:
        return _KNOWN[name]
    matched = _NAMED.fullmatch(re.sub(r"[\s-]+", "_", name.strip().lower().rpartition("/")[2]))
    return None if matched is None else _UNITS.get(matched["unit"] or "", 0.0)


def time_name(names: Sequence[str]) -> str:
    """The first name of step times that says its unit, else the first that says none; empty if none is of them."""
    units = {name: unit for name in names if (unit := seconds_of_unit(name)) is not None}
    return next((name for name, unit in units.items() if unit > 0), next(iter(units), ""))
