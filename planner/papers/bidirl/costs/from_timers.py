"""Training times from the timers of its stages: what is fixed, and seconds a chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.errors import BadInputError
from planner.papers.bidirl.costs.by_layout import by_layout, refuse_unknown
from planner.papers.bidirl.costs.candidates import Candidate
from planner.papers.bidirl.costs.line_fit import MODELLED
from planner.papers.bidirl.costs.setting import Setting
from planner.papers.bidirl.costs.straight import Straight, straight
from planner.papers.bidirl.costs.told import Told
from planner.papers.bidirl.measurements import TimerRow
from planner.papers.bidirl.problem import Stage, Stages
from planner.papers.bidirl.time_sources import Timers


def from_timers(
    setting: Setting, given: Timers, candidates: Mapping[str, Candidate], smallest: str | None, where: str
) -> Told:
    """Raises BadInputError."""
    if given.layout is not None:
        refuse_unknown(given.layout, candidates, f"{where}.layout")
    told, place = Told(), f"{where}.timers"
    rows = setting.timers(given.timers, place)
    for name, some in by_layout(rows, given.layout or smallest, candidates, place).items():
        stages: dict[str, list[TimerRow]] = {}
        for row in some:
            stages.setdefault(row.stage, []).append(row)
        _refuse_unknown(given, stages, where)
        lines = {stage: _line(of_it) for stage, of_it in stages.items()}
        told.times[name] = Stages(
            kind="stages",
            stages=tuple(_stage(setting, given, stage, stages[stage], line) for stage, line in lines.items()),
            sources=MODELLED,
        )
        told.fits[name] = {stage: line.account() for stage, line in lines.items()}
        for stage, line in lines.items():
            told.judge(f"{stage[:60]} ({name[:60]})", line.median, line.p90)
        _say_unclear(told, name, stages)
    return told


def _line(rows: Sequence[TimerRow]) -> Straight:
    return straight([row.chunks for row in rows], [row.time_s for row in rows])


def _stage(setting: Setting, given: Timers, name: str, rows: Sequence[TimerRow], line: Straight) -> Stage:
    shared = any(row.chunks for row in rows)
    chunks = given.chunks.get(name, setting.document.batch.train_chunks) if shared else 0
    return Stage(name=name, fixed_s=line.base_s, chunks=chunks, chunk_s=line.slope_s)


def _say_unclear(told: Told, layout: str, stages: Mapping[str, Sequence[TimerRow]]) -> None:
    for name, rows in stages.items():
        counts = {row.chunks for row in rows}
        if len(counts) == 1 and counts != {0}:
            told.cautions["stages_without_fixed"] = (
                f"timers of {name[:60]} ({layout[:60]}) are all of {rows[0].chunks:,} chunks, so all its time is taken "
                "to be shared by replicas: measure it at another number of chunks"
            )


def _refuse_unknown(given: Timers, stages: Mapping[str, object], where: str) -> None:
    for name in given.chunks:
        if name not in stages:
            message = f"expected stages that there are timers of, {', '.join(stages)[:100]}, got {name[:60]}"
            raise BadInputError(message, code="out_of_range", where=f"{where}.chunks")
