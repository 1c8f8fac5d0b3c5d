"""What rows of the same size on other curves say of a row."""

import numpy as np
import pytest

from profiles.families import FAMILIES
from profiles.making.building import RawRows, build_table
from profiles.making.curves import rising_curves
from profiles.making.process import filled, likeness
from profiles.making.siblings import FEWEST_ROWS, Siblings, have_siblings

GEMM = FAMILIES["gemm"]
Columns = dict[str, np.ndarray]


def products(noise: float = 0.0) -> tuple[Columns, np.ndarray]:
    """An overhead and a rate, and at some m a slow kernel that every (n, k) has: 20 x 6 x 6 rows."""
    m = np.unique(np.geomspace(16, 16_384, 20).astype(np.int64))
    n, k = (np.array([512, 1024, 2048, 4096, 8192, 12_288]) for _ in range(2))
    grid = [axis.ravel() for axis in np.meshgrid(m, n, k, indexing="ij")]
    slow = np.where(np.isin(grid[0], m[[7, 12]]), 1.3, 1.0)
    drawn = np.random.default_rng(3).normal(0.0, noise, len(slow))
    return dict(zip("mnk", grid, strict=True)), (5e-6 + 2e-14 * np.prod(grid, axis=0)) * slow * np.exp(drawn)


def without(columns: Columns, seconds: np.ndarray, row: int) -> tuple[Columns, np.ndarray, Columns]:
    rest = {axis: np.delete(column, row) for axis, column in columns.items()}
    return rest, np.delete(seconds, row), {axis: column[row : row + 1] for axis, column in columns.items()}


def row_at(columns: Columns, m_number: int) -> int:
    place = (columns["m"] == np.unique(columns["m"])[m_number]) & (columns["n"] == 2048) & (columns["k"] == 4096)
    return int(np.flatnonzero(place)[0])


def test_a_slow_size_that_all_siblings_have_is_known_where_it_was_not_measured() -> None:
    columns, seconds = products(noise=0.01)
    row = row_at(columns, 12)
    rest, times, asked = without(columns, seconds, row)
    estimate = Siblings(GEMM, rest, times, 2.0, None).seconds(asked)[0]
    assert estimate == pytest.approx(seconds[row], rel=0.04)
    x, y = np.log(np.unique(columns["m"])[[11, 12, 13]]), np.log([seconds[row_at(columns, i)] for i in (11, 13)])
    straight = np.exp(np.interp(x[1], x[[0, 2]], y))
    assert abs(straight / seconds[row] - 1) > 0.15


@pytest.mark.parametrize("spike", [16.0, 1 / 16])
def test_a_spike_moves_neither_its_siblings_nor_its_own_estimate(spike: float) -> None:
    columns, seconds = products(noise=0.01)
    row, before = row_at(columns, 9), Siblings(GEMM, columns, seconds, 2.0, None).seconds(columns)
    spiked = seconds.copy()
    spiked[row] *= spike
    after = Siblings(GEMM, columns, spiked, 2.0, None).seconds(columns)
    assert np.abs(after / before - 1).max() < 0.05


def test_a_spike_is_replaced_by_its_estimate_and_marked() -> None:
    columns, seconds = products(noise=0.002)
    row = row_at(columns, 4)
    spiked = seconds.copy()
    spiked[row] *= 16
    curves = rising_curves(GEMM, columns, spiked, 2.0, None)
    at = np.all([curves.columns[axis] == columns[axis][row] for axis in "mnk"], axis=0)
    assert curves.estimated[at].all()
    assert curves.seconds[at][0] == pytest.approx(seconds[row], rel=0.05)


