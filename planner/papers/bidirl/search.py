"""Every layout pair at every allowed split, as arrays over rollout_gpus (page, section 4).

Of all train_gpus beside one rollout pool the fastest is best, as no objective falls where the train time grows. So
where GPUs may stay idle, a running minimum over train_gpus stands for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.papers.bidirl.layouts import usable
from planner.papers.bidirl.objective import objective_s
from planner.papers.bidirl.problem import BidirlProblem, Role, RolloutLayout, TrainLayout
from planner.papers.bidirl.splits import Split, steps_of
from planner.papers.bidirl.stage_times.times import batch_s
from planner.papers.bidirl.stage_times.work import Floats, Ints, work_of

EQUAL = 1 + 1e-9
"""Figures within this ratio tie."""


@dataclass(frozen=True)
class Space:
    """What a search goes over. ``rollout_s`` and ``train_s`` have shape [layouts, gpus + 1], infinite where no time is.

    A layout has a time where its size divides the pool and its table lists the replicas.
    """

    rollout: tuple[RolloutLayout, ...]
    train: tuple[TrainLayout, ...]
    rollout_s: Floats
    train_s: Floats


@dataclass(frozen=True)
class _Tied:
    """Splits in one rollout layout that may be the best, each with its fastest train time."""

    train: Ints
    rollout_gpus: Ints
    rollout_s: Floats
    train_s: Floats

    def within(self, total_s: float) -> _Tied:
        """Those whose times sum to no more."""
        chosen = self.rollout_s + self.train_s <= total_s
        return _Tied(*(column[chosen] for column in vars(self).values()))


def space_of(problem: BidirlProblem) -> Space:
    """The layouts that may be used and what each takes in every pool."""
    rollout, train = usable(problem, problem.costs.rollout_layouts), usable(problem, problem.costs.train_layouts)
    return Space(rollout, train, _by_gpus(problem, "rollout", rollout), _by_gpus(problem, "train", train))


def best_split(problem: BidirlProblem) -> Split | None:
    """The allowed split of the least objective, ties by the page's rule; None where no split is allowed and timed.

    Of equal objectives: the least sum of both times, the fewest GPUs, the smaller rollout and train replicas, the
    fewest rollout_gpus, and the layouts first by id.
    """
    return best_of(problem, space_of(problem))


def best_of(problem: BidirlProblem, space: Space) -> Split | None:
    """``best_split`` of layouts whose times are known."""
    rollouts = range(len(space.rollout))
    least_s = [float(objectives_s(problem, space, rollout).min(initial=np.inf)) for rollout in rollouts]
    enough_s = min(least_s, default=np.inf) * EQUAL
    if enough_s == np.inf:
        return None
    reaching = [rollout for rollout in rollouts if least_s[rollout] <= enough_s]
    # One rollout layout is held at a time, as everything may tie.
    total_s = min(_least_total_s(_tied(problem, space, rollout, enough_s)) for rollout in reaching) * EQUAL
    firsts = [_first(problem, space, rollout, enough_s, total_s) for rollout in reaching]
    return min((split for split in firsts if split is not None), key=_order)


def train_times(problem: BidirlProblem, space: Space, rollout: int) -> tuple[Floats, Ints]:
    """Train times of every train layout beside a rollout layout, and the steps of rollout_gpus of each pair.

    The times have shape [train layouts, gpus + 1], by the GPUs that pool T may take: infinite where none is allowed,
    and where GPUs may stay idle the least of any pool up to that size. A step of 0 stands for no split at all.
    """
    gpus = np.arange(problem.cluster.gpus + 1)
    steps = [steps_of(problem, space.rollout[rollout].gpus, layout.gpus) for layout in space.train]
    of_rollout = np.array([0 if step is None else step.rollout for step in steps])
    of_train = np.array([problem.cluster.gpus + 1 if step is None else step.train for step in steps])
    times_s = np.where(gpus % of_train[:, None] == 0, space.train_s, np.inf)
    return (np.minimum.accumulate(times_s, axis=1) if problem.allow_idle_gpus else times_s), of_rollout


def _by_gpus(problem: BidirlProblem, role: Role, layouts: Sequence[RolloutLayout | TrainLayout]) -> Floats:
    gpus = problem.cluster.gpus
    work = work_of(problem.batch, role)
    times_s = np.full((len(layouts), gpus + 1), np.inf)
    for row, layout in zip(times_s, layouts, strict=True):
        if layout.gpus <= gpus:
            row[layout.gpus :: layout.gpus] = batch_s(layout.time, work, np.arange(1, gpus // layout.gpus + 1))
    return times_s


def objectives_s(problem: BidirlProblem, space: Space, rollout: int) -> Floats:
    """Objectives of all splits in one rollout layout, shape [train layouts, gpus + 1] by rollout_gpus.

    Infinite where a split is not allowed or has no time. Where GPUs may stay idle, that of the best train pool beside.
    """
    train_s, steps = train_times(problem, space, rollout)
    gpus = np.arange(problem.cluster.gpus + 1)
    allowed = (steps[:, None] > 0) & (gpus % np.maximum(steps, 1)[:, None] == 0)
    judged_s = objective_s(problem, space.rollout[rollout], space.rollout_s[rollout], train_s[:, ::-1])
    return np.where(allowed, judged_s, np.inf)


def _tied(problem: BidirlProblem, space: Space, rollout: int, enough_s: float) -> _Tied:
    """The splits in a rollout layout whose objective is low enough."""
    train_s, _ = train_times(problem, space, rollout)
    train, rollout_gpus = np.nonzero(objectives_s(problem, space, rollout) <= enough_s)
    beside = problem.cluster.gpus - rollout_gpus
    return _Tied(train, rollout_gpus, space.rollout_s[rollout, rollout_gpus], train_s[train, beside])


def _least_total_s(tied: _Tied) -> float:
    return float((tied.rollout_s + tied.train_s).min())


def _first(problem: BidirlProblem, space: Space, rollout: int, enough_s: float, total_s: float) -> Split | None:
    """Of the splits in a rollout layout with so low an objective and sum of times the first by the other ties."""
    tied = _tied(problem, space, rollout, enough_s).within(total_s)
    if not len(tied.train):
        return None
    train_gpus = _fewest_train_gpus(problem, space, rollout, tied, enough_s, total_s)
    sizes = np.array([layout.gpus for layout in space.train])[tied.train]
    left = np.arange(len(sizes))
    for column in (tied.rollout_gpus + train_gpus, sizes, tied.rollout_gpus, tied.train):
        left = left[column[left] == column[left].min()]
    place = left[0]
    layouts = space.rollout[rollout], space.train[tied.train[place]]
    return Split(int(tied.rollout_gpus[place]), int(train_gpus[place]), *layouts)


def _order(split: Split) -> tuple[int, int, int, int, str, str]:
    rollout, train = split.rollout, split.train
    return (split.rollout_gpus + split.train_gpus, rollout.gpus, train.gpus, split.rollout_gpus, rollout.id, train.id)


def _fewest_train_gpus(
    problem: BidirlProblem, space: Space, rollout: int, tied: _Tied, enough_s: float, total_s: float
) -> Ints:
    """For each split, the fewest train_gpus that keep the objective and the sum of times low enough."""
    reached = problem.cluster.gpus - tied.rollout_gpus
    if not problem.allow_idle_gpus:
        return reached
    train_s, _ = train_times(problem, space, rollout)
    below = np.full(len(reached), -1)
    while (reached - below > 1).any():
        middle = np.maximum((below + reached) // 2, 0)
        times_s = train_s[tied.train, middle]
        judged_s = objective_s(problem, space.rollout[rollout], tied.rollout_s, times_s)
        keeps = (judged_s <= enough_s) & (tied.rollout_s + times_s <= total_s)
        reached, below = np.where(keeps, middle, reached), np.where(keeps, below, middle)
    return reached
