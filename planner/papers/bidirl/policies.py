"""Which pool is lent when, by name, and which policy a plan recommends (page, section 3.5)."""

from __future__ import annotations

from collections.abc import Mapping

from planner.papers.bidirl.replay.colocated import replay_colocated
from planner.papers.bidirl.replay.outcome import Outcome, Span
from planner.papers.bidirl.replay.rules import Rules
from planner.papers.bidirl.replay.setting import Setting
from planner.papers.bidirl.replay.steps import replay
from planner.papers.bidirl.solution import PLANNED, Policy, Thresholds

TIE = 1e-9
"""Relative: makespans that differ by less are equal, and the policy that lends less is taken."""

RULES: Mapping[Policy, Rules] = {
    "no_borrow": Rules(),
    "rollout_on_train": Rules(lend_train=True),
    "train_on_rollout": Rules(lend_rollout=True),
    "bidirectional": Rules(lend_train=True, lend_rollout=True),
    "opportunistic": Rules(lend_train=True, lend_rollout=True, by_cost=False),
    "separated_async": Rules(streaming=True),
    "half_split": Rules(),
}
"""Policies on two pools; ``half_split`` is replayed on a split of its own."""


def replayed(setting: Setting, policy: Policy, spans: list[Span] | None = None) -> Outcome:
    """The run under one policy; what each pool does is added to ``spans`` where they are given."""
    if policy == "colocated":
        return replay_colocated(setting, spans)
    return replay(setting, RULES[policy], spans)


def recommended(outcomes: Mapping[Policy, Outcome], thresholds: Thresholds) -> Policy:
    """Of the policies that a plan may recommend the one whose run ends first; of equal ones, the first listed.

    A direction without a threshold is in none of them: a runtime would never lend so, whatever the replay gains by it.
    """
    train_lent = thresholds.min_missing_groups is not None
    rollout_lent = thresholds.min_remaining_chunks is not None
    may = [
        policy
        for policy in PLANNED
        if RULES[policy].lend_train <= train_lent and RULES[policy].lend_rollout <= rollout_lent
    ]
    least_s = min(outcomes[policy].makespan_s for policy in may)
    return next(policy for policy in may if outcomes[policy].makespan_s <= least_s * (1 + TIE))
