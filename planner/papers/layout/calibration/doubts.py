"""What is wrong with a file of runs as a whole: other models, units, times that no device reaches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from planner.derivation.training.calibration import Calibration
from planner.errors import BadInputError
from planner.papers.layout.calibration.fit import step_times_s
from planner.papers.layout.calibration.priced import PricedRuns
from planner.papers.layout.calibration.runs import GIB, Run
from planner.papers.layout.costs.setting import Setting
from profiles.errors import shown

LEAST_RATIO, MOST_RATIO = 0.2, 20.0
"""Of a measured step over a priced one: beyond that another unit is likelier than another machine."""
NEAR_LEAST, NEAR_MOST = 0.5, 3.0
"""Within which a stack may differ from its kernels without a word."""
PASSES = 3
"""Products of a step over those of its forward."""

Timed = Sequence[tuple[PricedRuns, Sequence[Run]]]
"""Runs with a step time, and the same priced."""


@dataclass(frozen=True)
class Ratios:
    """Measured over priced step times: the least and the most, with their lines."""

    least: float
    least_line: int
    most: float
    most_line: int

    @property
    def far(self) -> bool:
        """Whether a run is further off than stacks are."""
        return self.least < NEAR_LEAST or self.most > NEAR_MOST


def refuse_other_models(setting: Setting, runs: Sequence[Run], where: str) -> None:
    """Raise BadInputError for a run of another model. A name may say more than ours, or less."""
    given = setting.given.model
    own = {_plain(setting.geometry.name), *([_plain(given)] if isinstance(given, str) else [])}
    for run in runs:
        name = _plain(run.model)
        if name and not any(name in each or each in name for each in own):
            raise BadInputError(
                f"line {run.line}: a run of {shown(run.model)}, but prices are of {shown(setting.geometry.name)}: take "
                "groups of the file by derive.runs.groups, or leave the column model out if it is the same",
                code="out_of_range",
                where=where,
            )


def ratios(setting: Setting, timed: Timed, where: str) -> Ratios | None:
    """Of runs with a step time, None of none. Raises BadInputError: one is in another unit, or beyond the device."""
    found: list[tuple[float, int]] = []
    for priced, runs in timed:
        for run, seconds in zip(runs, step_times_s(priced, Calibration()), strict=True):
            measured_s = run.step_time_s or 0.0
            _refuse_beyond_device(setting, run, measured_s, where)
            _refuse_unit(run, measured_s, seconds, where)
            found.append((measured_s / seconds, run.line))
    return Ratios(*min(found), *max(found)) if found else None


def _refuse_unit(run: Run, measured_s: float, priced_s: float, where: str) -> None:
    if LEAST_RATIO <= measured_s / priced_s <= MOST_RATIO:
        return
    raise BadInputError(
        f"line {run.line}: a step of {measured_s:g} s, but its kernels are priced at {priced_s:.3g} s: is step_time_s "
        "in seconds?",
        code="out_of_range",
        where=where,
    )


def _refuse_beyond_device(setting: Setting, run: Run, measured_s: float, where: str) -> None:
    """A step needs its products, whatever else it does."""
    peak, geometry = _peak_flop_per_s(setting), setting.geometry
    tokens = run.global_batch_size * run.sequence_length
    multiplied = geometry.active_parameters - (0 if geometry.tied else geometry.vocab * geometry.hidden)
    needed = 2 * PASSES * multiplied * tokens / (run.num_gpus * measured_s)
    if peak is not None and needed > peak:
        raise BadInputError(
            f"line {run.line}: a step of {measured_s:g} s takes {needed:.3g} FLOP/s of each GPU, whose peak is "
            f"{peak:.3g}: is step_time_s in seconds?",
            code="out_of_range",
            where=where,
        )


def _peak_flop_per_s(setting: Setting) -> float | None:
    """Of the fastest dtype that products are in; None where the vendor's figure of one is not known."""
    device = setting.device
    peaks = device.profile.device.peak_flop_per_s
    used = {device.dtype, device.experts_dtype, device.activation_dtype}
    return max(peaks[dtype] for dtype in used) if used <= peaks.keys() else None


def refuse_more_than_device(runs: Sequence[Run], capacity_bytes: float, where: str) -> None:
    """Raise BadInputError for a run that took more memory than its device has."""
    for run in runs:
        if run.peak_bytes is not None and run.peak_bytes > capacity_bytes:
            raise BadInputError(
                f"line {run.line}: memory_gib {run.peak_bytes / GIB:g} of a device of {capacity_bytes / GIB:g} GiB",
                code="out_of_range",
                where=where,
            )


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.rpartition("/")[2].removesuffix(".json").lower())
