"""What a pipeline rank holds: closed forms, the rank's own order, and the walk over it (memory page, 3.5)."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.memory.in_flight import (
    OrderedSchedule,
    RankOrder,
    bubble_share,
    chunks_at_peak,
    in_flight_chunks,
    peak_resident,
    rank_order,
    walk,
)


def shapes() -> list[tuple[OrderedSchedule, int, int, int]]:
    """Schedule, stages, micro-batches, chunks: all small ones that launchers allow."""
    return [
        (schedule, p, m, v)
        for schedule, p, m, v in product(("gpipe", "1f1b", "interleaved"), range(1, 6), range(1, 13), range(1, 4))
        if (v == 1 or m % p == 0) and (schedule != "1f1b" or v == 1)
    ]


def orders(schedule: OrderedSchedule, p: int, m: int, v: int) -> list[RankOrder]:
    return [rank_order(schedule, r, num_stages=p, num_micro_batches=m, chunks_per_rank=v) for r in range(p)]


def test_in_flight_of_1f1b_interleaved_and_few_micro_batches() -> None:
    ranks = np.arange(4)
    one = in_flight_chunks("1f1b", ranks, num_stages=4, num_micro_batches=8)
    two = in_flight_chunks("interleaved", ranks, num_stages=4, num_micro_batches=8, chunks_per_rank=2)
    few = in_flight_chunks("1f1b", ranks, num_stages=4, num_micro_batches=2)
    assert one.tolist() == [4, 3, 2, 1]
    assert two.tolist() == [11, 9, 7, 5]
    assert few.tolist() == [2, 2, 2, 1]


def test_interleaved_rank_0_keeps_the_published_share_of_layers() -> None:
    # L(1 + (p-1)/(pv)) layers: p = 8, v = 3 gives 24 + 7 = 31 chunks (G9).
    assert in_flight_chunks("interleaved", 0, num_stages=8, num_micro_batches=64, chunks_per_rank=3) == 31


@pytest.mark.parametrize(
    ("schedule", "resident", "share"),
    [
        ("gpipe", 64, Fraction(1)),
        ("1f1b", 8, Fraction(1)),
        ("zb1p", 8, Fraction(1, 3)),
        ("zb2p", 15, Fraction(0)),
        ("zbv", 8, Fraction(0)),
        ("v_half", 5, Fraction(1, 2)),
        ("v_min", 4, Fraction(2, 3)),
    ],
)
def test_rank_0_of_8_stages_and_64_micro_batches(schedule: str, resident: int, share: Fraction) -> None:
    # The table of 3.5: m, p, p, 2p - 1, p, (p + 2) / 2 and (p + 4) / 3, both rounded down.
    assert in_flight_chunks(schedule, 0, num_stages=8, num_micro_batches=64) == resident  # type: ignore[arg-type]
    assert bubble_share(schedule) == share  # type: ignore[arg-type]


def test_zero_bubble_schedules_hold_no_more_than_there_is() -> None:
    held = in_flight_chunks("zb2p", np.arange(3), num_stages=3, num_micro_batches=2, chunks_per_rank=2)
    assert held.tolist() == [4, 4, 4]


def test_interleaving_divides_the_bubble_by_the_chunks() -> None:
    assert bubble_share("interleaved", 4) == Fraction(1, 4)


def test_the_interleaved_order_of_two_stages_is_that_of_megatron() -> None:
    # p 2, v 2, m 4, rank 0: four forwards, then one forward and one backward in turn; backwards start at chunk 1.
    order = rank_order("interleaved", 0, num_stages=2, num_micro_batches=4, chunks_per_rank=2)
    told = [f"{'F' if f else 'B'}{c}{b}" for f, c, b in zip(*(each.tolist() for each in order), strict=True)]
    assert " ".join(told) == "F00 F01 F10 F11 F02 B10 F03 B11 F12 B00 F13 B01 B12 B13 B02 B03"


def test_the_1f1b_order_of_the_last_stage_alternates_from_the_start() -> None:
    order = rank_order("1f1b", 2, num_stages=3, num_micro_batches=3)
    assert order.forward.tolist() == [True, False] * 3


def test_every_order_runs_each_chunk_of_each_micro_batch_forward_and_then_backward() -> None:
    for schedule, p, m, v in shapes():
        for order in orders(schedule, p, m, v):
            tasks = list(zip(*(each.tolist() for each in order), strict=True))
            assert len(set(tasks)) == len(tasks) == 2 * m * v
            assert all(tasks.index((True, c, b)) < tasks.index((False, c, b)) for c in range(v) for b in range(m))


def test_no_order_waits_for_itself() -> None:
    for schedule, p, m, v in shapes():
        assert runs_to_its_end(
            [list(zip(*(each.tolist() for each in o), strict=True)) for o in orders(schedule, p, m, v)]
        )


def runs_to_its_end(waiting: list[list[tuple[bool, int, int]]]) -> bool:
    """Run the head of any rank's order whose needs are met, until nothing is left or nothing can run."""
    p = len(waiting)
    last = max(chunk for order in waiting for _, chunk, _ in order) * p + p - 1
    done: set[tuple[bool, int, int]] = set()
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(waiting):
            while order:
                forward, chunk, batch = order[0]
                stage = chunk * p + rank
                if forward:
                    met = stage == 0 or (True, stage - 1, batch) in done
                else:
                    met = ((True, stage, batch) if stage == last else (False, stage + 1, batch)) in done
                if not met:
                    break
                done.add((forward, stage, batch))
                order.pop(0)
                moved = True
    return not any(waiting)


def test_the_walk_over_equal_chunks_is_the_closed_form() -> None:
    for schedule, p, m, v in shapes():
        walked = [walk(order, np.ones(v)) for order in orders(schedule, p, m, v)]
        held = in_flight_chunks(schedule, np.arange(p), num_stages=p, num_micro_batches=m, chunks_per_rank=v)
        assert walked == held.tolist(), (schedule, p, m, v)


@given(st.data())
def test_the_short_walk_finds_the_peak_of_the_whole_one(data: st.DataObject) -> None:
    p, v = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    m = data.draw(st.integers(1, 60)) * (p if v > 1 else 1)
    rank = data.draw(st.integers(0, p - 1))
    schedule = data.draw(st.sampled_from(("gpipe", "interleaved")))
    stored = data.draw(st.lists(st.integers(0, 1000), min_size=v, max_size=v))
    order = rank_order(schedule, rank, num_stages=p, num_micro_batches=m, chunks_per_rank=v)
    short = peak_resident(schedule, rank, stored, num_stages=p, num_micro_batches=m)
    assert short == walk(order, stored)
    held = chunks_at_peak(schedule, rank, stored, num_stages=p, num_micro_batches=m)
    assert sum(times * each for times, each in zip(held, stored, strict=True)) == short
    assert all(0 <= times <= m for times in held)


def test_the_peak_of_uneven_chunks_need_not_be_at_the_end_of_the_warm_up() -> None:
    # Rank 1 of 2, v 2: warm-up F0 F0, then F1 B1 F1 B1: with a heavy second chunk 2 + 10 is the peak, not 2.
    assert peak_resident("interleaved", 1, [1, 10], num_stages=2, num_micro_batches=4) == 12


def test_interleaved_last_rank_of_a_full_pipeline() -> None:
    held = in_flight_chunks("interleaved", 63, num_stages=64, num_micro_batches=256, chunks_per_rank=8)
    assert held == 7 * 64 + 1
