"""Both pools over a few steps of the replay, drawn from what each of them does when."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from planner.papers.bidirl.policies import replayed
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.replay.of_split import setting_of
from planner.papers.bidirl.replay.outcome import Pool
from planner.papers.bidirl.replay.outcome import Span as Done
from planner.papers.bidirl.solution import Policy
from planner.papers.bidirl.splits import Split
from planner.units import seconds
from planner.view import Span, Timeline, Track

STEPS = 3
"""That are drawn, after those that fill the pipeline."""
SEARCHED = 500
"""Steps among which a loan is looked for."""
KINDS = ("rollout", "tail", "train", "lent", "sync")
_LABELS = {"tail": "t", "lent": "+", "sync": "|"}


def run_pictures(problem: BidirlProblem, split: Split, policies: Sequence[Policy]) -> list[Timeline]:
    """The same batches under each policy, digits their numbers: from the first that the last policy lends for.

    Of policies that have two pools and no tails that run on.
    """
    whole, runs = setting_of(problem, split), []
    # What is drawn hangs on no batch that is further ahead than the lead.
    setting = replace(whole, steps=min(whole.steps, SEARCHED + 2 * whole.lead))
    for policy in policies:
        done: list[Done] = []
        runs.append((policy, replayed(setting, policy, done), done))
    filled = max(1, math.ceil(min(setting.staleness, setting.steps)))
    last = setting.steps - STEPS - (whole.lead if setting.steps < whole.steps else 0)
    lent = min((each.step for each in runs[-1][2] if each.doing == "lent" and each.step >= filled), default=filled)
    first = max(0, min(lent, last))
    return [_picture(policy, run.completions_s, done, first, whole.steps) for policy, run, done in runs]


def _picture(policy: Policy, completions_s: Sequence[float], done: Sequence[Done], first: int, steps: int) -> Timeline:
    last = min(first + STEPS, steps) - 1
    start_s, end_s = completions_s[first - 1] if first else 0.0, completions_s[last]
    pools: tuple[Pool, ...] = ("rollout", "train")
    tracks = tuple(_track(pool, [each for each in done if each.pool == pool], start_s, end_s) for pool in pools)
    title = f"{policy}, batches {first}-{last} of 0-{steps - 1}: {seconds(end_s - start_s)}"
    kinds = tuple(kind for kind in KINDS if any(span.kind == kind for track in tracks for span in track.spans))
    return Timeline(title, tracks, "s", kinds, start_s, end_s)


def _track(pool: Pool, done: Sequence[Done], start_s: float, end_s: float) -> Track:
    """What a pool does in order; of a sync that begins while the pool is lent, what is left after that."""
    spans: list[Span] = []
    for each in sorted(done, key=lambda one: (one.start_s, one.end_s)):
        begins_s, ends_s = max(each.start_s, spans[-1].end if spans else 0.0, start_s), min(each.end_s, end_s)
        if begins_s >= ends_s:
            continue
        kind = each.doing if each.doing in _LABELS else pool
        label = _LABELS.get(kind, str(each.step % 10))
        if spans and (spans[-1].kind, spans[-1].label, spans[-1].end) == (kind, label, begins_s):
            begins_s = spans.pop().start
        spans.append(Span(begins_s, ends_s, kind, label))
    length_s = end_s - start_s
    busy_s = sum(span.end - span.start for span in spans)
    note = f"idle {max(0.0, 1 - busy_s / length_s):>5.1%}" if length_s > 0 else ""
    return Track(f"{pool} pool", tuple(spans), note)
