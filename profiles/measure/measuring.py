"""`measure`: from options to a profile on the disk, and `plan_grid`: what it would start with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from profiles.errors import ProfileError
from profiles.files import write_document
from profiles.measure import campaign, torchrun
from profiles.measure.assembling import assemble
from profiles.measure.bench import Bench
from profiles.measure.campaign import Progress
from profiles.measure.cpu import CpuBench, counts
from profiles.measure.grid import ladders
from profiles.measure.log import FILE_NAME, Log
from profiles.measure.options import MEASURED_COLLECTIVES, OPERATIONS, Options, check
from profiles.measure.place import Ladder, Place, Sample

PROFILE_NAME = "profile.json"
STARTS_ITS_OWN = "torchrun is for device cuda; on a CPU ranks are started by --ranks"


@dataclass(frozen=True)
class Outcome:
    """What a run left: places and seconds by operation, why places were skipped and how many, and where the files are.

    `profile` is None where nothing was measured, and at ranks of torchrun that only follow the first.
    """

    points: Mapping[str, int]
    new_points: int
    seconds: Mapping[str, float]
    skipped: Mapping[str, str]
    notes: tuple[str, ...]
    ended: str
    log: Path
    profile: Path | None
    follows: bool = False


def _silent(_done: float, _what: str) -> None:
    """No progress shown."""


def measure(options: Options, progress: Progress = _silent, environment: Mapping[str, str] = os.environ) -> Outcome:
    """Measure on `options.device`, going on where an earlier run in `options.folder` stopped.

    The folder keeps `measurements.jsonl`, a line a place as soon as it is measured, and `profile.json` with all places
    at the end. Under torchrun (its variables are in `environment`) the first rank decides and writes. Raises
    `ProfileError` for options that are wrong, a missing library or device, a log of other conditions, and a place that
    cannot be written. KeyboardInterrupt passes through: the log keeps what was measured.
    """
    check(options)
    if options.device == "cpu":
        if torchrun.placement(environment) is not None:
            raise ProfileError(STARTS_ITS_OWN, code="out_of_range", where="device")
        bench = CpuBench(options)
        return _lead(options, bench, bench.transport, progress)
    from profiles.measure.cuda import open_bench

    gpus = open_bench(options, environment)
    if gpus.rank == 0:
        return _lead(options, gpus, "nccl", progress)
    try:
        gpus.follow()
    finally:
        gpus.close()
    return Outcome({}, 0, {}, {}, (), "", options.folder / FILE_NAME, None, follows=True)


def _lead(options: Options, bench: Bench, backend: str, progress: Progress) -> Outcome:
    try:
        if (options.folder / PROFILE_NAME).is_dir():
            raise ProfileError(f"cannot write {PROFILE_NAME}: it is a folder", code="out_of_range", where="output")
        grid = _grid(options, backend, bench.worlds())
        with Log(options.folder, bench.conditions, restart=options.restart) as log:
            course = campaign.run(grid, bench, log, options, progress)
    finally:
        bench.close()
    profile = None
    if log.samples:
        profile = options.folder / PROFILE_NAME
        try:
            write_document(assemble(log.samples, bench, options), profile)
        except OSError as error:
            raise ProfileError(
                f"cannot write {PROFILE_NAME}: {error.strerror or 'unwritable'}", code="out_of_range", where="output"
            ) from None
    return Outcome(
        points=_counted(log.samples),
        new_points=course.new,
        seconds=course.seconds,
        skipped={place.words(): reason for place, reason in course.skipped.items()},
        notes=_notes(options, bench, log),
        ended=course.ended,
        log=log.path,
        profile=profile,
    )


def _grid(options: Options, backend: str, worlds: list[tuple[int, int]]) -> list[Ladder]:
    """The ladders. Raises `ProfileError` if there are none."""
    found = ladders(options, backend, worlds)
    if found:
        return found
    asked = options.families()
    lonely = set(asked) <= set(MEASURED_COLLECTIVES)
    why = "collectives need two ranks or more" if lonely else f"{', '.join(options.models)} asks for none of it"
    raise ProfileError(f"nothing to measure of {', '.join(asked)}: {why}", code="out_of_range", where="ops")


def _notes(options: Options, bench: Bench, log: Log) -> tuple[str, ...]:
    """What the reader of the summary should know besides."""
    notes = [log.note] if log.note else []
    if set(options.families()) & set(MEASURED_COLLECTIVES) and not bench.worlds():
        how = "--ranks 2 or more" if options.device == "cpu" else "torchrun and two GPUs"
        notes.append(f"no collectives: they need {how}")
    held = [place for place, sample in log.samples.items() if sample.throttled]
    if held:
        notes.append(
            f"the GPU's clock was held back in {len(held)} of {len(log.samples)} rows; the profile's notes say why"
        )
    return tuple(notes)


def _counted(samples: Mapping[Place, Sample]) -> dict[str, int]:
    """Rows by operation, in the order of the operations."""
    found = [place.curve.family for place in samples]
    return {family: found.count(family) for family in OPERATIONS if family in found}


def plan_grid(options: Options, environment: Mapping[str, str] = os.environ) -> list[Ladder]:
    """The curves and first sizes that `measure` would take; nothing is run, and neither torch nor a GPU is needed."""
    check(options)
    if options.device == "cpu":
        bench = CpuBench(options)
        return _grid(options, bench.transport, bench.worlds())
    placement = torchrun.placement(environment)
    worlds = placement.worlds() if placement else [(1, ranks) for ranks in counts(options.rank_count())]
    return _grid(options, "nccl", worlds)
