"""Runs to replay: those of the page, random ones, and two replays written in other ways than the planner's."""

from __future__ import annotations

import math
import random

from bidirl_cases import FOUR_B

from planner.papers.bidirl.replay.rules import Rules
from planner.papers.bidirl.replay.setting import Setting, Stage, Switch


def pools_of_sixteen() -> Setting:
    """Golden case 4: 16+16 GPUs, tp2 (alpha 10, beta 640, gamma L 20.48) and fsdp4 (15, 500), on-policy."""
    return Setting(
        rollout=Stage(8, 10.0, 640.0, 0.01, helpers=8),
        train=Stage(4, 15.0, 500.0, helpers=4),
        rollout_on_train=Switch(**FOUR_B["rollout_on_train"]),
        train_on_rollout=Switch(**FOUR_B["train_on_rollout"]),
        colocated_rollout=Stage(16, 10.0, 640.0, 0.01),
        colocated_train=Stage(8, 15.0, 500.0),
        colocated_switch_s=6.0,
        weight_sync_s=2.0,
        staleness=0.0,
        steps=20,
        max_response_tokens=(2048.0,),
    )


def five_and_three() -> Setting:
    """Golden case 5: 5+3 GPUs, one-GPU layouts, one version stale, work and lengths that alternate."""
    return Setting(
        rollout=Stage(5, 4.0, 240.0, 0.005, helpers=3),
        train=Stage(3, 6.0, 160.0, helpers=5),
        rollout_on_train=Switch(2.0, 1.0),
        train_on_rollout=Switch(2.0, 1.0, 0.5),
        colocated_rollout=Stage(8, 4.0, 240.0, 0.005),
        colocated_train=Stage(8, 6.0, 160.0),
        colocated_switch_s=3.0,
        weight_sync_s=2.0,
        staleness=1.0,
        steps=6,
        work_factor=(1.0, 2.0),
        max_response_tokens=(1000.0, 4000.0),
    )


def random_run(seed: int, steps: int = 8) -> Setting:
    """Any staleness, fixed parts, tails and syncs, some of them 0; unlike work in every step."""
    pick = random.Random(seed)
    d_r, d_t = pick.randint(1, 8), pick.randint(1, 8)

    def some(most: float) -> float:
        return pick.choice([0.0, pick.uniform(0.0, most), pick.uniform(0.0, most)])

    rollout = Stage(d_r, some(20.0), pick.uniform(20.0, 150.0) * d_r, some(0.03), helpers=pick.randint(0, 8))
    train = Stage(d_t, some(20.0), pick.uniform(20.0, 150.0) * d_t, some(0.005), helpers=pick.randint(0, 8))
    return Setting(
        rollout=rollout,
        train=train,
        rollout_on_train=Switch(some(10.0), some(10.0)),
        train_on_rollout=Switch(some(10.0), some(10.0), some(3.0)),
        colocated_rollout=rollout,
        colocated_train=train,
        colocated_switch_s=some(10.0),
        weight_sync_s=some(6.0),
        staleness=pick.choice([0.0, 0.25, 0.5, 0.9, 1.0, 1.5, 2.0, 3.0]),
        steps=steps,
        work_factor=tuple(pick.uniform(0.3, 3.0) for _ in range(pick.randint(1, 5))),
        max_response_tokens=tuple(pick.uniform(100.0, 4000.0) for _ in range(pick.randint(1, 5))),
    )


def cycled(values: tuple[float, ...], step: int) -> float:
    """Of a cycled list, the value of a step."""
    return values[step % len(values)]


def unlent(setting: Setting, *, streaming: bool) -> list[float]:
    """Completions without any lending, batch by batch: nothing of a batch needs to know of a later one.

    Syncs are intervals during which the rollout, but for a streamed tail, makes no headway.
    """
    syncs: list[tuple[float, float]] = []
    lead = 1 if 0 < setting.staleness < 1 else int(setting.staleness)
    free_s = trained_s = 0.0
    for step in range(setting.steps):
        work, tokens = cycled(setting.work_factor, step), cycled(setting.max_response_tokens, step)
        bulk_s = setting.rollout.bulk_replica_s * work / setting.rollout.replicas
        tail_s = setting.rollout.tail_s_per_token * tokens
        begun = max(free_s, _version(syncs, step - lead))
        if 0 < setting.staleness < 1:
            early = _worked(syncs, begun, setting.rollout.fixed_s + setting.staleness * bulk_s)
            done = _worked(syncs, max(early, _version(syncs, step)), (1 - setting.staleness) * bulk_s)
        else:
            done = _worked(syncs, begun, setting.rollout.fixed_s + bulk_s)
        complete = done + tail_s if streaming else _worked(syncs, done, tail_s)
        free_s = done if streaming else complete
        train = setting.train
        trained_s = max(complete, trained_s) + train.bulk_replica_s * work / train.replicas + train.fixed_s
        trained_s += train.tail_s_per_token * tokens
        syncs.append((trained_s, trained_s + setting.weight_sync_s))
        trained_s += setting.weight_sync_s
    return [end for _, end in syncs]


def _version(syncs: list[tuple[float, float]], version: int) -> float:
    """When the weights have been updated so often."""
    return syncs[version - 1][1] if version > 0 else 0.0


def _worked(syncs: list[tuple[float, float]], start_s: float, needed_s: float) -> float:
    """When so many seconds of work are done that every sync interrupts."""
    now_s = start_s
    for begins_s, ends_s in syncs:
        if ends_s <= now_s:
            continue
        if now_s + needed_s <= begins_s:
            break
        needed_s -= max(0.0, begins_s - now_s)
        now_s = ends_s
    return now_s + needed_s


