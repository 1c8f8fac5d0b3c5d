"""The replay of both pools, one train step after another (page, section 3.6).

Between two syncs the rollout goes on without a stop, so each step needs to know of pool R only where it stands at
three times: when the trainer begins, when its bulk would end unaided, and when it has ended.

The version during train step k is k, and batch k + lead is the last that may start before the next one.
"""

from __future__ import annotations

from math import inf

from planner.papers.bidirl.replay.lending import helped_end_s, lends_rollout_pool, lends_train_pool
from planner.papers.bidirl.replay.outcome import Doing, Outcome, Pool, Span, step_period_s
from planner.papers.bidirl.replay.pool import RolloutPool
from planner.papers.bidirl.replay.rules import Rules
from planner.papers.bidirl.replay.setting import Setting


def replay(setting: Setting, rules: Rules, spans: list[Span] | None = None) -> Outcome:
    """All steps under one policy; what each pool does is added to ``spans``, in no order, where they are given."""
    run = _Run(setting, rules, spans)
    for step in range(setting.steps):
        run.take(step)
    return Outcome(
        completions_s=tuple(run.completions_s),
        step_period_s=step_period_s(run.completions_s, setting.staleness),
        rollout_idle_s=max(0.0, run.rollout_idle_s),
        train_idle_s=max(0.0, run.train_idle_s),
        train_pool_lent=run.train_pool_lent,
        rollout_pool_lent=run.rollout_pool_lent,
    )


class _Run:
    """Where the run stands after the sync of a step, and what has added up."""

    def __init__(self, setting: Setting, rules: Rules, spans: list[Span] | None) -> None:
        self.completions_s: list[float] = []
        self.rollout_idle_s = self.train_idle_s = 0.0
        self.train_pool_lent = self.rollout_pool_lent = 0
        self._setting, self._rules, self._spans = setting, rules, spans
        self._pool = RolloutPool(setting, streaming=rules.streaming, spans=spans)
        self._clock_s, self._lead = 0.0, setting.lead

    def take(self, step: int) -> None:
        """One train step, from the sync before it to its own."""
        setting, pool = self._setting, self._pool
        start_s = self._start_s(step)
        bulk_end_s, fixed_s, away_s = self._bulk(step, start_s)
        tokens = setting.max_response_tokens[step % len(setting.max_response_tokens)]
        fixed_s += setting.train.fixed_s + setting.train.tail_s_per_token * tokens
        end_s = bulk_end_s + fixed_s
        self._clock_s = end_s + setting.weight_sync_s
        pool.advance(end_s, step, step + self._lead)
        self._rest(max(pool.clock_s, pool.works_until_s), end_s, away_s)
        pool.stop(max(self._clock_s, away_s[1]))
        self.completions_s.append(self._clock_s)
        self._saw("train", "bulk", step, start_s, bulk_end_s)
        self._saw("train", "fixed", step, bulk_end_s, end_s)
        self._saw("rollout", "sync", step, end_s, self._clock_s)
        self._saw("train", "sync", step, end_s, self._clock_s)

    def _start_s(self, step: int) -> float:
        """When the train step starts: its batch is complete and pool T is free."""
        setting, pool = self._setting, self._pool
        waits_from_s = free_s = self._clock_s
        if pool.batch <= step:
            if self._rules.lend_train and lends_train_pool(
                setting.rollout,
                setting.rollout_on_train,
                pool.bulk_left,
                pool.bulk,
                by_cost=self._rules.by_cost,
            ):
                lent_s, switch = pool.clock_s, setting.rollout_on_train
                free_s = pool.helped(lent_s + switch.in_s) + switch.out_s
                self.train_pool_lent += 1
                self.train_idle_s -= free_s - lent_s
                self._saw("train", "lent", step, lent_s, free_s)
            pool.advance(inf, step, step)
        start_s = max(free_s, pool.ends_s[step])
        self.train_idle_s += start_s - waits_from_s
        return start_s

    def _bulk(self, step: int, start_s: float) -> tuple[float, float, tuple[float, float]]:
        """When the bulk of the train step ends, what merging gradients adds, and from when to when pool R is lent."""
        setting, pool = self._setting, self._pool
        bulk = setting.train.bulk_replica_s * setting.work_factor[step % len(setting.work_factor)]
        alone_s = start_s + bulk / setting.train.replicas
        if not pool.advance(alone_s, step, step + self._lead) or not self._rules.lend_rollout:
            return alone_s, 0.0, (inf, 0.0)
        now_s, switch = max(start_s, pool.clock_s), setting.train_on_rollout
        left = bulk - (now_s - start_s) * setting.train.replicas
        if not lends_rollout_pool(setting.train, switch, left, bulk, by_cost=self._rules.by_cost):
            return alone_s, 0.0, (inf, 0.0)
        end_s = helped_end_s(setting.train, now_s, left, now_s + switch.in_s)
        self.rollout_pool_lent += 1
        self._saw("rollout", "lent", step, now_s, end_s + switch.out_s)
        return end_s, switch.grad_s, (now_s, end_s + switch.out_s)

    def _rest(self, waits_from_s: float, until_s: float, away_s: tuple[float, float]) -> None:
        """Add what pool R idles up to the sync, the time that it is lent left out."""
        lent_s = max(0.0, min(until_s, away_s[1]) - away_s[0])
        self.rollout_idle_s += max(0.0, until_s - waits_from_s - lent_s)

    def _saw(self, pool: Pool, doing: Doing, step: int, start_s: float, end_s: float) -> None:
        if self._spans is not None and end_s > start_s:
            self._spans.append(Span(pool, doing, step, start_s, end_s))
