"""Fits find what made the runs, and say when they are not to be believed (page, sections 4 and 12)."""

from __future__ import annotations

import numpy as np
import pytest

from planner.papers.compass.problem import Stage
from planner.papers.compass.runs.fitting import believed, fit_contention, fit_curves, fit_line

DEGREES = (2, 4, 8, 16, 32, 64)


def times(A: float, B: float, C: float, degrees: tuple[int, ...] = DEGREES) -> list[float]:
    """A d + B + C / d."""
    return [A * d + B + C / d for d in degrees]


def test_exact_runs_give_their_coefficients_to_1e_6() -> None:
    draw = np.random.default_rng(1)
    for _ in range(200):
        A, B, C = 10 ** draw.uniform((-6, -4, -4), (-4, -2, -2))
        fit = fit_curves(DEGREES, times(A, B, C))
        assert fit is not None
        (curve,) = fit.curves
        assert (curve.A_s, curve.B_s, curve.C_s) == pytest.approx((A, B, C), rel=1e-6)
        assert fit.max_relative_error < 1e-9


@pytest.mark.parametrize("zero", ["A", "B", "C"])
def test_a_coefficient_that_is_zero_is_found_to_be_zero(zero: str) -> None:
    made = {"A": 1e-5, "B": 1e-3, "C": 1e-2} | {zero: 0.0}
    fit = fit_curves(DEGREES, times(**made))
    assert fit is not None
    found = dict(zip("ABC", (fit.curves[0].A_s, fit.curves[0].B_s, fit.curves[0].C_s), strict=True))
    assert found == pytest.approx(made, rel=1e-6, abs=1e-12)


def test_no_coefficient_is_negative_where_the_free_fit_would_be() -> None:
    """T(d) grows with d from its first chunk on: C < 0 by equation 3 under heavy contention."""
    fit = fit_curves(DEGREES, times(1e-5, 1e-3, -1e-3))
    assert fit is not None
    (curve,) = fit.curves
    assert min(curve.A_s, curve.B_s, curve.C_s) >= 0
    assert curve.C_s == 0
    assert min(DEGREES, key=fit.at) == 2


def test_two_percent_noise_costs_at_most_two_percent_in_95_of_100_seeds() -> None:
    """The degree that the fit picks, in the noise-free time of the best degree."""
    within = 0
    for seed in range(1000):
        draw = np.random.default_rng(seed)
        A, B, C = 10 ** draw.uniform((-5.5, -4, -3.5), (-4.5, -2.5, -2))
        exact = np.array(times(A, B, C))
        fit = fit_curves(DEGREES, (exact * (1 + 0.02 * draw.standard_normal(6))).tolist())
        assert fit is not None
        picked = min(range(6), key=lambda i: fit.at(DEGREES[i]))
        within += exact[picked] / exact.min() - 1 <= 0.02
    assert within >= 950


def test_a_change_of_the_bound_stage_is_fitted_by_two_curves() -> None:
    """The page's G3, whose stages cross at 8: its runs at 2, 3, 4, 6 and at 12, 16, 24, 32 lie on different curves."""
    degrees = (2, 3, 4, 6, 12, 16, 24, 32)
    runs = [80e-6 + 2e-3 / d + 5e-6 + 2.6e-3 / d + (d - 1) * max(80e-6 + 2e-3 / d, 5e-6 + 2.6e-3 / d) for d in degrees]
    fit = fit_curves(degrees, runs)
    assert fit is not None
    gemm, comm = fit.curves
    assert (gemm.from_degree, gemm.to_degree, comm.from_degree, comm.to_degree) == (2, 6, 12, 32)
    # Equations 4 and 3 with mu = 1: A is the start-up of the bound stage, C the payload of the other.
    assert (gemm.A_s, gemm.C_s) == pytest.approx((5e-6, 2e-3), rel=1e-6)
    assert (comm.A_s, comm.C_s) == pytest.approx((80e-6, 2.6e-3), rel=1e-6)
    assert fit.max_relative_error < 1e-9


def test_noise_alone_bends_no_curve() -> None:
    degrees = tuple(range(2, 18))
    bent = 0
    for seed in range(60):
        noise = 1 + 0.02 * np.random.default_rng(seed).standard_normal(16)
        fit = fit_curves(degrees, (np.array(times(1e-5, 1e-3, 1e-3, degrees)) * noise).tolist())
        assert fit is not None
        bent += len(fit.curves) > 1
    assert bent <= 3


def test_fewer_than_three_degrees_are_not_fitted_and_few_or_near_ones_not_believed() -> None:
    assert fit_curves((2, 4), [1.0, 2.0]) is None
    for degrees in ((2, 4, 16), (2, 3, 4, 6)):
        fit = fit_curves(degrees, times(1e-5, 1e-3, 1e-3, degrees))
        assert fit is not None
        assert not believed(fit, degrees, 0.0)
    fit = fit_curves(DEGREES, times(1e-5, 1e-3, 1e-3))
    assert believed(fit, DEGREES, 0.01)
    assert not believed(fit, DEGREES, 0.011)
    assert not believed(None, (2, 4), None)


def test_a_curve_that_errs_by_more_than_five_percent_is_not_believed() -> None:
    runs = times(1e-5, 1e-3, 1e-3)
    runs[2] *= 1.2
    fit = fit_curves(DEGREES, runs)
    assert fit is not None
    assert fit.max_relative_error > 0.05
    assert not believed(fit, DEGREES, 0.0)


def test_a_line_through_a_sweep_is_its_start_up_and_its_payload() -> None:
    sizes = [2.0**power for power in range(10, 31, 4)]
    line = fit_line(sizes, [20e-6 + size / 50e9 for size in sizes])
    stage = line.stage(2.0**26)
    assert (stage.startup_s, stage.payload_s) == pytest.approx((20e-6, 2.0**26 / 50e9), rel=1e-6)
    assert line.max_relative_error < 1e-9


def test_a_line_never_starts_below_zero() -> None:
    line = fit_line([1.0, 2.0, 4.0], [0.5, 1.5, 3.5])
    assert line.startup_s == 0
    assert line.slope_s > 0
    assert line.max_relative_error > 0.05


def test_contention_is_what_the_steady_state_shows_of_each_stage() -> None:
    """Stages that cross at 8 (G3), each slowed by its own factor; the median leaves one outlier out."""
    comm, gemm = Stage(startup_s=80e-6, payload_s=2e-3), Stage(startup_s=5e-6, payload_s=2.6e-3)
    degrees = [2, 3, 4, 16, 24, 32]
    runs = []
    for d in degrees:
        t_c, t_g = 80e-6 + 2e-3 / d, 5e-6 + 2.6e-3 / d
        runs.append(t_c + t_g + (d - 1) * (1.2 * t_c if t_c >= t_g else 1.1 * t_g))
    runs[1] *= 2
    found = fit_contention(comm, gemm, degrees, runs)
    assert (found.comm, found.gemm) == pytest.approx((1.2, 1.1), rel=1e-9)


def test_contention_is_never_below_one() -> None:
    comm, gemm = Stage(startup_s=0.0, payload_s=2.0), Stage(startup_s=0.0, payload_s=1.0)
    assert fit_contention(comm, gemm, [2, 4], [1.5, 1.5]).comm == 1.0
