"""The replay of a pipeline against the task graph of the launcher's own order, its closed form and the bound."""

from __future__ import annotations

from random import Random

import pytest

from planner.memory.in_flight import rank_order
from planner.papers.layout.bound import pipeline_bound_s
from planner.papers.layout.composition import Composition
from planner.papers.layout.replay import pipeline_s
from planner.papers.layout.stage_times import Stages

Times = list[float]
NOTHING = Composition((), (), (), (), ())
"""Of stages whose times are given."""


def by_events(forward_s: Times, backward_s: Times, p: int, m: int, v: int) -> float:
    """The makespan by events: a rank runs its next task as soon as what it waits for is there."""
    schedule = "interleaved" if v > 1 else "1f1b"
    waiting = []
    for rank in range(p):
        order = rank_order(schedule, rank, num_stages=p, num_micro_batches=m, chunks_per_rank=v)
        waiting.append(list(zip(*(each.tolist() for each in order), strict=True))[::-1])
    end_of: dict[tuple[bool, int, int], float] = {}
    clock = [0.0] * p
    while any(waiting):
        ran = False
        for rank in range(p):
            while waiting[rank]:
                forward, chunk, batch = waiting[rank][-1]
                stage = chunk * p + rank
                needs = (forward, stage - 1 if forward else stage + 1, batch)
                if not forward and stage == p * v - 1:
                    needs = (True, stage, batch)
                if needs[1] >= 0 and needs not in end_of:
                    break
                waiting[rank].pop()
                start = max(clock[rank], end_of.get(needs, 0.0))
                clock[rank] = end_of[forward, stage, batch] = start + (forward_s if forward else backward_s)[stage]
                ran = True
        assert ran, "the order blocks"
    return max(clock)


def shapes(rng: Random, number: int) -> list[tuple[int, int, int]]:
    """Stages, micro-batches, chunks; interleaved ones in whole groups of micro-batches."""
    found = []
    for _ in range(number):
        p = rng.randint(1, 7)
        v = rng.choice([1, 1, 2, 3, 4]) if p > 1 else 1
        found.append((p, rng.randint(1, 12) if v == 1 else p * rng.randint(1, 4), v))
    return found


def times(rng: Random, stages: int) -> Times:
    return [rng.choice([0.0, 1.0, 3 * rng.random()]) for _ in range(stages)]


def test_the_replay_is_that_of_events() -> None:
    rng = Random(11)
    for p, m, v in shapes(rng, 300):
        forward, backward = times(rng, p * v), times(rng, p * v)
        made = pipeline_s(forward, backward, num_stages=p, num_micro_batches=m, chunks_per_rank=v)
        assert made == pytest.approx(by_events(forward, backward, p, m, v), rel=1e-12), (p, m, v)


@pytest.mark.parametrize(("p", "m", "v"), [(1, 90, 1), (2, 97, 1), (5, 120, 1), (2, 60, 3), (4, 60, 2)])
@pytest.mark.parametrize("spread", [3.0, 1e-3, 1e-9, 1e-14])
def test_skipped_repetitions_are_those_of_events_however_near_the_stages_are(
    p: int, m: int, v: int, spread: float
) -> None:
    rng = Random(p * m)
    forward, backward = ([1 + spread * rng.random() for _ in range(p * v)] for _ in range(2))
    made = pipeline_s(forward, backward, num_stages=p, num_micro_batches=m, chunks_per_rank=v)
    assert made == pytest.approx(by_events(forward, backward, p, m, v), rel=1e-12)


def test_a_million_micro_batches_are_skipped() -> None:
    # Each beyond the first fifty costs 4 s, the work of the slowest rank.
    made = pipeline_s([1.0, 2.0, 1.0], [1.0, 2.0, 1.0], num_stages=3, num_micro_batches=10**6)
    few = by_events([1.0, 2.0, 1.0], [1.0, 2.0, 1.0], 3, 50, 1)
    assert made == pytest.approx(few + (10**6 - 50) * 4.0, rel=1e-12)


@pytest.mark.parametrize(("p", "m", "v"), [(1, 5, 1), (4, 4, 1), (4, 9, 1), (4, 8, 2), (3, 9, 4), (2, 2, 3)])
def test_equal_stages_take_the_closed_form(p: int, m: int, v: int) -> None:
    # (m v + p - 1) (f + b): page, section 3.4, for m >= p.
    made = pipeline_s([1.5] * (p * v), [2.5] * (p * v), num_stages=p, num_micro_batches=m, chunks_per_rank=v)
    assert made == (m * v + p - 1) * 4.0


def test_fewer_micro_batches_than_stages_still_run() -> None:
    # One micro-batch passes all stages down and up, whatever their times.
    assert pipeline_s([1, 2, 3, 4], [5, 6, 7, 8], num_stages=4, num_micro_batches=1) == 36


def test_the_usual_formula_of_uneven_stages_is_wrong_on_both_sides() -> None:
    # Sum of (f + b) + (m - 1) max (f + b): 5 + 4 = 9 s. But rank 0 runs F 0..2, F 2..4, B 4..6, B 6..8, as the short
    # work of rank 1 is done before each B.
    assert pipeline_s([2.0, 0.5], [2.0, 0.5], num_stages=2, num_micro_batches=2) == 8.0
    rng = Random(3)
    sides = set()
    for p, m, v in shapes(rng, 400):
        if v == 1 and p > 1 and m > 1:
            forward, backward = times(rng, p), times(rng, p)
            work = [one + other for one, other in zip(forward, backward, strict=True)]
            usual = sum(work) + (m - 1) * max(work)
            exact = pipeline_s(forward, backward, num_stages=p, num_micro_batches=m)
            sides.add((exact > usual * (1 + 1e-9)) - (exact < usual * (1 - 1e-9)))
    assert sides == {-1, 0, 1}


def test_no_replay_is_shorter_than_the_bound() -> None:
    rng = Random(5)
    met = 0
    for p, m, v in shapes(rng, 400):
        forward, backward = times(rng, p * v), times(rng, p * v)
        exact = pipeline_s(forward, backward, num_stages=p, num_micro_batches=m, chunks_per_rank=v)
        bound = pipeline_bound_s(Stages(tuple(forward), tuple(backward), NOTHING), p, m)
        assert bound <= exact * (1 + 1e-12)
        met += bound >= exact * (1 - 1e-12)
    assert met > 40  # it is not loose everywhere: one stage, or one that all wait for
