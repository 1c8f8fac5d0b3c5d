"""Counts under rows: never wrong about impossibility, and complete on small cases."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.counting import Counting


def possible_by_enumeration(rows: np.ndarray, limits: np.ndarray, kinds: list[int], totals: list[int]) -> bool:
    shares = [
        [share for share in itertools.product(range(total + 1), repeat=size) if sum(share) == total]
        for size, total in zip(kinds, totals, strict=True)
    ]
    return any(
        bool((rows @ np.array([z for share in choice for z in share]) <= limits + 1e-9).all())
        for choice in itertools.product(*shares)
    )


@st.composite
def programs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, list[int], list[int]]:
    kinds = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    totals = [draw(st.integers(1, 4)) for _ in kinds]
    number = draw(st.integers(1, 4))
    rows = np.array([[float(draw(st.integers(0, 9))) for _ in range(sum(kinds))] for _ in range(number)])
    limits = np.array([float(draw(st.integers(1, 30))) for _ in range(number)])
    return rows, limits, kinds, totals


@given(programs())
@settings(max_examples=300, deadline=None)
def test_it_agrees_with_enumeration(program: tuple[np.ndarray, np.ndarray, list[int], list[int]]) -> None:
    rows, limits, kinds, totals = program
    starts = np.concatenate(([0], np.cumsum(kinds)[:-1])).astype(np.intp)
    counting = Counting(rows, limits, starts, np.array(totals, dtype=float))
    assert counting.is_impossible(10_000) == (not possible_by_enumeration(rows, limits, kinds, totals))
    if counting.witness is not None:
        assert (rows @ counting.witness <= limits * (1 + 1e-6)).all()
        assert np.add.reduceat(counting.witness, starts).tolist() == totals


def test_a_budget_that_ends_is_not_a_proof() -> None:
    # Seven units in modes that weigh (2, 0) or (0, 2), at most 6.99 in each row: impossible, but not fractionally.
    rows, limits = np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([7.0, 7.0])
    counting = Counting(rows, limits, np.array([0], dtype=np.intp), np.array([7.0]))
    assert not counting.is_impossible(1)
    assert counting.is_impossible(50)
