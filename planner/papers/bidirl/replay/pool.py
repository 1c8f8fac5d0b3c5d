"""Pool R: the batch it generates, how much of it is left, and what it waits for."""

from __future__ import annotations

from planner.papers.bidirl.replay.lending import helped_end_s
from planner.papers.bidirl.replay.outcome import Doing, Span
from planner.papers.bidirl.replay.setting import Setting

TOGETHER = 1e-12
"""Relative: work that ends so near to a stop ends before it."""


class RolloutPool:
    """The state of the pool at ``clock_s``.

    ``batch`` is the one it works on, or the next to start. A streamed tail no longer holds the pool and runs on
    whatever the pool does: then ``ends_s`` of a batch is known, and may be later than ``clock_s``; ``works_until_s`` is
    the latest of them.
    """

    def __init__(self, setting: Setting, *, streaming: bool, spans: list[Span] | None) -> None:
        self.clock_s = 0.0
        self.batch = 0
        self.bulk_left = self.bulk = 0.0
        self.ends_s: list[float] = []
        self.works_until_s = 0.0
        self._fixed_left = self._tail_left = self._stale_left = 0.0
        self._setting, self._stage, self._replicas = setting, setting.rollout, setting.rollout.replicas
        self._steps = setting.steps
        self._share = setting.staleness if setting.is_partial else None
        self._streaming, self._spans = streaming, spans
        self._start()

    def _start(self) -> None:
        """Load the work of the batch; a batch after the last has none."""
        setting, stage = self._setting, self._stage
        self._fixed_left = stage.fixed_s
        self.bulk = self.bulk_left = stage.bulk_replica_s * setting.work_factor[self.batch % len(setting.work_factor)]
        tokens = setting.max_response_tokens[self.batch % len(setting.max_response_tokens)]
        self._tail_left = stage.tail_s_per_token * tokens
        if self._share is not None:
            self._stale_left = self._share * self.bulk

    def advance(self, until_s: float, version: int, last: int) -> bool:
        """Work until a time, or through batch ``last``; whether the pool then waits for a version later than this one.

        Of a batch that is ahead of the version only the stale share is generated where staleness is a share.
        """
        while self.clock_s <= until_s:
            if self.batch > last or self.batch >= self._steps:
                return self.batch < self._steps
            if not self._work_off_fixed(until_s):
                return False
            ahead = self._share is not None and self.batch > version
            if not self._work_off_bulk(until_s, ahead):
                return False
            if ahead:
                return True
            if not self._work_off_tail(until_s):
                return False
            self.batch += 1
            self._start()
        return False

    def helped(self, helpers_from_s: float) -> float:
        """Work off the bulk with the helpers of the other pool; when that is done."""
        start_s = self.clock_s + self._fixed_left
        end_s = helped_end_s(self._stage, start_s, self.bulk_left, helpers_from_s)
        self._saw("fixed", self.clock_s, start_s)
        self._saw("bulk", start_s, end_s)
        self._fixed_left = self.bulk_left = 0.0
        self.clock_s = end_s
        return end_s

    def stop(self, until_s: float) -> None:
        """Do nothing until a time; streamed tails run on."""
        self.clock_s = max(self.clock_s, until_s)

    def _work_off_fixed(self, until_s: float) -> bool:
        left, start_s = self._fixed_left, self.clock_s
        if start_s + left > until_s * (1 + TOGETHER):
            self._fixed_left, self.clock_s = left - (until_s - start_s), until_s
        else:
            self._fixed_left, self.clock_s = 0.0, start_s + left
        self._saw("fixed", start_s, self.clock_s)
        return not self._fixed_left

    def _work_off_bulk(self, until_s: float, ahead: bool) -> bool:
        """Whether all that may be worked off is."""
        allowed = min(self.bulk_left, self._stale_left) if ahead else self.bulk_left
        start_s, needed_s = self.clock_s, allowed / self._replicas
        is_done = start_s + needed_s <= until_s * (1 + TOGETHER)
        worked = allowed if is_done else min(allowed, (until_s - start_s) * self._replicas)
        self.bulk_left -= worked
        self._stale_left -= worked
        self.clock_s = start_s + needed_s if is_done else until_s
        self._saw("bulk", start_s, self.clock_s)
        return is_done

    def _work_off_tail(self, until_s: float) -> bool:
        left, start_s = self._tail_left, self.clock_s
        if self._streaming:
            self._saw("tail", start_s, start_s + left)
            self.ends_s.append(start_s + left)
            self.works_until_s = max(self.works_until_s, start_s + left)
            return True
        if start_s + left > until_s * (1 + TOGETHER):
            self._tail_left, self.clock_s = left - (until_s - start_s), until_s
            self._saw("tail", start_s, until_s)
            return False
        self.clock_s = start_s + left
        self._saw("tail", start_s, self.clock_s)
        self.ends_s.append(self.clock_s)
        return True

    def _saw(self, doing: Doing, start_s: float, end_s: float) -> None:
        if self._spans is not None and end_s > start_s:
            self._spans.append(Span("rollout", doing, self.batch, start_s, end_s))
