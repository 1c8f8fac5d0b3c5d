"""A training run replayed event by event (page, section 3.6): whatever ends next, then all that may begin.

Pool R and pool T each do one thing at a time: an amount is left of it at a time, and goes down at a rate.
"""

from __future__ import annotations

import heapq

from planner.papers.bidirl.checks.run import Ran, Run, Way, pays_to_lend_rollout, pays_to_lend_train

TOGETHER = 1e-12
"""Relative: what happens within it happens at once."""
NO_FLOOR = -1.0

WAITS, FIXED, BULK, TAIL, SYNC = range(5)
"""What a pool does in its own role."""

ROLLOUT_ENDS, TAIL_ENDS, ROLLOUT_HELP, TRAIN_HELP, TRAIN_BACK, ROLLOUT_BACK, TRAIN_ENDS = range(7)
"""What happens; of what happens at once the first of these first. A sync stops pool R, so it is last."""


class _Pool:
    """What one pool does: ``left`` of it at ``since_s``, less ``rate`` a second.

    ``away``: it serves the other role. ``asked`` and ``lent_to``: the last step for which it was asked, and lent.
    """

    def __init__(self) -> None:
        self.index, self.phase = 0, WAITS
        self.left = self.since_s = self.rate = 0.0
        self.stamp = self.helpers = 0
        self.away, self.asked, self.lent_to = False, -1, -1

    def settle(self, now_s: float) -> None:
        """Take off what was done up to now, and stop."""
        self.left -= self.rate * (now_s - self.since_s)
        self.since_s, self.rate = now_s, 0.0
        self.stamp += 1


