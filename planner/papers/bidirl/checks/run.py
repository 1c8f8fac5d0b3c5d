"""What a training run is given and gives (page, section 3.6), and when lending a pool pays in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from planner.papers.bidirl.checks.stage_time import Fluid

ROUNDED = 1e-9
"""Relative: what is gained, or left, is none below it."""


class Lending(NamedTuple):
    """Seconds to lend a pool, to take it back and to merge gradients; and the replicas that it then holds."""

    in_s: float
    out_s: float
    grad_s: float
    helpers: int


@dataclass(frozen=True)
class Run:
    """One training run on one split; of the lists, each step has its own element.

    ``lead``: versions that a batch may start before its own. ``stale``: the share of its bulk that may run until then.
    """

    rollout: Fluid
    train: Fluid
    rollout_replicas: int
    train_replicas: int
    rollout_on_train: Lending
    train_on_rollout: Lending
    sync_s: float
    lead: int
    stale: float
    work: list[float]
    longest_tokens: list[float]


class Way(NamedTuple):
    """What is lent to the other role, whether by the rules, and whether a batch starts before the tail of the last."""

    train: bool = False
    rollout: bool = False
    by_rule: bool = True
    streams: bool = False


class Ran(NamedTuple):
    """When each step was complete, seconds in which the pools did nothing, and how often they were lent."""

    completions_s: list[float]
    rollout_idle_s: float
    train_idle_s: float
    train_lent: int
    rollout_lent: int


def pays_to_lend_train(run: Run, way: Way, q: float, bulk: float) -> bool:
    """Whether pool T is lent while q of a bulk of replica-seconds are left (page, (5) of a fluid)."""
    lending, own = run.rollout_on_train, run.rollout_replicas
    if not lending.helpers or q <= ROUNDED * bulk:
        return False
    alone_s, together_s = q / own, q / (own + lending.helpers)
    return not way.by_rule or alone_s - together_s > lending.in_s + lending.out_s + ROUNDED * alone_s


def pays_to_lend_rollout(run: Run, way: Way, u: float, bulk: float) -> bool:
    """Whether pool R is lent while u of a bulk of replica-seconds are left (page, (6) of a fluid)."""
    lending, own = run.train_on_rollout, run.train_replicas
    rest = u - lending.in_s * own
    if not lending.helpers or rest <= ROUNDED * bulk:
        return False
    alone_s, together_s = u / own, lending.in_s + rest / (own + lending.helpers) + lending.out_s + lending.grad_s
    return not way.by_rule or together_s < alone_s * (1 - ROUNDED)


def period_s(completions_s: list[float], staleness: float) -> float:
    """Mean seconds of a step, max(1, ceil(s)) of the first and ceil(s) of the last left out; of all where none is left.

    Source: page, section 3.6.
    """
    after = math.ceil(min(staleness, len(completions_s)))
    before = max(1, after)
    taken_s = [end_s - start_s for start_s, end_s in zip([0.0, *completions_s], completions_s, strict=False)]
    kept_s = taken_s[before : len(taken_s) - after]
    return math.fsum(kept_s) / len(kept_s) if kept_s else completions_s[-1] / len(completions_s)
