"""All that a file of measured runs teaches a derived problem, and how well that foretells runs it was not fitted to."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256

from planner.derivation.training.calibration import Calibration
from planner.errors import BadInputError
from planner.papers.layout.calibration.capacity import Reserved, amounts, fit_reserve, peak_bytes
from planner.papers.layout.calibration.doubts import Ratios, ratios, refuse_more_than_device, refuse_other_models
from planner.papers.layout.calibration.fit import fit_calibration, step_times_s
from planner.papers.layout.calibration.priced import PricedRuns
from planner.papers.layout.calibration.pricing import price_runs
from planner.papers.layout.calibration.quality import Confusion, StepErrors, confusion, step_errors
from planner.papers.layout.calibration.runs import Run
from planner.papers.layout.costs.setting import Setting
from planner.papers.layout.derived import Derive
from planner.papers.layout.table import Tiers

ENOUGH = 8
"""Runs with a step time that can be parted in two halves."""


@dataclass(frozen=True)
class Learned:
    """``errors`` are of each half of the timed runs under the other half's fit, or None of too few runs.

    ``reserved`` and ``memory`` are None unless some runs ran and some ran out of memory, or some peak was measured.
    ``timed`` runs have a step time; ``ratios`` are of these, against prices as they are.
    """

    calibration: Calibration
    errors: StepErrors | None
    reserved: Reserved | None
    memory: Confusion | None
    timed: int
    ratios: Ratios | None


def learn(setting: Setting, tiers: Tiers, runs: Sequence[Run], where: str) -> Learned:
    """Fit multipliers to step times, and fragmentation and reserve to what ran and what did not.

    ``tiers`` are uncalibrated. Raises BadInputError: a run without a price, of another model, in another unit, beyond
    what its device has or can; or runs that tell nothing.
    """
    refuse_other_models(setting, runs, where)
    parts = price_runs(setting, tiers, runs, where)
    refuse_more_than_device(runs, parts[0][0].problems[0].cluster.gpu_memory_bytes, where)
    timed = [_timed(*part) for part in parts]
    found = ratios(
        setting, [(priced, _with_time(part)) for (priced, _), (_, part) in zip(timed, parts, strict=True)], where
    )
    reserved, memory = _memory(setting, parts)
    if not any(times for _, times in timed) and reserved is None:
        message = (
            "no run has a step time or its memory, and none ran beside one that ran out of memory: nothing to learn"
        )
        raise BadInputError(message, code="out_of_range", where=where)
    count = sum(len(times) for _, times in timed)
    return Learned(fit_calibration(timed), _held_out(timed), reserved, memory, count, found)


def applied(given: Derive, learned: Learned) -> Derive:
    """The derive object with what was learned in place of what it stated."""
    changes: dict[str, object] = {"calibration": learned.calibration}
    if learned.reserved is not None:
        changes["fragmentation"] = learned.reserved.fragmentation
        changes["memory"] = given.memory.model_copy(update={"reserve_bytes": learned.reserved.reserve_bytes})
    return given.model_copy(update=changes)


def _with_time(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.step_time_s is not None]


def _timed(priced: PricedRuns, runs: Sequence[Run]) -> tuple[PricedRuns, list[float]]:
    times = {place: run.step_time_s for place, run in enumerate(runs) if run.step_time_s is not None}
    return priced.at(list(times)), list(times.values())


def _held_out(timed: Sequence[tuple[PricedRuns, list[float]]]) -> StepErrors | None:
    if sum(len(times) for _, times in timed) < ENOUGH:
        return None
    halves = [_some(timed, places) for places in _halves(sum(len(times) for _, times in timed))]
    predicted: list[float] = []
    measured: list[float] = []
    for mine, other in (halves, reversed(halves)):
        calibration = fit_calibration(other)
        for runs, times in mine:
            predicted += step_times_s(runs, calibration)
            measured += times
    return step_errors(predicted, measured)


def _halves(runs: int) -> tuple[set[int], set[int]]:
    """Places of runs in two halves, mixed: files are in some order, of which every second line may be alike.

    By a digest of the place: the same on every machine, and no generator that somebody else has drawn from.
    """
    mixed = sorted(range(runs), key=lambda place: sha256(str(place).encode()).digest())
    return set(mixed[::2]), set(mixed[1::2])


def _some(
    timed: Sequence[tuple[PricedRuns, list[float]]], places: Collection[int]
) -> list[tuple[PricedRuns, list[float]]]:
    """Of runs numbered through all parts those at some places."""
    found, first = [], 0
    for runs, times in timed:
        chosen = [place for place in range(len(times)) if first + place in places]
        if chosen:
            found.append((runs.at(chosen), [times[place] for place in chosen]))
        first += len(times)
    return found


def _memory(
    setting: Setting, parts: Sequence[tuple[PricedRuns, list[Run]]]
) -> tuple[Reserved | None, Confusion | None]:
    ran = [run.ran for _, runs in parts for run in runs]
    took = [run.peak_bytes if run.ran else None for _, runs in parts for run in runs]
    if not any(took) and (all(ran) or not any(ran)):
        return None, None
    problems = [problem for priced, _ in parts for problem in priced.problems]
    layouts = [layout for priced, _ in parts for layout in priced.layouts]
    held = [amounts(problem, layout) for problem, layout in zip(problems, layouts, strict=True)]
    capacity = problems[0].cluster.gpu_memory_bytes
    found = fit_reserve(held, ran, capacity, setting.given.memory.reserve_bytes, took)
    peaks = [peak_bytes(each, found.fragmentation) for each in held]
    return found, confusion(peaks, ran, capacity - found.reserve_bytes)
