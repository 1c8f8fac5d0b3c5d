"""How well predictions foretell runs: errors, picks, ranks, memory."""

from __future__ import annotations

import numpy as np
import pytest

from planner.papers.layout.calibration.quality import confusion, rank_correlation, ranking, step_errors


def test_errors_are_relative_and_the_bias_keeps_its_sign() -> None:
    # -10 %, +20 %, 0 %: sizes 0, 0.1, 0.2; the 90th percentile lies 0.8 of the way from 0.1 to 0.2.
    found = step_errors([0.9, 2.4, 1.0], [1.0, 2.0, 1.0])
    assert (found.runs, found.bias) == (3, 0.0)
    assert [found.median, found.p90, found.mean] == pytest.approx([0.1, 0.18, 0.1])


def test_our_pick_is_judged_by_what_it_took() -> None:
    # We pick the second, which took 12 against 10 of the best, which we have in third place.
    found = ranking([3.0, 1.0, 2.0], [10.0, 12.0, 11.0], ["a", "b", "c"])
    assert found.pick_loss == pytest.approx(0.2)
    assert (found.place_of_best, found.rank_correlation) == (3, pytest.approx(-1.0))


def test_runs_of_one_layout_count_once() -> None:
    found = ranking([1.0, 1.0, 2.0], [10.0, 14.0, 11.0], ["a", "a", "b"])
    assert found.pick_loss == pytest.approx(12 / 11 - 1)


def test_rank_correlation_is_spearmans() -> None:
    # Ranks 1 2 3 4 against 1 2.5 2.5 4: covariance 4.5, over sqrt(5 x 4.5).
    assert rank_correlation(np.array([1.0, 2, 3, 4]), np.array([1.0, 5, 5, 9])) == pytest.approx(4.5 / 22.5**0.5)
    assert rank_correlation(np.array([1.0, 2]), np.array([3.0, 3])) == 0.0


def test_confusion_counts_both_kinds_of_error() -> None:
    found = confusion([5.0, 9.0, 6.0, 8.0], [True, True, False, False], 7.0)
    assert (found.failed, found.foreseen, found.ran, found.refused, found.wrong) == (2, 1, 2, 1, 2)


def test_no_run_is_no_error_at_all() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        step_errors([], [])
    with pytest.raises(ValueError, match="at least one run"):
        ranking([], [], [])
