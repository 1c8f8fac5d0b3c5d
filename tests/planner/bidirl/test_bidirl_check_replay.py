"""The check's own replay gives the page's figures to the digit, and its own scan the page's thresholds."""

from __future__ import annotations

import pytest
from bidirl_cases import FOUR_B, TWO_B, eight_and_eight, layout, linear, problem

from planner.papers.bidirl.checks.backlogs import missing_groups, remaining_chunks
from planner.papers.bidirl.checks.decided import Pools
from planner.papers.bidirl.checks.policies import Policies
from planner.papers.bidirl.checks.run import period_s
from planner.papers.bidirl.checks.splits import first_split
from planner.papers.bidirl.problem import BidirlProblem

GOLDEN_4 = problem(
    cluster__gpus=32,
    staleness=0.0,
    costs__rollout_layouts=[layout("tp2", 2, linear(10, 640, 0.01))],
    costs__train_layouts=[layout("fsdp4", 4, linear(15, 500))],
)
GOLDEN_5 = problem(
    staleness=1.0,
    batch__max_response_tokens=4000,
    costs__rollout_layouts=[layout("one", 1, linear(4, 240, 0.005))],
    costs__train_layouts=[layout("one", 1, linear(6, 160))],
    costs__switch={
        "rollout_on_train": {"in_s": 2.0, "out_s": 1.0},
        "train_on_rollout": {"in_s": 2.0, "out_s": 1.0, "grad_s": 0.5},
    },
    costs__colocated_switch_s=3.0,
    simulation={"steps": 6, "work_factor": [1.0, 2.0], "max_response_tokens": [1000.0, 4000.0]},
)


def policies(given: BidirlProblem, rollout_gpus: int) -> Policies:
    train_gpus = given.cluster.gpus - rollout_gpus
    return Policies(
        given, Pools(rollout_gpus, train_gpus, given.costs.rollout_layouts[0], given.costs.train_layouts[0])
    )


@pytest.mark.parametrize(
    ("policy", "makespan_s"),
    [
        ("no_borrow", 5049.6),  # 20 x (2 + 10 + 640/8 + 20.48 + 15 + 500/4)
        ("rollout_on_train", 4249.6),  # bulk of rollout ends at 10 + 640/16
        ("train_on_rollout", 3943.61),  # 19 x 194.27 + 252.48: after the last batch there is none to wait for
        ("bidirectional", 3143.61),
        ("colocated", 3199.6),  # 20 x (10 + 640/16 + 20.48 + 15 + 500/8 + 2 x 6)
    ],
)
def test_on_policy_runs_end_where_the_page_says(policy: str, makespan_s: float) -> None:
    ran = policies(GOLDEN_4, 16).ran(policy)
    assert ran.completions_s[-1] == pytest.approx(makespan_s, rel=1e-12)


@pytest.mark.parametrize(
    ("policy", "makespan_s", "period"),
    [
        ("no_borrow", 767, 118.33333333333333),
        ("rollout_on_train", 705.5, 111.08333333333333),
        ("train_on_rollout", 708.4166666666666, 103.6875),
        ("bidirectional", 646.9166666666666, 96.4375),
        ("colocated", 621, 103.5),
        ("separated_async", 762, 117.08333333333333),
    ],
)
def test_runs_one_version_stale_end_where_the_page_says(policy: str, makespan_s: float, period: float) -> None:
    ran = policies(GOLDEN_5, 5).ran(policy)
    assert ran.completions_s[-1] == pytest.approx(makespan_s, rel=1e-12)
    assert period_s(ran.completions_s, 1.0) == pytest.approx(period, rel=1e-12)


def test_each_step_ends_where_the_page_works_it_out_by_hand() -> None:
    ran = policies(GOLDEN_5, 5)
    assert ran.ran("no_borrow").completions_s == pytest.approx(
        [118 + 1 / 3, 293 + 2 / 3, 355, 530 + 1 / 3, 591 + 2 / 3, 767], rel=1e-12
    )
    assert ran.ran("rollout_on_train").completions_s[:2] == pytest.approx([100 + 1 / 3, 261 + 1 / 6], rel=1e-12)


def test_the_share_that_may_be_stale_waits_for_its_version_and_so_does_the_tail() -> None:
    """s = 0.25, alpha 1, 8 of bulk and 3 of tail on one replica; train 10, sync 2.

    Batch 0: 12 s, train to 22, sync to 24. Batch 1 starts at 12, fixed to 13, a quarter of the bulk to 15, and waits
    for 24; then 6 + 3 to 33; train to 43, sync to 45.
    """
    given = problem(
        staleness=0.25,
        batch__max_response_tokens=3,
        costs__rollout_layouts=[layout("one", 1, linear(1, 8, 1.0))],
        costs__train_layouts=[layout("one", 1, linear(0, 10))],
        cluster__gpus=2,
        simulation={"steps": 2},
    )
    ran = policies(given, 1).ran("no_borrow")
    assert ran.completions_s == [24, 45]
    # Pool R: idle from 15 to 22, the sync apart, and 33 to 43. Pool T: to 12, and from 24 to 33.
    assert (ran.rollout_idle_s, ran.train_idle_s) == (17, 21)


