"""What the longest response, and groups that do not divide, take of the rollout of a plan."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner.paper import Warned
from planner.papers.bidirl.problem import BidirlProblem, Lengths, Linear
from planner.papers.bidirl.splits import Split
from planner.papers.bidirl.stage_times.times import batch_s, tail_s
from planner.papers.bidirl.stage_times.work import work_of
from planner.papers.bidirl.warned.words import replicas_said
from planner.units import percent

TAIL = 0.5
"""Of the rollout time."""
UNEVEN = 0.1
"""By how much the fullest replica may work longer than the mean."""


def rollout_warned(problem: BidirlProblem, split: Split) -> Iterator[Warned]:
    """tail_dominated, uneven_replicas."""
    yield from _tail_dominated(problem, split)
    yield from _uneven_replicas(problem, split)


def _tail_dominated(problem: BidirlProblem, split: Split) -> Iterator[Warned]:
    time, work = split.rollout.time, work_of(problem.batch, "rollout")
    whole_s = float(batch_s(time, work, split.rollout_replicas))
    more = "more rollout GPUs help little, and missing groups are seldom worth a loan"
    if isinstance(time, Linear) and tail_s(time, work) > TAIL * whole_s:
        share = percent(tail_s(time, work) / whole_s)
        yield Warned("tail_dominated", f"the longest response is {share} of the rollout: {more}")
    if isinstance(time, Lengths):
        sequences = math.ceil(work.whole / split.rollout_replicas) * work.responses_per_group
        steps = sequences * time.mean_response_tokens / min(time.concurrency, sequences)
        if steps < work.longest_tokens:
            yield Warned(
                "tail_dominated",
                f"the longest response takes {work.longest_tokens:,.0f} decode steps, the work of a replica "
                f"{steps:,.0f}: {more}",
            )


def _uneven_replicas(problem: BidirlProblem, split: Split) -> Iterator[Warned]:
    """Groups that replicas cannot share alike, where the time goes by the fullest."""
    groups, replicas = problem.batch.prompt_groups, split.rollout_replicas
    fullest = math.ceil(groups / replicas)
    if isinstance(split.rollout.time, Lengths) and fullest * replicas > groups * (1 + UNEVEN):
        yield Warned(
            "uneven_replicas",
            f"{groups} groups on {replicas_said(replicas)}: the fullest has {fullest}, "
            f"{percent(fullest * replicas / groups - 1)} above the mean, and all wait for it",
        )
