"""Multipliers and the reserve, from runs whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from layout_cases import problem, row, x

from planner.derivation.training.calibration import Calibration
from planner.derivation.training.parts import Component, LayerTimes, Part
from planner.papers.layout.calibration.capacity import RankAmounts, amounts, fit_reserve, peak_bytes
from planner.papers.layout.calibration.fit import DOUBT, fit_calibration, step_times_s
from planner.papers.layout.calibration.priced import PricedRuns
from planner.papers.layout.layouts import Layout
from profiles.priced import MEASURED

MIXES = ({"gemm": 8.0}, {"gemm": 4.0, "elementwise": 2.0}, {"gemm": 4.0, "tp": 3.0}, {"gemm": 5.0, "attention": 4.0})
"""Seconds of a layer's forward in four runs; its backward takes twice as long."""


def _times(mixes: tuple[dict[str, float], ...]) -> LayerTimes:
    runs = len(mixes)
    source = np.full(runs, MEASURED, dtype=np.int8)
    names: tuple[Component, ...] = ("gemm", "attention", "elementwise", "tp")
    parts = [Part(name, name, np.array([mix.get(name, 0.0) for mix in mixes]), source) for name in names]
    doubled = tuple(Part(part.component, part.family, 2 * part.seconds, source) for part in parts)
    return LayerTimes(tuple(parts), doubled, (), np.ones(runs, dtype=np.int64), np.zeros(runs, dtype=bool))


def _runs(mixes: tuple[dict[str, float], ...] = MIXES) -> PricedRuns:
    """On one, two and four stages in turn; ends take nothing."""
    partitions = ((4,), (2, 2), (1, 1, 1, 1))
    layouts = [
        Layout(1, 1, len(cut), 1, 1, 1, 0, "none", 1, False, cut)
        for cut in (partitions[place % 3] for place in range(len(mixes)))
    ]
    nothing = _times(tuple({} for _ in mixes))
    return PricedRuns(
        [problem(x()) for _ in mixes], layouts, {"dense": _times(mixes), "embedding": nothing, "head": nothing}
    )


def test_a_calibration_scales_every_component_of_the_rows() -> None:
    # One stage, 4 layers, 2 micro-batches of 8 / 4 ranks, 3 x 8 s of products, and the tail of 2.4 s of X (golden G1).
    plain = step_times_s(_runs(), Calibration())
    assert plain[0] == pytest.approx(2 * 4 * 24 + 2.4)
    slower = step_times_s(_runs(), Calibration(gemm=1.5, layer_s=1.0, fixed_s=7.0))
    assert slower[0] == pytest.approx(2 * 4 * (36 + 3) + 2.4 + 7)


def test_the_multipliers_that_made_the_step_times_are_found() -> None:
    true = Calibration(gemm=1.1, attention=0.9, elementwise=3.0, communication=1.5, experts=1.1)
    measured = step_times_s(_runs(MIXES * 20), true)
    found = fit_calibration([(_runs(MIXES * 20), measured)])
    assert [getattr(found, name) for name in DOUBT] == pytest.approx([1.1, 0.9, 3.0, 1.5], rel=0.02)
    assert found.experts == found.gemm
    assert step_times_s(_runs(), found) == pytest.approx(step_times_s(_runs(), true), rel=0.01)


def test_what_no_run_tells_stays_as_it_is() -> None:
    mixes = ({"gemm": 8.0},) * 12
    measured = step_times_s(_runs(mixes), Calibration(gemm=1.2))
    found = fit_calibration([(_runs(mixes), measured)])
    assert found.gemm == pytest.approx(1.2, rel=0.02)
    assert (found.attention, found.elementwise, found.communication) == (1.0, 1.0, 1.0)
    assert fit_calibration([]) == Calibration()


def test_a_run_far_off_pulls_little() -> None:
    mixes = ({"gemm": 8.0},) * 12
    measured = step_times_s(_runs(mixes), Calibration(gemm=1.2))
    measured[3] *= 5
    assert fit_calibration([(_runs(mixes), measured)]).gemm == pytest.approx(1.2, rel=0.05)


def test_amounts_are_those_of_the_ranks_without_fragmentation() -> None:
    # X on two stages: 2e9 parameters of 18 bytes; 2 and 1 micro-batches of 2e9 in flight.
    rows = [row("dense"), row("embedding"), row("head", workspace_bytes=5e8)]
    document = x(rows=rows, costs__fragmentation=0.25, costs__communicator_bytes=1e8)
    held = amounts(problem(document), Layout(1, 1, 2, 1, 1, 1, 0, "none", 1, False, (2, 2)))
    # Two groups of more than one rank: pp and dense data.
    assert held.fixed.tolist() == pytest.approx([36e9 + 2e8] * 2)
    assert held.moving.tolist() == pytest.approx([4e9, 2.5e9])
    assert peak_bytes(held, 0.25) == pytest.approx(36.2e9 + 5e9)


def _one(fixed: float, moving: float) -> RankAmounts:
    return RankAmounts(np.array([fixed]), np.array([moving]))


def test_the_reserve_stays_as_usual_where_the_runs_allow_it() -> None:
    held, ran = [_one(70.0, 0.0), _one(90.0, 0.0)], [True, False]
    # Of 100, a reserve from above 10 to 30 divides them; at most 15 are tried.
    found = fit_reserve(held, ran, 100.0, 12.0)
    assert (found.fragmentation, found.reserve_bytes, found.wrong) == (0.0, 12.0, 0)
    assert 10.0 < found.least_bytes <= 10.1 and found.most_bytes == pytest.approx(15.0)
    assert fit_reserve(held, ran, 100.0, 2.0).reserve_bytes == found.least_bytes


def test_fragmentation_is_found_where_no_reserve_divides_the_runs() -> None:
    # Equal peaks of 80, but 60 of the one that failed come and go: 20 + 60 (1 + share) must exceed what 75 + 5 (1 +
    # share) leaves.
    held, ran = [_one(75.0, 5.0), _one(20.0, 60.0)], [True, False]
    found = fit_reserve(held, ran, 100.0, 15.0)
    assert found.wrong == 0
    assert peak_bytes(held[0], found.fragmentation) + found.reserve_bytes <= 100
    assert peak_bytes(held[1], found.fragmentation) + found.reserve_bytes > 100
    assert found.fragmentation == pytest.approx(0.09)  # the least: 60 x 0.08 is 4.8 of the 5 beyond the reserve


def test_runs_of_one_outcome_teach_no_reserve() -> None:
    assert fit_reserve([_one(70.0, 0.0)], [True], 100.0, 3.0).reserve_bytes == 3.0
    assert fit_reserve([], [], 100.0, 3.0).fragmentation == 0.0