def ticked(setting: Setting, rules: Rules, tick_s: float) -> float:
    """The makespan by ticks of a clock: at each, everything is looked at afresh; late by a few ticks a step."""
    return _Clockwork(setting, rules, tick_s).run()


class _Clockwork:
    """The words of the page one by one; what is left of a batch or a train step is listed part by part."""

    def __init__(self, setting: Setting, rules: Rules, tick_s: float) -> None:
        self.setting, self.rules, self.tick_s = setting, rules, tick_s
        self.now = 0.0
        self.version = self.complete = self.trained = 0
        self.batch: list[float] | None = None
        self.train: list[float] | None = None
        self.sync_left = 0.0
        self.stale_left = math.inf
        self.asked_r, self.asked_t = -1, -1
        self.r_helps_from = self.t_helps_from = math.inf
        self.r_free_at = self.t_free_at = 0.0

    def run(self) -> float:
        """Tick until the last sync is over."""
        while self.trained < self.setting.steps:
            self.begin()
            self.ask()
            self.tick()
        return self.now

    def begin(self) -> None:
        """Start what may start."""
        setting, k = self.setting, self.complete
        lead = 1 if 0 < setting.staleness < 1 else int(setting.staleness)
        if self.batch is None and k < setting.steps and self.version >= k - lead and self.now >= self.r_free_at:
            bulk = setting.rollout.bulk_replica_s * cycled(setting.work_factor, k)
            tail = setting.rollout.tail_s_per_token * cycled(setting.max_response_tokens, k)
            self.batch = [setting.rollout.fixed_s, bulk, tail]
            self.stale_left = setting.staleness * bulk if 0 < setting.staleness < 1 else math.inf
        if self.train is None and self.sync_left <= 0 and self.complete > self.trained and self.now >= self.t_free_at:
            step = self.trained
            bulk = setting.train.bulk_replica_s * cycled(setting.work_factor, step)
            tail = setting.train.tail_s_per_token * cycled(setting.max_response_tokens, step)
            self.train = [bulk, setting.train.fixed_s + tail]

    def gated(self) -> bool:
        """Whether the batch has used up its stale share and is ahead of the version."""
        partial = 0 < self.setting.staleness < 1
        return partial and self.version < self.complete and self.stale_left <= 0

    def ask(self) -> None:
        """Lend what may be lent, each pool once for a batch or a train step."""
        setting, rules = self.setting, self.rules
        in_bulk = self.batch is not None and (self.batch[0] > 0 or self.batch[1] > 0)
        waits = self.train is None and self.sync_left <= 0
        if rules.lend_train and in_bulk and waits and self.now >= self.t_free_at and self.asked_t < self.complete:
            self.asked_t = self.complete
            assert self.batch is not None
            left, d, more = self.batch[1], setting.rollout.replicas, setting.rollout.helpers
            switch = setting.rollout_on_train
            pays = left / d - left / (d + more) > switch.in_s + switch.out_s
            if more and left > 0 and (pays or not rules.by_cost):
                self.t_helps_from, self.t_free_at = self.now + switch.in_s, math.inf
        asks = self.train is not None and self.train[0] > 0 and self.asked_r < self.trained
        r_waits = self.batch is None or (self.gated() and self.batch[0] <= 0)
        if rules.lend_rollout and asks and r_waits and self.complete < setting.steps and self.now >= self.r_free_at:
            self.asked_r = self.trained
            assert self.train is not None
            left, d, more = self.train[0], setting.train.replicas, setting.train.helpers
            switch = setting.train_on_rollout
            rest = max(0.0, left - switch.in_s * d)
            pays = switch.in_s + rest / (d + more) + switch.out_s + switch.grad_s < left / d
            if more and rest > 0 and (pays or not rules.by_cost):
                self.r_helps_from, self.r_free_at = self.now + switch.in_s, math.inf
                self.train[1] += switch.grad_s

    def tick(self) -> None:
        """Work for one tick."""
        syncing = self.sync_left > 0
        self.now += self.tick_s
        if self.batch is not None and not syncing and self.now >= self.r_free_at:
            self.roll()
        if self.train is not None:
            self.learn()
        elif syncing:
            self.sync_left -= self.tick_s
            if self.sync_left <= 0:
                self.synced()

    def roll(self) -> None:
        """One tick of the batch."""
        assert self.batch is not None
        if self.batch[0] > 0:
            self.batch[0] -= self.tick_s
        elif self.batch[1] > 0:
            if not self.gated():
                helping = self.setting.rollout.helpers if self.now > self.t_helps_from else 0
                done = self.tick_s * (self.setting.rollout.replicas + helping)
                self.batch[1] -= done
                self.stale_left -= done
            if self.batch[1] <= 0 and self.t_free_at == math.inf:
                self.t_free_at, self.t_helps_from = self.now + self.setting.rollout_on_train.out_s, math.inf
        else:
            self.batch[2] -= self.tick_s
        if max(self.batch) <= 0:
            self.batch, self.complete = None, self.complete + 1

    def learn(self) -> None:
        """One tick of the train step."""
        assert self.train is not None
        if self.train[0] > 0:
            helping = self.setting.train.helpers if self.now > self.r_helps_from else 0
            self.train[0] -= self.tick_s * (self.setting.train.replicas + helping)
            if self.train[0] <= 0 and self.r_free_at == math.inf:
                self.r_free_at, self.r_helps_from = self.now + self.setting.train_on_rollout.out_s, math.inf
        else:
            self.train[1] -= self.tick_s
        if max(self.train) <= 0:
            self.train, self.sync_left = None, self.setting.weight_sync_s
            if self.sync_left <= 0:
                self.synced()

    def synced(self) -> None:
        """The new weights are there."""
        self.version, self.trained = self.version + 1, self.trained + 1