def test_a_tail_of_a_batch_without_bulk_waits_for_its_version_too() -> None:
    """As above without bulk: 4 s a batch. Batch 1 waits after its second of start-up, from 5 to 16, then 3 to 19."""
    given = problem(
        staleness=0.25,
        batch__max_response_tokens=3,
        costs__rollout_layouts=[layout("one", 1, linear(1, 0, 1.0))],
        costs__train_layouts=[layout("one", 1, linear(0, 10))],
        cluster__gpus=2,
        simulation={"steps": 2},
    )
    assert policies(given, 1).ran("no_borrow").completions_s == [16, 31]


def test_a_sync_stops_the_rollout_but_no_streamed_tail() -> None:
    """alpha 0, bulk 4, tail 6, train 3, sync 2, s = 2.

    Batches run one after the other: 0 ends at 10, its step at 13, the sync at 15. Batch 1 stops for it: it ends at 22.
    Streamed: bulks end at 4, 8 and 12, tails at 10, 14 and 18; steps at 13 + 2 = 15, 18 + 2 = 20 and 23 + 2 = 25.
    """
    given = problem(
        staleness=2.0,
        batch__max_response_tokens=6,
        costs__rollout_layouts=[layout("one", 1, linear(0, 4, 1.0))],
        costs__train_layouts=[layout("one", 1, linear(0, 3))],
        cluster__gpus=2,
        simulation={"steps": 3},
    )
    ran = policies(given, 1)
    assert ran.ran("no_borrow").completions_s[:2] == [15, 27]
    assert ran.ran("separated_async").completions_s == [15, 20, 25]


def test_bulk_that_ends_just_as_a_sync_begins_is_done_before_it() -> None:
    """Thirds of a second do not add up in floats: 0.1 + 1/3 of streamed bulk against train steps as long."""
    given = problem(
        staleness=3.0,
        batch__max_response_tokens=1,
        costs__rollout_layouts=[layout("one", 1, linear(0.1, 1, 0.0))],
        costs__train_layouts=[layout("one", 1, linear(0.1, 1))],
        cluster__gpus=6,
        costs__weight_sync_s=0.1,
        simulation={"steps": 9},
    )
    # A step is 0.1 + 1/3, and its sync 0.1, which stops the next batch just as that is done.
    step_s = 0.2 + 1 / 3
    expected = [0.1 + 1 / 3 + step_s * (k + 1) for k in range(9)]
    assert policies(given, 3).ran("separated_async").completions_s == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("switch", "groups", "chunks"), [(FOUR_B, 6, 8), (TWO_B, 5, 4)])
def test_published_switch_costs_give_the_thresholds_of_the_page(switch: object, groups: int, chunks: int) -> None:
    given = eight_and_eight(switch)  # type: ignore[arg-type]
    pools = Pools(8, 8, given.costs.rollout_layouts[0], given.costs.train_layouts[0])
    assert missing_groups(given, pools) == (groups, groups)
    assert remaining_chunks(given, pools) == (chunks, chunks)


def test_a_whole_chunk_is_finished_though_floats_fall_short_of_it() -> None:
    """A chunk takes 0.1 s, so 3 are done in 0.3 s, and 0.3 x 64 / 6.4 = 2.9999999999999996.

    U left: 0.3 + 0.05 (U - 3) < 0.1 U from U = 4 on; with 2 chunks done it would be 5.
    """
    assert 0.3 * 64 / 6.4 < 3
    given = problem(
        cluster__gpus=2,
        costs__rollout_layouts=[layout("one", 1, linear(0, 1))],
        costs__train_layouts=[layout("one", 1, linear(0, 6.4))],
        costs__switch={
            "rollout_on_train": {"in_s": 0, "out_s": 0},
            "train_on_rollout": {"in_s": 0.3, "out_s": 0, "grad_s": 0},
        },
    )
    pools = Pools(1, 1, given.costs.rollout_layouts[0], given.costs.train_layouts[0])
    assert remaining_chunks(given, pools) == (4, 4)


def test_a_direction_that_is_off_has_no_threshold() -> None:
    given = problem(hot_switch={"rollout_on_train": False, "train_on_rollout": False})
    pools = Pools(4, 4, given.costs.rollout_layouts[0], given.costs.train_layouts[0])
    assert missing_groups(given, pools) == remaining_chunks(given, pools) == (None, None)


def test_the_first_split_is_that_of_the_page() -> None:
    found = first_split(problem())
    assert found is not None
    assert found[0][:2] == (4, 4)
    assert found[1] == (210, 370)
    even = first_split(problem(split_granularity_gpus=3, cluster__gpus=12), even=True)
    assert even is not None
    assert even[0][:2] == (6, 6)
