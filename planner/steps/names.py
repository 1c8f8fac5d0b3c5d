"""What the name of a key or column says of step times: that it holds them, of which kind of step, in which unit."""

from __future__ import annotations

import re
from collections.abc import Sequence

STEP_NAMES = ("step", "global_step", "iteration", "iter", "_step", "training/global_step", "trainer/global_step")
"""Names of step numbers."""
_KNOWN = {"timing_s/step": 1.0, "perf/time_per_step": 1.0, "time_metrics/end_to_end(s)": 1.0}
_EVALUATION = "validation|valid|val|evaluation|eval|testing|test"
_STEMS = (
    r"(?:train_|training_|total_)?step_?(?:time|timing|duration)|(?:elapsed_)?time_per_(?:step|iteration)|"
    r"iter(?:ation)?_(?:time|duration)"
)
_UNITS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3, "us": 1e-6}
_NAMED = re.compile(rf"(?P<eval>(?:{_EVALUATION})_)?(?:{_STEMS})(?:_?\(|_in_|_)?(?P<unit>{'|'.join(_UNITS)})?\)?")


def seconds_of_unit(name: str) -> float | None:
    """Seconds of one unit of a key or column; 0 if it is of step times but says no unit, None if it is of another."""
    if name in _KNOWN:
        return _KNOWN[name]
    matched = _matched(name)
    return None if matched is None else _UNITS.get(matched["unit"] or "", 0.0)


def is_evaluation(name: str) -> bool:
    """Whether a name of step times is of validation or test steps: `val/step_time_s`, `eval_step_time_s`."""
    matched = _matched(name)
    before = re.split(r"[/.\s_-]+", name.strip().lower().rpartition("/")[0])
    return bool(matched and matched["eval"]) or any(re.fullmatch(_EVALUATION, part) for part in before)


def time_names(names: Sequence[str]) -> list[str]:
    """The names of training step times that say their unit, else those that say none, in their order."""
    units = {name: unit for name in names if (unit := seconds_of_unit(name)) is not None and not is_evaluation(name)}
    return [name for name, unit in units.items() if unit > 0] or list(units)


def evaluation_names(names: Sequence[str]) -> list[str]:
    """The names of step times of validation or test steps."""
    return [name for name in names if seconds_of_unit(name) is not None and is_evaluation(name)]


def _matched(name: str) -> re.Match[str] | None:
    return _NAMED.fullmatch(re.sub(r"[\s-]+", "_", name.strip().lower().rpartition("/")[2]))
