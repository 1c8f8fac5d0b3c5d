"""Least squares whose coefficients are not negative."""

from __future__ import annotations

import numpy as np
import pytest

from profiles.least_squares import fit_not_negative


def test_coefficients_that_are_not_negative_are_found_again() -> None:
    basis = np.array([[1.0, 0.5, 1e6], [1.0, 0.25, 3e6], [1.0, 0.125, 2e6], [1.0, 1.0, 5e6]])
    assert fit_not_negative(basis, basis @ np.array([3.0, 40.0, 1e-6])) == pytest.approx([3.0, 40.0, 1e-6])


def test_what_would_be_negative_is_zero_and_the_rest_is_fitted_without_it() -> None:
    # Falling values on a rising column: the best of the constant alone is their mean.
    basis = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    assert fit_not_negative(basis, np.array([3.0, 2.0, 1.0])).tolist() == pytest.approx([2.0, 0.0])


def test_all_are_zero_where_nothing_positive_is_near() -> None:
    assert fit_not_negative(np.array([[1.0], [2.0]]), np.array([-1.0, -1.0])).tolist() == [0.0]


def test_a_column_of_zeros_takes_none() -> None:
    assert fit_not_negative(np.array([[0.0, 1.0], [0.0, 2.0]]), np.array([2.0, 4.0])).tolist() == [0.0, 2.0]


def test_distances_are_those_of_scipy() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    random = np.random.default_rng(0)
    for _ in range(100):
        basis = random.normal(size=(8, 3)) * np.array([1.0, 1e-3, 1e3])
        target = random.normal(size=8)
        expected, distance = optimize.nnls(basis, target)
        found = fit_not_negative(basis, target)
        assert (found >= 0).all()
        assert np.linalg.norm(basis @ found - target) == pytest.approx(distance, rel=1e-9)
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)
