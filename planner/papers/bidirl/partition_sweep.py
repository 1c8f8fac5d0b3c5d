"""The objective over the splits of a problem, drawn: what another rollout pool would cost."""

from __future__ import annotations

import numpy as np

from planner.papers.bidirl.presentation import SAME
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.search import Space, objectives_s
from planner.papers.bidirl.split_figures import Figures, figures_of
from planner.papers.bidirl.splits import Split
from planner.papers.bidirl.sweep import best_at
from planner.units import seconds
from planner.view import Bar, Bars, Segment

MOST = 16
"""Rollout pools that are drawn; of more, some in even steps, the planned one among them."""
KINDS = ("rollout", "training", "sync")


def partition_sweep(problem: BidirlProblem, space: Space, planned: Split) -> Bars:
    """The best layouts at every rollout pool: seconds by the stages that make up the objective."""
    judged_s = np.full(problem.cluster.gpus + 1, np.inf)
    for rollout in range(len(space.rollout)):
        judged_s = np.minimum(judged_s, objectives_s(problem, space, rollout).min(axis=0))
    pools = np.flatnonzero(judged_s < np.inf).tolist()
    found = [best_at(problem, space, pool) for pool in _drawn(pools, planned.rollout_gpus)]
    splits = [planned if each.rollout_gpus == planned.rollout_gpus else each for each in found if each is not None]
    least_s = figures_of(problem, planned).objective_s
    several = len({(each.rollout.id, each.train.id) for each in splits}) > 1
    bars = tuple(_bar(problem, each, least_s, planned, several=several) for each in splits)
    part = (
        f"{len(pools):,} rollout pools"
        if len(splits) == len(pools)
        else f"{len(splits)} of {len(pools):,} rollout pools"
    )
    what = "slower stage" if problem.objective == "lambda_pipe" else "step period"
    kinds = tuple(kind for kind in KINDS if any(segment.kind == kind for bar in bars for segment in bar.segments))
    return Bars(f"{what} by split, {part}, * planned", bars, "s", kinds)


def _drawn(pools: list[int], planned: int) -> list[int]:
    """Of many, some in even steps with the first and the last, the planned one in place of its neighbour."""
    if len(pools) <= MOST:
        return pools
    places = {round(place * (len(pools) - 1) / (MOST - 1)) for place in range(MOST)}
    at = pools.index(planned)
    if at not in places:
        inner = places - {0, len(pools) - 1}
        places = places - {min(inner, key=lambda place: abs(place - at))} | {at}
    return [pools[place] for place in sorted(places)]


def _bar(problem: BidirlProblem, split: Split, least_s: float, planned: Split, *, several: bool) -> Bar:
    figures = figures_of(problem, split)
    segments = tuple(Segment(kind, amount) for kind, amount in _parts(problem, figures).items() if amount > 0)
    layouts = f"  {split.rollout.id}+{split.train.id}" if several else ""
    label = f"{split.rollout_gpus}+{split.train_gpus}{' *' if split == planned else ''}"
    return Bar(label, segments, f"{seconds(figures.objective_s)}  {figures.objective_s / least_s:.3f}{layouts}")


def _parts(problem: BidirlProblem, figures: Figures) -> dict[str, float]:
    """The seconds of the objective: of one stage where the other hides behind it, of both where one waits."""
    sync_s = problem.costs.weight_sync_s if problem.objective == "period" else 0.0
    rest_s = figures.objective_s - sync_s
    if rest_s <= figures.rollout_s * (1 + SAME):
        alone = "rollout" if figures.rollout_s >= figures.train_s else "training"
        return {alone: rest_s, "sync": sync_s}
    return {"rollout": rest_s - figures.train_s, "training": figures.train_s, "sync": sync_s}
