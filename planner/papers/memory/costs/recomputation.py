"""Seconds that a rank takes to run its layers forward once more: what recomputation costs for each micro-batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.attribution import Sources
from planner.derivation.account import Error, nine_digits, rounded_shares, sources_of, weighted_error
from planner.derivation.moe.forward import activation_dtype
from planner.derivation.references import input_errors
from planner.derivation.training.calibration import Calibration, RowTimes, calibrated
from planner.derivation.training.cuts import Cuts, one_cut
from planner.derivation.training.device import Device
from planner.derivation.training.layer import layer_times
from planner.derivation.training.parts import LayerTimes
from planner.errors import BadInputError
from planner.memory.models import Layer
from planner.papers.memory.costs.diffusion_forward import block_forward
from planner.papers.memory.costs.rank_bytes import layers_of
from planner.papers.memory.costs.setting import Setting
from planner.papers.memory.job import Job
from profiles.geometry import DiTGeometry, ModelGeometry
from profiles.geometry.diffusion_blocks import DiffusionBlock
from profiles.geometry.feed_forward import Experts
from profiles.priced import SOURCES
from profiles.profile import Profile

PLACE = "derive.recompute_s"

_UNTABLED = ("elementwise", "network")
"""Families whose prices are modelled by bytes, or of the link between nodes: no profile has an error of them."""


@dataclass(frozen=True)
class Recomputation:
    """Seconds of one micro-batch, the shares of their sources, and the profile's own error over what has rows."""

    seconds: float
    sources: Sources
    error: dict[str, float] | None


class Forwards:
    """The forward of each kind of layer as the profile prices it, each priced once."""

    def __init__(self, setting: Setting, device: Device) -> None:
        self._model, self._job, self._device = setting.model, setting.job, device
        self._priced: dict[Layer, RowTimes] = {}

    def of_rank(self, rank: int) -> Recomputation:
        """The forward of the layers of a pipeline rank.

        Raises BadInputError (outside_measured_range) where nothing reaches a part of a layer.
        """
        profile = self._device.profile
        seconds, by_source = 0.0, np.zeros(len(SOURCES))
        by_family: dict[str, float] = defaultdict(float)
        for kind, count in _counts(self._job, self._model, rank):
            forward = self._of(kind)
            seconds += count * float(forward.forward_s[0] + forward.comm_forward_s[0])
            by_source += count * forward.by_source[:, 0]
            for family, amount in forward.by_family.items():
                by_family[family] += count * float(amount[0])
        shares = sources_of(rounded_shares(by_source / by_source.sum()).tolist())
        tabled = {family: taken for family, taken in by_family.items() if family not in _UNTABLED}
        errors = {family: _error(profile, family) for family in tabled}
        return Recomputation(nine_digits(np.array([seconds]))[0], shares, weighted_error(tabled, errors))

    def _of(self, kind: Layer) -> RowTimes:
        if kind not in self._priced:
            with input_errors(PLACE):
                times = _forward(self._device, self._model, kind, _cuts(self._job, kind))
            if times.missing.any():
                raise _unpriced(times.reasons)
            self._priced[kind] = calibrated(times, Calibration())
        return self._priced[kind]


def forwards_of(setting: Setting) -> Forwards | None:
    """The prices of recomputation; None without a profile."""
    profile, cluster, dtype = setting.profile, setting.cluster, setting.given.dtype
    if profile is None or cluster is None or setting.hardware is None:
        return None
    factor, extrapolate = setting.job.load_factor, setting.hardware.extrapolate
    width = activation_dtype(dtype)
    return Forwards(setting, Device(profile, cluster, dtype, dtype, width, extrapolate, load_factor=factor))


def _forward(device: Device, model: ModelGeometry | DiTGeometry, kind: Layer, cuts: Cuts) -> LayerTimes:
    if isinstance(kind, DiffusionBlock):
        if not isinstance(model, DiTGeometry):
            raise TypeError("blocks are of diffusion transformers")
        return block_forward(device, model, kind, cuts)
    return replace(layer_times(device, kind, cuts), backward=())


def _counts(job: Job, model: ModelGeometry | DiTGeometry, rank: int) -> Iterable[tuple[Layer, int]]:
    """The kinds of layer of a rank, each with how many."""
    counts: dict[Layer, int] = {}
    for kind, count in layers_of(job, model, rank):
        counts[kind] = counts.get(kind, 0) + count
    return counts.items()


def _cuts(job: Job, kind: Layer) -> Cuts:
    layout, routed = job.layout, isinstance(kind.feed_forward, Experts)
    return one_cut(
        job.batch.sequence_length,
        job.batch.micro_batch,
        tp=layout.tp,
        cp=layout.cp,
        sequence_parallel=layout.sequence_parallel and layout.tp > 1,
        ep=layout.ep if routed else 1,
        etp=layout.etp if routed else 1,
    )


def _error(profile: Profile, family: str) -> Error | None:
    name, _, dtype = family.partition("/")
    return profile.cost_error(name, dtype or "bf16")


def _unpriced(reasons: Mapping[str, str]) -> BadInputError:
    family, message = next(iter(reasons.items()))
    return BadInputError(
        f"no price of {family} for the forward that recomputes a layer: {message}; or state derive.recompute_s",
        code="outside_measured_range",
        where=PLACE,
    )