class Replay:
    """Both pools and what is to come. ``floor``: the bulk of a batch stops there until its version is out."""

    def __init__(self, run: Run, way: Way) -> None:
        self.run, self.way = run, way
        self.queue: list[tuple[float, int, int, int]] = []
        self.r, self.t = _Pool(), _Pool()
        self.now_s, self.version, self.floor, self.fixed_s = 0.0, 0, NO_FLOOR, 0.0
        self.complete = [False] * len(run.work)
        self.open_tails = self.train_lent = self.rollout_lent = 0
        self.idle_r_s = self.idle_t_s = 0.0
        self.completions_s: list[float] = []

    def play(self) -> Ran:
        """All steps."""
        queue, steps = self.queue, len(self.complete)
        while len(self.completions_s) < steps:
            self._begin()
            self._pass(queue[0][0])
            until_s = self.now_s * (1 + TOGETHER)
            at_once = [heapq.heappop(queue)[1:]]
            while at_once:
                while queue and queue[0][0] <= until_s:
                    heapq.heappush(at_once, heapq.heappop(queue)[1:])
                self._happen(*heapq.heappop(at_once))
        return Ran(self.completions_s, self.idle_r_s, self.idle_t_s, self.train_lent, self.rollout_lent)

    def _pass(self, time_s: float) -> None:
        """Let the time pass, and count who does nothing."""
        gone_s = time_s - self.now_s
        if self.t.phase == WAITS and not self.t.away:
            self.idle_t_s += gone_s
        if not (self.r.rate or self.r.away or self.open_tails or self.t.phase == SYNC):
            self.idle_r_s += gone_s
        self.now_s = time_s

    def _after(self, seconds: float, what: int, stamp: int = 0, number: int = 0) -> None:
        heapq.heappush(self.queue, (self.now_s + seconds, what, stamp, number))

    # What happens.

    def _happen(self, what: int, stamp: int, number: int) -> None:
        r, t = self.r, self.t
        if what == ROLLOUT_ENDS:
            if stamp == r.stamp:
                self._rollout_ends()
        elif what == TRAIN_ENDS:
            if stamp == t.stamp:
                self._train_ends()
        elif what == TAIL_ENDS:
            self.complete[number] = True
            self.open_tails -= 1
        elif what == ROLLOUT_HELP:
            if number == r.index and r.phase <= BULK:
                r.helpers = self.run.rollout_on_train.helpers
                self._go_on()
        elif what == TRAIN_HELP:
            if number == t.index and t.phase == BULK:
                t.settle(self.now_s)
                self._train_goes_on(self.run.train_replicas + self.run.train_on_rollout.helpers)
        elif what == TRAIN_BACK:
            t.away = False
        else:
            r.away = False
            self._go_on()

    def _rollout_ends(self) -> None:
        """A phase of pool R is done, or its bulk is down to the floor."""
        r, run = self.r, self.run
        r.settle(self.now_s)
        if r.phase == FIXED:
            r.phase, r.left = BULK, run.rollout.bulk_replica_s * run.work[r.index]
        elif r.phase == TAIL:
            self.complete[r.index] = True
            r.phase, r.index = WAITS, r.index + 1
        elif self.floor >= 0:
            r.left = self.floor
        else:
            self._bulk_ends(run.rollout.tail_s_per_token * run.longest_tokens[r.index])
        self._go_on()

    def _bulk_ends(self, tail_s: float) -> None:
        r, self.r.helpers = self.r, 0
        if self.t.lent_to == r.index:
            self._after(self.run.rollout_on_train.out_s, TRAIN_BACK)
        if self.way.streams:
            self.open_tails += 1
            self._after(tail_s, TAIL_ENDS, number=r.index)
            r.phase, r.index = WAITS, r.index + 1
        else:
            r.phase, r.left = TAIL, tail_s

    def _train_ends(self) -> None:
        """A phase of pool T is done."""
        t, run = self.t, self.run
        t.settle(self.now_s)
        if t.phase == BULK:
            if self.r.lent_to == t.index:
                self._after(run.train_on_rollout.out_s, ROLLOUT_BACK)
            t.phase, t.left = FIXED, self.fixed_s
            self._train_goes_on(1)
        elif t.phase == FIXED:
            t.phase, t.left = SYNC, run.sync_s
            self._train_goes_on(1)
            self.r.settle(self.now_s)
        else:
            t.phase, t.index = WAITS, t.index + 1
            self.version += 1
            self.completions_s.append(self.now_s)
            self._go_on()

    def _go_on(self) -> None:
        """Let pool R work at the rate that it has now, if nothing stops it."""
        r = self.r
        r.settle(self.now_s)
        if r.phase == WAITS or r.away or self.t.phase == SYNC:
            return
        left, rate = r.left, 1
        if r.phase == BULK:
            if left <= self.floor:
                return
            left, rate = left - max(0.0, self.floor), self.run.rollout_replicas + r.helpers
        r.rate = rate
        self._after(max(0.0, left) / rate, ROLLOUT_ENDS, r.stamp)

    def _train_goes_on(self, rate: int) -> None:
        self.t.rate = rate
        self._after(max(0.0, self.t.left) / rate, TRAIN_ENDS, self.t.stamp)

    # What may begin.

    def _begin(self) -> None:
        """All that may begin now."""
        r, t = self.r, self.t
        if r.phase == WAITS and not r.away and r.index < len(self.complete):
            if self.version >= r.index - self.run.lead:
                self._begin_batch()
        elif self.floor >= 0 and self.version >= r.index:
            self.floor = NO_FLOOR
            self._go_on()
        if t.phase == WAITS and not t.away:
            if self.complete[t.index]:
                self._begin_train()
            elif self.way.train and FIXED <= r.phase <= BULK and not r.away and t.asked < r.index:
                self._ask_train()
        if self.way.rollout and t.phase == BULK and not r.away and r.asked < t.index and self._waits_for_version():
            self._ask_rollout()

    def _waits_for_version(self) -> bool:
        r = self.r
        if r.phase == WAITS:
            return r.index < len(self.complete)
        return r.phase == BULK and r.left <= self.floor

    def _begin_batch(self) -> None:
        r, run = self.r, self.run
        r.phase, r.left = FIXED, run.rollout.fixed_s
        ahead = run.stale < 1 and self.version < r.index
        self.floor = (1 - run.stale) * run.rollout.bulk_replica_s * run.work[r.index] if ahead else NO_FLOOR
        self._go_on()

    def _begin_train(self) -> None:
        t, run = self.t, self.run
        self.fixed_s = run.train.fixed_s + run.train.tail_s_per_token * run.longest_tokens[t.index]
        t.settle(self.now_s)
        t.phase, t.left = BULK, run.train.bulk_replica_s * run.work[t.index]
        self._train_goes_on(run.train_replicas)

    def _ask_train(self) -> None:
        """Lend pool T to the rollout if that pays."""
        r, t = self.r, self.t
        t.asked = r.index
        bulk = self.run.rollout.bulk_replica_s * self.run.work[r.index]
        q = bulk if r.phase == FIXED else r.left - r.rate * (self.now_s - r.since_s)
        if pays_to_lend_train(self.run, self.way, q, bulk):
            t.away, t.lent_to = True, r.index
            self.train_lent += 1
            self._after(self.run.rollout_on_train.in_s, ROLLOUT_HELP, number=r.index)

    def _ask_rollout(self) -> None:
        """Lend pool R to the training if that pays."""
        r, t = self.r, self.t
        r.asked = t.index
        bulk = self.run.train.bulk_replica_s * self.run.work[t.index]
        if pays_to_lend_rollout(self.run, self.way, t.left - t.rate * (self.now_s - t.since_s), bulk):
            r.away, r.lent_to = True, t.index
            self.rollout_lent += 1
            self.fixed_s += self.run.train_on_rollout.grad_s
            self._after(self.run.train_on_rollout.in_s, TRAIN_HELP, number=t.index)
