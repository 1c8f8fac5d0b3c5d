"""What may be wrong with the times and bytes that a plan goes by."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from planner.paper import Warned
from planner.papers.bidirl.layouts import usable
from planner.papers.bidirl.problem import AnyTime, BidirlProblem, Fit, Linear, RolloutLayout, Table, TrainLayout
from planner.papers.bidirl.split_figures import figures_of
from planner.papers.bidirl.splits import Split
from planner.papers.bidirl.time_kinds import POOR
from planner.papers.bidirl.warned.words import replicas_said
from planner.units import in_bytes, percent, seconds

FEW_BYTES, MANY_BYTES = 1e6, 1e9
"""Of a layout and of a GPU: no replica of a model is so small on a GPU that is so large."""
UNLIKE = 100
"""Times that one role of a planned split may take as long as the other."""
NEAR = 0.9
"""Of what a layout may fill."""


def prices_warned(problem: BidirlProblem, split: Split) -> Iterator[Warned]:
    """doubtful_unit, poor_fit, extrapolated, near_capacity, table_not_falling."""
    yield from _doubtful_unit(problem, split)
    yield from _poor_fit(split)
    yield from _extrapolated(split)
    yield from _near_capacity(problem, split)
    yield from _table_not_falling(problem)


def _doubtful_unit(problem: BidirlProblem, split: Split) -> Iterator[Warned]:
    """Numbers that look like GB for bytes, or like milliseconds in one role and seconds in the other."""
    figures, told = figures_of(problem, split), []
    small = [layout for layout in (split.rollout, split.train) if 0 < layout.memory_bytes < FEW_BYTES]
    if small and problem.cluster.gpu_memory_bytes > MANY_BYTES:
        told.append(f'"{small[0].id}" holds {small[0].memory_bytes:g} bytes: memory_bytes is in bytes')
    slower_s, faster_s = sorted((figures.rollout_s, figures.train_s), reverse=True)
    if slower_s > UNLIKE * faster_s:
        told.append(f"one role takes {seconds(slower_s)} and the other {seconds(faster_s)}: times are in seconds")
    if told:
        yield Warned("doubtful_unit", "; ".join(told))


def _fits(split: Split) -> Iterator[tuple[str, Fit, int]]:
    """What was fitted, to what, and on how many replicas it is used."""
    for name, time, replicas in (
        ("rollout", split.rollout.time, split.rollout_replicas),
        ("train", split.train.time, split.train_replicas),
    ):
        if isinstance(time, Linear) and time.fit is not None:
            yield name, time.fit, replicas


def _poor_fit(split: Split) -> Iterator[Warned]:
    poor = [
        f"{name} times miss their {fit.rows} rows by {percent(fit.median_error)} in the median and "
        f"{percent(fit.p90_error)} at p90"
        for name, fit, _ in _fits(split)
        if fit.p90_error > POOR
    ]
    if poor:
        yield Warned("poor_fit", f"{'; '.join(poor)}: the split may be another; log more steps, or give a table")


def _extrapolated(split: Split) -> Iterator[Warned]:
    outside = [
        f"{name} on {replicas_said(replicas)} is priced by rows of {fit.from_replicas} to {fit.to_replicas}"
        for name, fit, replicas in _fits(split)
        if not fit.from_replicas <= replicas <= fit.to_replicas
    ]
    if outside:
        yield Warned("extrapolated", f"{'; '.join(outside)}: measure a step there before you settle")


def _near_capacity(problem: BidirlProblem, split: Split) -> Iterator[Warned]:
    room_bytes = problem.cluster.usable_bytes
    full = [layout for layout in (split.rollout, split.train) if layout.memory_bytes > NEAR * room_bytes]
    if full:
        told = " and ".join(f'"{layout.id}" holds {in_bytes(layout.memory_bytes)}' for layout in full)
        reserve = "" if problem.cluster.memory_reserve_fraction else ", with nothing reserved"
        yield Warned(
            "near_capacity",
            f"{told} of the {in_bytes(room_bytes)} that a GPU may fill{reserve}: lent GPUs keep both roles loadable; "
            "measure a peak, or take larger replicas",
        )


def _table_not_falling(problem: BidirlProblem) -> Iterator[Warned]:
    """Measured times that rise with replicas: noise, or a replica too many."""
    layouts: list[tuple[str, RolloutLayout | TrainLayout]] = [
        *(("rollout", layout) for layout in usable(problem, problem.costs.rollout_layouts)),
        *(("train", layout) for layout in usable(problem, problem.costs.train_layouts)),
    ]
    risen = [
        f'{role} "{layout.id}" takes {seconds(more_s)} on {more} and {seconds(less_s)} on {replicas_said(less)}'
        for role, layout in layouts
        if (rise := _rise(layout.time)) is not None
        for less, less_s, more, more_s in [rise]
    ]
    if risen:
        others = f", and so do {len(risen) - 1} more" if len(risen) > 1 else ""
        yield Warned("table_not_falling", f"{risen[0]}{others}: the plan takes the table at its word; measure again")


def _rise(time: AnyTime) -> tuple[int, float, int, float] | None:
    """The first step of a table at which the time rises."""
    if isinstance(time, Table):
        for (less, less_s), (more, more_s) in pairwise(zip(time.replicas, time.time_s, strict=True)):
            if more_s > less_s:
                return less, less_s, more, more_s
    return None