def test_every_curve_rises_and_rows_that_are_kept_are_as_measured() -> None:
    columns, seconds = products(noise=0.1)
    curves = rising_curves(GEMM, columns, seconds, 2.0, None)
    measured = dict(zip(zip(*(c.tolist() for c in columns.values()), strict=True), seconds.tolist(), strict=True))
    order = np.lexsort((curves.columns["m"], curves.columns["k"], curves.columns["n"]))
    step = np.diff(curves.seconds[order])
    same = np.diff(curves.columns["n"][order]) == 0
    same &= np.diff(curves.columns["k"][order]) == 0
    assert (step[same] >= 0).all()
    rows = zip(*(curves.columns[axis].tolist() for axis in "mnk"), curves.seconds.tolist(), curves.estimated.tolist(),
               strict=True)  # fmt: skip
    assert all(estimated or measured[m, n, k] == time for m, n, k, time, estimated in rows)
    assert 0 < curves.estimated.sum() < len(seconds) / 2


def test_a_hole_between_two_rows_of_a_curve_is_filled_and_counted() -> None:
    columns, seconds = products()
    row = row_at(columns, 12)
    rest, times, asked = without(columns, seconds, row)
    table = build_table(RawRows("gemm", "bf16", rest, times, "x"))
    assert table.counts.filled == 1
    place = next(i for i, key in enumerate(zip(*(table.columns[axis] for axis in "mnk"), strict=True))
                 if key == tuple(int(asked[axis][0]) for axis in "mnk"))  # fmt: skip
    assert place in table.estimated_rows
    assert table.latency_s[place] == pytest.approx(seconds[row], rel=0.05)


def test_the_stored_error_of_one_row_is_far_below_that_of_one_value() -> None:
    # Two of the twenty sizes are 30 % slow: left out everywhere they are a surprise, left out once they are not.
    columns, seconds = products(noise=0.01)
    errors = {error.held_out: error for error in build_table(RawRows("gemm", "bf16", columns, seconds, "x")).errors
              if not error.region}  # fmt: skip
    assert errors["one row"].p90 < 0.05
    assert errors["one value of m"].p90 > 0.1
    assert set(errors) == {"one row", "one value of m", "one value of n", "one value of k"}


def test_errors_by_region_of_time_cover_the_rows_of_the_first() -> None:
    columns, seconds = products(noise=0.01)
    errors = build_table(RawRows("gemm", "bf16", columns, seconds, "x")).errors
    whole = errors[0]
    regions = [error for error in errors if error.region]
    assert {error.held_out for error in regions} == {"one value of m"}
    assert 0.9 * whole.rows <= sum(error.rows for error in regions) <= whole.rows


def test_few_rows_and_ragged_grids_have_no_siblings() -> None:
    columns, _ = products()
    few = {axis: column[: FEWEST_ROWS - 1] for axis, column in columns.items()}
    assert have_siblings(GEMM, columns)
    assert not have_siblings(GEMM, few)
    assert not have_siblings(FAMILIES["all_gather"], {"nodes": few["m"], "ranks": few["n"], "message_bytes": few["k"]})
    scattered = np.arange(1, 101)
    assert not have_siblings(GEMM, {"m": scattered, "n": scattered, "k": scattered})


def test_a_process_gives_back_a_product_of_its_axes_where_cells_are_missing() -> None:
    a, b = np.sin(np.arange(12) / 3), np.cos(np.arange(9) / 3)
    cells = np.outer(a, b)
    holes = np.random.default_rng(1).random(cells.shape) < 0.2
    start = [likeness(np.arange(size, dtype=np.float64)[:, None], 1.0) for size in cells.shape]
    found = filled(np.where(holes, np.nan, cells), start, strength=1.0, rounds=120)
    assert np.abs(found - cells)[holes].max() < 0.25
    assert np.median(np.abs(found - cells)[holes]) < 0.05


def test_the_same_rows_give_the_same_table() -> None:
    columns, seconds = products(noise=0.05)
    order = np.random.default_rng(2).permutation(len(seconds))
    first = build_table(RawRows("gemm", "bf16", columns, seconds, "x"))
    shuffled = {axis: column[order] for axis, column in columns.items()}
    assert build_table(RawRows("gemm", "bf16", shuffled, seconds[order], "x")) == first
