"""Lookups: measured rows come back as they are, interpolation stays between neighbours, outside is outside."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles.families import FAMILIES
from profiles.table import CostTable

GEMM = FAMILIES["gemm"]


def grid_table(seconds: np.ndarray, ms: list[int], ns: list[int], ks: list[int]) -> CostTable:
    m, n, k = np.meshgrid(ms, ns, ks, indexing="ij")
    return CostTable(GEMM, {"m": m.ravel(), "n": n.ravel(), "k": k.ravel()}, seconds.ravel())


def ask(table: CostTable, m: float, n: float, k: float) -> tuple[float, bool, bool]:
    found = table.look_up({"m": np.array([m]), "n": np.array([n]), "k": np.array([k])})
    return float(found.seconds[0]), bool(found.exact[0]), bool(found.outside[0])


sizes = st.lists(st.integers(1, 10_000), min_size=2, max_size=4, unique=True).map(sorted)


@st.composite
def tables(draw: st.DrawFn) -> CostTable:
    ms, ns, ks = draw(sizes), draw(sizes), draw(sizes)
    count = len(ms) * len(ns) * len(ks)
    values = draw(st.lists(st.floats(1e-7, 1e2), min_size=count, max_size=count))
    return grid_table(np.array(values), ms, ns, ks)


@settings(max_examples=60, deadline=None)
@given(table=tables())
def test_every_measured_row_comes_back_bit_for_bit_and_is_tagged_measured(table: CostTable) -> None:
    found = table.look_up({axis: column.astype(float) for axis, column in table.columns.items()})
    assert found.exact.all()
    assert not found.outside.any()
    assert np.array_equal(found.seconds, table.seconds)


@settings(max_examples=60, deadline=None)
@given(table=tables(), data=st.data())
def test_a_price_inside_lies_between_the_smallest_and_largest_corner(table: CostTable, data: st.DataObject) -> None:
    point, corners = {}, np.ones(table.rows, dtype=bool)
    for axis in GEMM.axes:
        knots = np.unique(table.columns[axis])
        place = data.draw(st.integers(0, len(knots) - 2))
        low, high = int(knots[place]), int(knots[place + 1])
        point[axis] = data.draw(st.integers(low, high))
        corners &= np.isin(table.columns[axis], (low, high))
    seconds, _, outside = ask(table, point["m"], point["n"], point["k"])
    assert not outside
    around = table.seconds[corners]
    assert around.min() * (1 - 1e-9) <= seconds <= around.max() * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(table=tables())
def test_a_point_beyond_any_axis_is_outside(table: CostTable) -> None:
    inside = {axis: float(table.columns[axis][0]) for axis in GEMM.axes}
    for axis in GEMM.axes:
        low, high = table.measured_range(axis)
        for value in (low - 0.5, high + 1.0):
            seconds, exact, outside = ask(table, **{**inside, axis: value})
            assert outside
            assert not exact
            assert np.isnan(seconds)


def test_a_power_law_is_interpolated_exactly() -> None:
    # Log-log interpolation is exact on t = c m^a n^b k^d: here 2e-9 m n^0.5 k^2 at (6, 20, 30).
    ms, ns, ks = [2, 8, 64], [16, 32], [10, 100]
    m, n, k = np.meshgrid(ms, ns, ks, indexing="ij")
    table = grid_table(2e-9 * m * n**0.5 * k**2.0, ms, ns, ks)
    assert ask(table, 6, 20, 30)[0] == pytest.approx(2e-9 * 6 * 20**0.5 * 900, rel=1e-12)


def test_a_hole_in_a_ragged_grid_is_outside_but_its_edges_are_not() -> None:
    columns = {"n": [8, 8, 16], "k": [8, 16, 8], "m": [1, 1, 1]}  # (16, 16) was never measured
    table = CostTable(GEMM, columns, [1.0, 2.0, 3.0])
    assert ask(table, 1, 12, 12)[2]
    assert not ask(table, 1, 12, 8)[2]
    assert ask(table, 1, 8, 16) == (2.0, True, False)


def test_curves_that_end_early_do_not_borrow_from_longer_ones() -> None:
    columns = {"n": [8, 8, 8, 16, 16], "k": [8] * 5, "m": [1, 10, 100, 1, 10]}
    table = CostTable(GEMM, columns, [1.0, 2.0, 3.0, 2.0, 4.0])
    assert not ask(table, 100, 8, 8)[2]
    assert ask(table, 100, 12, 8)[2]


def test_rows_may_come_in_any_order() -> None:
    columns = {"n": [8, 8, 8], "k": [8, 8, 8], "m": [100, 1, 10]}
    table = CostTable(GEMM, columns, [3.0, 1.0, 2.0])
    assert ask(table, 10, 8, 8) == (2.0, True, False)


def test_exact_axes_are_never_interpolated() -> None:
    family = FAMILIES["encoder_attention"]
    columns = {"head_dim": [64, 128], "heads": [8, 8], "length": [100, 100]}
    table = CostTable(family, columns, [1.0, 2.0])
    query = {"head_dim": np.array([64.0, 96.0]), "heads": np.array([8.0, 8.0]), "length": np.array([100.0, 100.0])}
    assert table.look_up(query).outside.tolist() == [False, True]


def test_a_held_row_bounds_its_curve_but_is_not_a_measurement() -> None:
    columns = {"n": [8, 8, 8], "k": [8, 8, 8], "m": [1, 10, 100]}
    table = CostTable(GEMM, columns, [2.0, 2.0, 3.0], estimated=[0])
    assert ask(table, 1, 8, 8) == (2.0, False, False)
    assert ask(table, 10, 8, 8) == (2.0, True, False)


def test_a_point_outside_is_moved_to_the_nearest_edge() -> None:
    columns = {"n": [8, 8, 16, 16], "k": [8] * 4, "m": [1, 100, 1, 50]}
    table = CostTable(GEMM, columns, [1.0, 2.0, 1.0, 2.0])
    moved = table.clamp({"m": np.array([500.0]), "n": np.array([12.0]), "k": np.array([99.0])})
    assert {axis: value.tolist() for axis, value in moved.items()} == {"m": [50.0], "n": [12.0], "k": [8.0]}
