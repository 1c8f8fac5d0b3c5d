"""What is carried over from measured experts to experts without rows."""

from __future__ import annotations

import numpy as np
import pytest

from profiles import load
from profiles.experts import ExpertRows, whole_formula, whole_products
from profiles.kin import correction, off_curve
from profiles.roofline import modelled_seconds

SIZES = np.array([4096.0, 1536.0, 128.0, 8.0])
COPIES = np.array([1.0, 4.0, 16.0])


def test_experts_of_a_measured_size_take_its_curve_and_others_lean_to_the_nearest() -> None:
    # A curve 1.5 times the formula throughout, and one at half of it, twice as far in the logarithm of one size.
    near = off_curve(SIZES, COPIES, np.full(3, 1.5))
    far = off_curve(SIZES * [8.0, 1.0, 1.0, 1.0], COPIES, np.full(3, 0.5))
    assert correction([near], SIZES * 3.0, COPIES) == pytest.approx(1.5)
    asked = SIZES * [2.0, 1.0, 1.0, 1.0]
    # Distances ln 2 and ln 4, so weights (ln 2 + 0.1)^-3 and (ln 4 + 0.1)^-3: 6.54 to 1 of the logarithms.
    share = 1.0 / (1.0 + ((np.log(2) + 0.1) / (np.log(4) + 0.1)) ** 3)
    expected = 1.5**share * 0.5 ** (1 - share)
    assert correction([near, far], asked, COPIES) == pytest.approx(expected)
    assert 1.0 < expected < 1.5


def test_a_curve_is_read_by_copies_an_expert_and_holds_its_ends() -> None:
    # Rows in any order; log-log between 4 (1.0) and 16 (4.0) is 2.0 at 8.
    curve = off_curve(SIZES, COPIES[::-1], np.array([4.0, 1.0, 1.0]))
    assert correction([curve], SIZES, np.array([0.1, 8.0, 1e6])) == pytest.approx([1.0, 2.0, 4.0])


def test_without_any_curve_the_formula_stands() -> None:
    assert correction([], SIZES, COPIES).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("name", "dtype", "formula_alone"),
    # The formula alone, fitted to all geometries but one and asked for that, over all of them (median).
    [("a100-sxm", "bf16", 0.123), ("h100-sxm", "fp8", 0.101), ("h200-sxm", "fp8", 0.119), ("l40s", "bf16", 0.098)],
)
def test_held_out_experts_are_met_better_than_by_the_formula_alone(name: str, dtype: str, formula_alone: float) -> None:
    median, p90 = whole_formula(load(name), "balanced", dtype).error
    assert median < 0.7 * formula_alone
    assert median < p90 < 0.4


def test_the_stated_error_is_of_geometries_priced_without_their_own_rows() -> None:
    # In the sample the correction is nearly exact, so its own rows would show next to no error.
    profile = load("h200-sxm")
    found = whole_formula(profile, "balanced", "bf16")
    table = profile.cost_table("moe_gemm", workload="balanced")
    mine = (table.columns["hidden"] == 6144) & (table.columns["ffn"] == 2048) & (table.columns["expert_ranks"] == 1)
    axes = {axis: column[mine].astype(np.float64) for axis, column in table.columns.items()}
    off = np.abs(found.seconds(axes) / table.seconds[mine] - 1)
    plain = np.abs(modelled_seconds("moe_gemm", axes, found.coefficients, 2.0) / table.seconds[mine] - 1)
    assert np.median(off) < 0.5 * np.median(plain)
    assert np.median(off) < 0.5 * found.error[0]


def test_prices_without_rows_are_the_formula_times_the_correction() -> None:
    found = whole_formula(load("h200-sxm"), "balanced", "bf16")
    assert len(found.curves) >= 10
    rows = ExpertRows(load("h200-sxm"), hidden=5120, ffn=1536, experts=160, top_k=6)
    tokens = np.array([16.0, 1024.0])
    axes = rows.axes(tokens, np.ones(2))
    bare = type(found)(found.coefficients, 2.0, (), found.error)
    assert bare.seconds(axes).tolist() == modelled_seconds("moe_gemm", axes, found.coefficients, 2.0).tolist()
    assert whole_products(rows, tokens, "roofline").seconds.tolist() == found.seconds(axes).tolist()
