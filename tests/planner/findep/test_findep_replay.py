"""The replay equals the page's wording task by task, and the closed forms and the bound are what they claim to be."""

from __future__ import annotations

import numpy as np
import pytest
from findep_cases import seeded
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_oracle import makespan_s

from planner.papers.findep.any_order import least_makespan_s
from planner.papers.findep.closed_form import aass_s, asas_s, replayed_s
from planner.papers.findep.in_order import least_in_order_s
from planner.papers.findep.layers import layers
from planner.papers.findep.times import Times
from solvers.pipeline import Pipeline, Run

durations = st.tuples(*(st.floats(1e-3, 1e3) for _ in range(5)), st.booleans()).map(
    lambda d: (d[0], d[1] if d[5] else 0.0, d[2], d[3], d[4])
)
orders = st.sampled_from(["AASS", "ASAS"])


def times_of(*durations: tuple[float, ...]) -> Times:
    """Times of as many candidates as durations are given."""
    columns = [np.array(column) for column in zip(*durations, strict=True)]
    return Times(*columns, tokens_per_expert=np.ones(len(durations)))


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 6), orders, durations)
def test_the_vectorised_replay_is_the_task_by_task_one(layers_: int, r1: int, r2: int, order, d) -> None:  # type: ignore[no-untyped-def]
    expected = makespan_s(layers_, r1, r2, order, d)
    one = replayed_s(times_of(d), layers_, r1, np.array([r2]), order)
    many = replayed_s(times_of(d, d), layers_, r1, np.array([r2, r2]), order)
    assert one[0] == pytest.approx(expected, rel=1e-12)
    assert many.tolist() == [one[0], one[0]]


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 6), orders, durations)
def test_starts_end_at_the_makespan_and_keep_every_rule(layers_: int, r1: int, r2: int, order, d) -> None:  # type: ignore[no-untyped-def]
    pipeline = layers(layers_, r1, order, d[1] > 0)
    begun = pipeline.starts(d, (1, 1, r2, r2, r2))
    slack = 1e-9 * makespan_s(layers_, r1, r2, order, d)
    free: dict[int, float] = {}
    for run, starts in zip(pipeline.runs, begun, strict=True):
        ends = starts + d[run.kind]
        assert (np.diff(starts) >= d[run.kind] - slack).all()
        assert starts[0] >= free.get(run.resource, 0.0) - slack
        assert all(starts[0] >= begun[other][-1] + d[pipeline.runs[other].kind] - slack for other in run.after)
        if run.feed is not None:
            assert (starts >= begun[run.feed] + d[pipeline.runs[run.feed].kind] - slack).all()
        free[run.resource] = float(ends[-1])
    assert max(free.values()) == pytest.approx(makespan_s(layers_, r1, r2, order, d), rel=1e-12)


def test_two_thousand_random_instances_equal_their_closed_forms_and_respect_the_bound() -> None:
    """Page equations 8 and 9, unequal links included, and the bound for any order."""
    source = seeded(0)
    met = in_order = 0
    for _ in range(2000):
        num_layers, r1, r2 = (int(source.integers(1, high)) for high in (9, 6, 7))
        d = tuple((10 ** source.uniform(-2, 2, 5)).tolist())
        if source.random() < 0.2:
            d = (d[0], 0.0, *d[2:])
        times, chunks = times_of(d), np.array([r2])
        aass, asas = (makespan_s(num_layers, r1, r2, order, d) for order in ("AASS", "ASAS"))  # type: ignore[arg-type]
        assert asas_s(times, num_layers, r1, chunks)[0] == pytest.approx(asas, rel=1e-12)
        assert aass_s(times, num_layers, r1, chunks)[0] == pytest.approx(aass, rel=1e-12)
        least = float(least_makespan_s(times, num_layers, r1, chunks)[0])
        assert least <= min(aass, asas) * (1 + 1e-12)
        met += least >= min(aass, asas) * (1 - 1e-9)
        for order, makespan in (("AASS", aass), ("ASAS", asas)):
            own = float(least_in_order_s(times, num_layers, np.array(r1), chunks, (order,))[0])  # type: ignore[arg-type]
            assert least <= own <= makespan * (1 + 1e-12)
            in_order += own >= makespan * (1 - 1e-9)
    assert met > 1500, "the bound for any order is met by most"
    assert in_order > 3950, "the bounds of the orders by nearly all"


def test_a_run_that_is_fed_waits_for_its_own_chunk_only() -> None:
    """Chunks of 2 s fed to chunks of 1 s: 2, 4, 6 s are the starts, and 7 s the end."""
    pipeline = Pipeline((Run(0, 0), Run(1, 1, feed=0)))
    assert pipeline.starts((2.0, 1.0), (3, 3))[1].tolist() == [2.0, 4.0, 6.0]
    assert pipeline.makespan((np.array([2.0]), np.array([1.0])), (3, 3)).tolist() == [7.0]


def test_runs_of_a_resource_keep_their_order_even_where_the_later_one_is_ready() -> None:
    """The second run of resource 0 waits for the first, which waits for resource 1 until 5 s."""
    pipeline = Pipeline((Run(0, 1), Run(1, 0, after=(0,)), Run(1, 0)))
    assert [begun[0] for begun in pipeline.starts((5.0, 1.0), (1, 1))] == [0.0, 5.0, 6.0]


def test_candidates_may_differ_in_their_chunks() -> None:
    pipeline = Pipeline((Run(0, 0), Run(1, 1, feed=0)))
    ends = pipeline.makespan((np.array([2.0, 1.0]), np.array([1.0, 3.0])), (np.array([3, 1]), np.array([3, 1])))
    assert ends.tolist() == [7.0, 4.0]
