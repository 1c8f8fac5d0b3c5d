"""The replay gives the page's figures to the digit, what independent replays give, and idle time that adds up."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from bidirl_runs import five_and_three, pools_of_sixteen, random_run, ticked, unlent

from planner.papers.bidirl.policies import RULES, recommended, replayed
from planner.papers.bidirl.replay.lending import helped_end_s, lends_rollout_pool, lends_train_pool
from planner.papers.bidirl.replay.outcome import Span, step_period_s
from planner.papers.bidirl.replay.setting import Setting, Stage, Switch
from planner.papers.bidirl.solution import PLANNED, POLICIES, Policy, Thresholds

EVERY = [policy for policy in POLICIES if policy != "half_split"]
LENDING: list[Policy] = ["rollout_on_train", "train_on_rollout", "bidirectional", "opportunistic"]
FREE = Switch()


def plain(rollout: Stage, train: Stage, **other: object) -> Setting:
    """A run in which nothing costs anything but the two stages."""
    fields: dict[str, object] = {
        "rollout_on_train": FREE,
        "train_on_rollout": FREE,
        "colocated_rollout": rollout,
        "colocated_train": train,
        "colocated_switch_s": 0.0,
        "weight_sync_s": 0.0,
        "staleness": 0.0,
        "steps": 3,
    }
    return Setting(rollout=rollout, train=train, **{**fields, **other})


# Golden cases 4 and 5 of the page; case 1 is in test_bidirl_baselines.


@pytest.mark.parametrize(
    ("policy", "makespan_s"),
    [
        ("no_borrow", 20 * 252.48),  # 10 + 640/8 + 20.48, then 500/4 + 15, then 2
        ("rollout_on_train", 20 * 212.48),  # helpers are there after 7.7 s, before the start-up is over: 10 + 640/16
        ("train_on_rollout", 19 * 194.27 + 252.48),  # the last step has no next batch
        ("bidirectional", 19 * 154.27 + 212.48),
        ("colocated", 20 * 159.98),  # 10 + 640/16 + 20.48, 500/8 + 15, two switches of 6
        ("separated_async", 20 * 252.48),  # on-policy there is no tail beside which to start
    ],
)
def test_two_pools_of_sixteen_take_what_the_page_says(policy: Policy, makespan_s: float) -> None:
    assert replayed(pools_of_sixteen(), policy).makespan_s == pytest.approx(makespan_s, rel=1e-12)


@pytest.mark.parametrize(
    ("policy", "makespan_s", "step_period_s"),
    [
        ("no_borrow", 767, 118.3333),
        ("rollout_on_train", 705.5, 111.0833),
        ("train_on_rollout", 708.4167, 103.6875),
        ("bidirectional", 646.9167, 96.4375),
        ("colocated", 621, 103.5),
        ("separated_async", 762, 117.0833),
    ],
)
def test_five_and_three_gpus_take_what_the_page_says(policy: Policy, makespan_s: float, step_period_s: float) -> None:
    outcome = replayed(five_and_three(), policy)
    assert round(outcome.makespan_s, 4) == makespan_s
    assert round(outcome.step_period_s, 4) == step_period_s


def test_the_first_two_steps_are_those_taken_by_hand() -> None:
    completions_s = replayed(five_and_three(), "rollout_on_train").completions_s
    # Batch 0: all 8 replicas from 2 s, bulk ends at 4 + 240/8 = 34, tail 5 to 39; 160/3 + 6 of training, sync 2.
    assert completions_s[0] == pytest.approx(39 + 160 / 3 + 6 + 2)
    # Batch 1 of twice the work, from 39 to the sync at 98.3333: fixed 4, then 5 * 55.3333 of its 480 replica-seconds.
    # Helpers from 102.3333; 203.3333 - 10 are left then, for 8: bulk to 126.5, tail 20, training 106.6667 + 6, sync 2.
    assert completions_s[1] == pytest.approx(126.5 + 20 + 320 / 3 + 6 + 2)
    assert [round(second, 4) for second in replayed(five_and_three(), "no_borrow").completions_s] == [
        118.3333,
        293.6667,
        355,
        530.3333,
        591.6667,
        767,
    ]


# Against replays that are written in another way.


@pytest.mark.parametrize("block", range(4))
def test_without_lending_it_is_what_batch_by_batch_recurrences_give(block: int) -> None:
    for seed in range(200 * block, 200 * block + 200):
        setting = random_run(seed)
        for policy, streaming in (("no_borrow", False), ("separated_async", True)):
            expected_s = unlent(setting, streaming=streaming)
            assert replayed(setting, policy).completions_s == pytest.approx(expected_s, rel=1e-12), f"seed {seed}"


@pytest.mark.parametrize("policy", LENDING)
def test_with_lending_it_is_what_the_ticks_of_a_clock_give(policy: Policy) -> None:
    lent, tick_s = 0, 0.1
    for seed in range(8):
        setting = random_run(seed, steps=4)
        outcome = replayed(setting, policy)
        lent += outcome.train_pool_lent + outcome.rollout_pool_lent
        # Each of the ten or so events of a step is seen a tick late at the most.
        assert ticked(setting, RULES[policy], tick_s) == pytest.approx(outcome.makespan_s, abs=40 * tick_s)
    assert lent > 8


# What lending does.

BOTH_PAY = Thresholds(min_missing_groups=1, min_remaining_chunks=1)


def test_lending_by_the_rules_never_makes_a_run_longer_but_lending_wherever_it_can_does() -> None:
    quicker = slower = 0
    for seed in range(400):
        setting = random_run(seed, steps=12)
        runs = {policy: replayed(setting, policy) for policy in (*PLANNED, "opportunistic")}
        alone_s = runs["no_borrow"].makespan_s
        for policy in PLANNED:
            assert runs[policy].makespan_s <= alone_s * (1 + 1e-9), f"{policy}, seed {seed}"
        quicker += runs[recommended(runs, BOTH_PAY)].makespan_s < alone_s * 0.9
        slower += runs["opportunistic"].makespan_s > runs["bidirectional"].makespan_s * (1 + 1e-9)
    assert quicker > 200
    assert slower > 0


def test_of_equal_runs_the_policy_that_lends_least_is_recommended() -> None:
    one_pool = replace(five_and_three(), rollout=Stage(5, 4.0, 240.0, 0.005), train=Stage(3, 6.0, 160.0))
    runs = {policy: replayed(one_pool, policy) for policy in PLANNED}
    assert len({run.makespan_s for run in runs.values()}) == 1
    assert recommended(runs, BOTH_PAY) == "no_borrow"
    both = {policy: replayed(five_and_three(), policy) for policy in PLANNED}
    assert recommended(both, BOTH_PAY) == "bidirectional"


@pytest.mark.parametrize(
    ("groups", "chunks", "policy"),
    [(None, 1, "train_on_rollout"), (1, None, "rollout_on_train"), (None, None, "no_borrow")],
)
def test_a_direction_without_a_threshold_is_never_recommended(
    groups: int | None, chunks: int | None, policy: Policy
) -> None:
    """Of golden case 5, where bidirectional ends first and each direction alone before no_borrow."""
    runs = {policy: replayed(five_and_three(), policy) for policy in PLANNED}
    assert recommended(runs, Thresholds(min_missing_groups=groups, min_remaining_chunks=chunks)) == policy


def test_a_loan_that_gains_as_much_as_it_costs_is_not_made() -> None:
    stage = Stage(1, 0.0, 0.0, helpers=1)
    # 20 replica-seconds take 20 s alone and 10 s together: 10 s gained.
    assert not lends_train_pool(stage, Switch(6.0, 4.0), 20.0, 20.0, by_cost=True)
    assert lends_train_pool(stage, Switch(6.0, 3.99), 20.0, 20.0, by_cost=True)
    # Switched in after 4 s, 16 are left: 4 + 16/2 + 5 + 3 = 20.
    assert not lends_rollout_pool(stage, Switch(4.0, 5.0, 3.0), 20.0, 20.0, by_cost=True)
    assert lends_rollout_pool(stage, Switch(4.0, 5.0, 2.99), 20.0, 20.0, by_cost=True)


def test_without_helpers_or_work_nothing_is_lent_even_for_free() -> None:
    for by_cost in (True, False):
        alone, helped = Stage(2, 1.0, 8.0), Stage(2, 1.0, 8.0, helpers=2)
        assert not lends_train_pool(alone, FREE, 8.0, 8.0, by_cost=by_cost)
        assert not lends_rollout_pool(alone, FREE, 8.0, 8.0, by_cost=by_cost)
        assert not lends_train_pool(helped, FREE, 0.0, 8.0, by_cost=by_cost)
        assert not lends_rollout_pool(helped, FREE, 0.0, 8.0, by_cost=by_cost)
        assert lends_train_pool(helped, FREE, 8.0, 8.0, by_cost=by_cost)
        assert lends_rollout_pool(helped, FREE, 8.0, 8.0, by_cost=by_cost)


@pytest.mark.parametrize(
    ("helpers_from_s", "end_s"),
    [
        (0.0, 10 + 12 / 3),  # there before the bulk begins
        (10.0, 10 + 12 / 3),
        (14.0, 14 + 8 / 3),  # 4 of 12 are done by one
        (30.0, 10 + 12),  # too late
    ],
)
def test_helpers_work_from_when_they_are_there(helpers_from_s: float, end_s: float) -> None:
    assert helped_end_s(Stage(1, 0.0, 12.0, helpers=2), 10.0, 12.0, helpers_from_s) == pytest.approx(end_s)


def test_a_pool_that_is_lent_comes_back_late_where_taking_it_back_takes_long() -> None:
    # Bulk of 40 on 1 + 1 replicas from 0 s: 20 s; pool T is free 15 s later, though the batch is complete at 20 s.
    setting = plain(Stage(1, 0.0, 40.0, helpers=1), Stage(1, 0.0, 10.0), rollout_on_train=Switch(0.0, 15.0), steps=1)
    assert replayed(setting, "rollout_on_train").makespan_s == pytest.approx(20 + 15 + 10)


def test_a_batch_that_waits_within_its_bulk_waits_for_a_version_too() -> None:
    # Half of batch 1 may be generated before version 1: 10 of 20 s, from 20 to 30 s; training runs from 20 s on.
    setting = plain(Stage(1, 0.0, 20.0), Stage(1, 0.0, 30.0, helpers=1), staleness=0.5, steps=2)
    outcome = replayed(setting, "train_on_rollout")
    # Lent at 30 s: 20 are left, done at 40 s. The rest of batch 1 to 50 s, training to 80 s.
    assert outcome.completions_s == pytest.approx((40.0, 80.0))
    assert outcome.rollout_pool_lent == 1


def test_a_tail_waits_for_its_version_even_where_the_batch_is_nothing_else() -> None:
    # Training takes 7 s from 5 s on; batch 1, all tail, is generated after it although half of it may be stale.
    setting = plain(Stage(1, 0.0, 0.0, 5.0), Stage(1, 0.0, 7.0), staleness=0.5, steps=2, max_response_tokens=(1.0,))
    assert replayed(setting, "no_borrow").completions_s == pytest.approx((12.0, 24.0))


def test_even_where_no_costs_are_asked_a_pool_is_not_lent_to_training_that_ends_before_it_comes() -> None:
    # 10 replica-seconds on 2 take 5 s, switching in as long.
    stage = Stage(2, 0.0, 10.0, helpers=2)
    assert not lends_rollout_pool(stage, Switch(5.0), 10.0, 10.0, by_cost=False)
    assert lends_rollout_pool(stage, Switch(4.9), 10.0, 10.0, by_cost=False)
    # Neither is the gradient merged then, nor the pool taken back.
    setting = plain(Stage(1, 0.0, 1.0), stage, train_on_rollout=Switch(5.0, 90.0, 90.0), steps=2, staleness=0.0)
    assert replayed(setting, "opportunistic").makespan_s == pytest.approx(12.0)


def test_what_is_stale_is_generated_during_training_and_the_rest_after_the_sync() -> None:
    # M_r = 2 + 8 + 5, M_t = 4, w = 1; a quarter of the bulk, 2 s, may be stale. In steady state the start-up and those
    # 2 s lie within the training: w + M_t + 3/4 of 8 + the tail (page, (2)).
    setting = plain(
        Stage(1, 2.0, 8.0, 5.0),
        Stage(1, 0.0, 4.0),
        weight_sync_s=1.0,
        staleness=0.25,
        steps=4,
        max_response_tokens=(1.0,),
    )
    assert replayed(setting, "no_borrow").completions_s == pytest.approx((20.0, 36.0, 52.0, 68.0))


@pytest.mark.parametrize("block", range(3))
def test_without_lending_equal_steps_settle_at_the_period_of_the_page(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        setting = replace(random_run(seed, steps=40), work_factor=(1.0,), max_response_tokens=(1000.0,))
        rollout, train, s, w = setting.rollout, setting.train, setting.staleness, setting.weight_sync_s
        bulk_s, tail_s = rollout.bulk_replica_s / rollout.replicas, rollout.tail_s_per_token * 1000
        rollout_s = rollout.fixed_s + bulk_s + tail_s
        train_s = train.fixed_s + train.bulk_replica_s / train.replicas + train.tail_s_per_token * 1000
        if s >= 1:
            period_s = w + max(rollout_s, train_s)
        elif s == 0:
            period_s = w + rollout_s + train_s
        else:
            period_s = w + max(rollout_s, train_s + (1 - s) * bulk_s + tail_s)
        ends_s = replayed(setting, "no_borrow").completions_s
        assert (ends_s[-5] - ends_s[-25]) / 20 == pytest.approx(period_s, rel=1e-9), f"seed {seed}"


def test_more_whole_versions_absorb_variance_and_raise_no_mean_rate() -> None:
    rollout, train = Stage(1, 0.0, 10.0), Stage(1, 0.0, 10.0)
    steady = [replayed(plain(rollout, train, staleness=s, steps=12), "no_borrow").makespan_s for s in (1.0, 2.0, 4.0)]
    assert steady == pytest.approx([130.0] * 3)
    uneven = plain(rollout, train, steps=12, work_factor=(0.2, 0.2, 2.6))
    tight, loose = (replayed(replace(uneven, staleness=s), "no_borrow").makespan_s for s in (1.0, 3.0))
    assert loose < tight


def test_a_streamed_tail_runs_beside_the_next_batch_and_through_a_sync() -> None:
    setting = plain(
        Stage(1, 0.0, 10.0, 1.0),
        Stage(1, 0.0, 2.0),
        weight_sync_s=3.0,
        staleness=2.0,
        steps=2,
        max_response_tokens=(1.0, 30.0),
    )
    # Bulks end at 10 and, stopped by the sync of 13 to 16 s, at 23 s; tails end at 11 and 53 s.
    assert replayed(setting, "separated_async").completions_s == pytest.approx((16.0, 58.0))
    # In order: 11, then from 11 to 13 and from 16 to 24 s, tail to 54 s.
    assert replayed(setting, "no_borrow").completions_s == pytest.approx((16.0, 59.0))


# Periods and idle time.


@pytest.mark.parametrize(
    ("staleness", "period_s"),
    [
        (0.0, (31 - 1) / 4),  # the first step is dropped
        (0.5, (15 - 1) / 3),  # and the last
        (1.0, (15 - 1) / 3),
        (1.5, (7 - 3) / 1),  # two of each
        (3.0, 31 / 5),  # none would be left
        (1e6, 31 / 5),
    ],
)
def test_a_period_is_the_mean_of_the_steps_in_between(staleness: float, period_s: float) -> None:
    assert step_period_s([1.0, 3.0, 7.0, 15.0, 31.0], staleness) == pytest.approx(period_s)


@pytest.mark.parametrize("policy", EVERY)
def test_a_pool_does_one_thing_at_a_time_and_idles_for_the_rest(policy: Policy) -> None:
    for seed in range(60):
        setting = random_run(seed)
        spans: list[Span] = []
        outcome = replayed(setting, policy, spans)
        assert outcome == replayed(setting, policy), "looking on changes nothing"
        if policy == "colocated":
            assert math.fsum(span.end_s - span.start_s for span in spans) == pytest.approx(outcome.makespan_s)
            continue
        for pool, idle_s in (("rollout", outcome.rollout_idle_s), ("train", outcome.train_idle_s)):
            # Streamed tails overlap what follows, and taking a lent pool R back the sync; it may outlast the run.
            busy = sorted((span.start_s, min(span.end_s, outcome.makespan_s)) for span in spans if span.pool == pool)
            reached_s = free_s = overlap_s = 0.0
            for start_s, end_s in busy:
                free_s += max(0.0, start_s - reached_s)
                overlap_s += max(0.0, min(reached_s, end_s) - start_s)
                reached_s = max(reached_s, end_s)
            free_s += outcome.makespan_s - reached_s
            assert free_s == pytest.approx(idle_s, rel=1e-9, abs=1e-9), f"{pool}, seed {seed}"
            if policy != "separated_async":
                late_s = outcome.rollout_pool_lent * setting.train_on_rollout.out_s if pool == "rollout" else 0.0
                assert overlap_s <= late_s + 1e-9


def test_lent_pools_are_counted_and_are_not_idle() -> None:
    alone, both = (replayed(pools_of_sixteen(), policy) for policy in ("no_borrow", "bidirectional"))
    assert (alone.train_pool_lent, alone.rollout_pool_lent) == (0, 0)
    assert (both.train_pool_lent, both.rollout_pool_lent) == (20, 19)
    # Alone, pool T waits for each batch and pool R for each version: 110.48 and 140 of 252.48 s.
    assert alone.train_idle_s == pytest.approx(20 * 110.48)
    assert alone.rollout_idle_s == pytest.approx(20 * 140)
    assert alone.train_idle_share == pytest.approx(110.48 / 252.48)
    # Lent, T is away to 50 + 5.59 of 70.48 s, and R for 6.16 + 475.36/8 + 5.62 of 83.79 - 2 s, not in the last step.
    assert both.train_idle_s == pytest.approx(20 * (70.48 - 55.59))
    assert both.rollout_idle_s == pytest.approx(19 * (81.79 - 71.2) + 140)


# Degenerate runs.


@pytest.mark.parametrize("policy", EVERY)
@pytest.mark.parametrize("staleness", [0.0, 0.5, 1.0, 1e6])
def test_runs_of_next_to_nothing_end(policy: Policy, staleness: float) -> None:
    nothing = Stage(1, 0.0, 0.0, helpers=1)
    assert replayed(plain(nothing, nothing, staleness=staleness), policy).makespan_s == 0
    assert replayed(plain(nothing, nothing, staleness=staleness), policy).rollout_idle_share == 0
    one = plain(Stage(1, 3.0, 0.0, helpers=1), Stage(1, 0.0, 5.0, helpers=1), staleness=staleness, steps=1)
    # A train step that nobody else may shorten: the last has no next batch. Colocated has no helpers either.
    assert replayed(one, policy).makespan_s == pytest.approx(8.0)


def test_a_run_of_many_steps_stays_exact() -> None:
    # 10,000 equal steps of w + M_t = 2 + 140, the first of which waits for its batch.
    setting = replace(pools_of_sixteen(), staleness=1.0, steps=10_000)
    assert replayed(setting, "no_borrow").makespan_s == pytest.approx(110.48 + 142 * 10_000, rel=1e-11)
