"""Thresholds to lend, against a scan of the page's rule in plain numbers (page, section 3.4)."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from bidirl_cases import FOUR_B, changed, eight_and_eight, layout, linear, problem

from planner.papers.bidirl.problem import BidirlProblem, Linear
from planner.papers.bidirl.search import best_split
from planner.papers.bidirl.splits import Split
from planner.papers.bidirl.thresholds import backlogs, finished_chunks, thresholds

FREE = {
    "rollout_on_train": {"in_s": 0, "out_s": 0},
    "train_on_rollout": {"in_s": 0, "out_s": 0, "grad_s": 0},
}


def stated(one: BidirlProblem) -> tuple[int | None, int | None]:
    """Both thresholds at the best split."""
    split = best_split(one)
    assert split is not None
    found = thresholds(one, split)
    return found.min_missing_groups, found.min_remaining_chunks


def scanned(one: BidirlProblem, split: Split) -> tuple[int | None, int | None]:
    """Both thresholds of linear times, in exact fractions."""
    rollout, train, switch = split.rollout.time, split.train.time, one.costs.switch
    assert isinstance(rollout, Linear)
    assert isinstance(train, Linear)
    assert switch.rollout_on_train is not None
    assert switch.train_on_rollout is not None
    groups, chunks = one.batch.prompt_groups, one.batch.train_chunks
    own, both = split.rollout_replicas, split.rollout_replicas + split.rollout_helpers
    lend, to_train = switch.rollout_on_train, switch.train_on_rollout
    beta = Fraction(rollout.beta_s)
    costs = Fraction(lend.in_s) + Fraction(lend.out_s)
    lends = [Fraction(q, groups) * beta * (Fraction(1, own) - Fraction(1, both)) > costs for q in range(groups + 1)]
    own, both = split.train_replicas, split.train_replicas + split.train_helpers
    beta = Fraction(train.beta_s)
    done = math.floor(Fraction(to_train.in_s) * chunks * own / beta) if beta else chunks
    costs = Fraction(to_train.in_s) + Fraction(to_train.out_s) + Fraction(to_train.grad_s)
    trains = [
        u > done and costs + Fraction(u - done, chunks) * beta / both < Fraction(u, chunks) * beta / own
        for u in range(chunks + 1)
    ]
    return _from_which(lends), _from_which(trains)


def _from_which(holds: list[bool]) -> int | None:
    return next((q for q in range(len(holds)) if all(holds[q:])), None)


def test_linear_thresholds_are_those_of_exact_fractions() -> None:
    tried = 0
    for seed in range(200):
        beta_r, beta_t = 100.0 + 37 * (seed % 29), 50.0 + 61 * (seed % 23)
        one = problem(
            cluster__gpus=16,
            batch__prompt_groups=1 + seed % 41,
            batch__train_chunks=1 + seed % 37,
            costs__rollout_layouts=[layout("r", 1 + seed % 2, linear(5, beta_r, 0.01))],
            costs__train_layouts=[layout("t", 1 + seed % 3 // 2, linear(3, beta_t))],
            costs__switch={
                "rollout_on_train": {"in_s": 0.37 * (seed % 11), "out_s": 0.53 * (seed % 7)},
                "train_on_rollout": {"in_s": 0.41 * (seed % 5), "out_s": 0.23 * (seed % 13), "grad_s": 0.7},
            },
        )
        split = best_split(one)
        assert split is not None
        assert stated(one) == scanned(one, split)
        tried += stated(one) != (None, None)
    assert tried > 50


def test_exported_integers_are_no_less_than_the_real_backlogs() -> None:
    one = eight_and_eight(FOUR_B)
    split = Split(8, 8, one.costs.rollout_layouts[0], one.costs.train_layouts[0])
    found, real = thresholds(one, split), backlogs(one, split)
    assert real.missing_groups is not None
    assert found.min_missing_groups == math.ceil(real.missing_groups)
    assert real.remaining_chunks is not None
    assert found.min_remaining_chunks is not None
    assert found.min_remaining_chunks >= real.remaining_chunks


def test_a_gain_of_nothing_never_lends_even_where_switching_is_free() -> None:
    one = problem(
        costs__switch=FREE,
        costs__rollout_layouts=[layout("r", 1, linear(10, 0, 0.1))],
        costs__train_layouts=[layout("t", 1, linear(10, 0))],
    )
    assert stated(one) == (None, None)


def test_free_switching_lends_from_the_first_group_on() -> None:
    assert stated(problem(costs__switch=FREE)) == (1, 1)


def test_a_pool_smaller_than_a_replica_of_the_other_role_is_not_lent() -> None:
    # Without hot switch rules 4 + 4 GPUs hold one replica of 4 to train on, and a pool of 4 none of 8.
    one = problem(
        cluster__gpus=12,
        cluster__gpus_per_node=4,
        hot_switch={"rollout_on_train": False, "train_on_rollout": False},
        costs__rollout_layouts=[layout("r", 8, linear(10, 400))],
        costs__train_layouts=[layout("t", 4, linear(10, 300))],
    )
    split = best_split(one)
    assert split is not None
    assert (split.rollout_gpus, split.rollout_helpers, split.train_helpers) == (8, 0, 2)
    assert stated(one) == (None, None)


def test_a_tail_that_outweighs_the_work_is_not_worth_lending_for() -> None:
    # Of the 20 s that two replicas share two more save 10, where switching costs 13.29; of the tail they save nothing.
    one = problem(costs__rollout_layouts=[layout("tp2", 2, linear(10, 40, 1.0))])
    assert stated(in_halves(one))[0] is None


def test_a_table_lends_only_where_it_lists_both_pools() -> None:
    times = {"kind": "table", "replicas": [2], "time_s": [210.0]}
    assert stated(problem(costs__rollout_layouts=[layout("tp2", 2, times)]))[0] is None
    # With the four replicas of both pools listed, Q groups take Q/64 of 210 or 110 s: 1.5625 Q > 13.29.
    times = {"kind": "table", "replicas": [2, 4], "time_s": [210.0, 110.0]}
    assert stated(problem(costs__rollout_layouts=[layout("tp2", 2, times)]))[0] == 9


def test_decode_bound_by_the_longest_response_lends_only_above_what_fits_at_once() -> None:
    # A replica decodes 16 groups of 8 at once, in 2048 steps of 0.01 s: two take 20.48 s up to 32 groups, then 16 steps
    # more for each of n = 8 ceil(Q / 2) sequences above 128; four take 20.48 s up to all 64. At Q = 52, n is 208 and
    # 80 * 0.16 = 12.8 s are saved, at 53 it is 216 and 14.08 s are more than 13.29.
    times = {
        "kind": "lengths",
        "prompt_tokens": 0,
        "prefill_s_per_token": 0,
        "mean_response_tokens": 2048,
        "concurrency": 128,
        "step_base_s": 0.01,
        "step_per_sequence_s": 0,
    }
    assert stated(in_halves(problem(costs__rollout_layouts=[layout("tp2", 2, times)])))[0] == 53


def test_stages_lend_by_the_chunks_that_are_left_on_each_replica() -> None:
    # 64 chunks of 5 s on 2 replicas: U chunks take 5 ceil(U / 2) beside 10 s. In 6.16 s two are finished (6.16 * 64 /
    # 160 = 2.46). 12.99 + 5 ceil((U - 2) / 4) < 5 ceil(U / 2): at U = 9: 22.99 < 25; 10: 22.99 < 25; 11: 27.99 < 30.
    # At 8: 22.99 > 20; at 7: 22.99 > 20.
    stages = [{"name": "forward", "fixed_s": 10, "chunks": 64, "chunk_s": 5}]
    one = problem(costs__train_layouts=[layout("t", 2, {"kind": "stages", "stages": stages})])
    assert stated(in_halves(one))[1] == 9


def in_halves(one: BidirlProblem) -> BidirlProblem:
    """The problem with an even split alone."""
    return problem(changed(one.model_dump(exclude_none=True), split_granularity_gpus=4))


@pytest.mark.parametrize(("in_s", "finished"), [(0, 0), (2.4999, 0), (2.5, 1), (160, 64), (1000, 64)])
def test_chunks_that_are_finished_while_helpers_switch_in_are_whole(in_s: float, finished: int) -> None:
    # 64 chunks in 160 s.
    assert finished_chunks(in_s, 64, 160.0) == finished


def test_chunks_that_take_no_time_are_finished_at_once() -> None:
    assert finished_chunks(0, 64, 0.0) == 64
