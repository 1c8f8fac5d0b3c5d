"""The replay of every policy at a split, and which of them a plan recommends (page, sections 3.5 and 3.6)."""

from __future__ import annotations

from planner.papers.bidirl.policies import recommended, replayed
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.replay.of_split import setting_of
from planner.papers.bidirl.replay.outcome import Outcome
from planner.papers.bidirl.search import Space
from planner.papers.bidirl.solution import POLICIES, Policy, Replayed, Thresholds
from planner.papers.bidirl.splits import Split
from planner.papers.bidirl.sweep import even_split


def outcomes(problem: BidirlProblem, space: Space, split: Split) -> dict[Policy, Outcome]:
    """The run under every policy at one split, but for ``half_split`` at its own."""
    setting, even = setting_of(problem, split), even_split(problem, space) or split
    found: dict[Policy, Outcome] = {}
    for policy in POLICIES:
        if policy == "half_split" and even != split:
            found[policy] = replayed(setting_of(problem, even), policy)
        elif policy == "half_split":
            found[policy] = found["no_borrow"]
        else:
            found[policy] = replayed(setting, policy)
    return found


def simulated(
    problem: BidirlProblem, space: Space, split: Split, least: Thresholds
) -> tuple[Policy, dict[str, Replayed]]:
    """The policy that a plan recommends at a split, and a row for every policy, as a solution states them.

    ``least`` are the thresholds of the split.
    """
    found = outcomes(problem, space, split)
    return recommended(found, least), {policy: row_of(outcome) for policy, outcome in found.items()}


def row_of(outcome: Outcome) -> Replayed:
    """One row of a solution."""
    return Replayed(
        makespan_s=outcome.makespan_s,
        step_period_s=outcome.step_period_s,
        rollout_idle_share=outcome.rollout_idle_share,
        train_idle_share=outcome.train_idle_share,
        train_pool_lent=outcome.train_pool_lent,
        rollout_pool_lent=outcome.rollout_pool_lent,
    )
