"""The cases that the page solves by hand (section 10)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from compass_cases import G1, G2, G3, G4, G5, G6, G7, MILLI, Document, g9, grid, problem, solved

from planner.papers.compass.baselines import baselines
from planner.papers.compass.certificate import bounds
from planner.papers.compass.check import check
from planner.papers.compass.closed_form import comm_bound, gemm_bound
from planner.papers.compass.degrees import legal_degrees
from planner.papers.compass.solution import Choice
from planner.papers.compass.times import costs_of, inter_decom_s
from solvers.report import Limits


def times(document: Document, *degrees: int) -> list[float]:
    """T(d) of equation 2."""
    costs = costs_of(problem(document).operators).of(0)
    return [float(inter_decom_s(costs, d)) for d in degrees]


def choice(document: Document) -> Choice:
    """What is chosen for one operator, after the check has seen it."""
    given = problem(document)
    solution = solved(given)
    assert check(given, solution) == []
    return solution.choices[0]


def test_g1_is_bound_by_the_collective() -> None:
    chosen = choice(G1)
    assert (chosen.strategy, chosen.degree, chosen.bound) == ("inter_decom", 8, "comm")
    assert chosen.time_s == pytest.approx(8.660 * MILLI, rel=1e-12)
    assert chosen.d_star == pytest.approx(40**0.5)  # sqrt(2 ms / 50 us)
    assert times(G1, 4, 16, 1) == pytest.approx([8.710 * MILLI, 8.935 * MILLI, 10.06 * MILLI], rel=1e-12)
    curve = comm_bound(costs_of(problem(G1).operators).of(0))
    assert float(curve.at(chosen.d_star)) == pytest.approx(8.6425 * MILLI, rel=1e-5)


def test_g2_is_bound_by_the_gemm_up_to_a_crossing_that_is_out_of_reach() -> None:
    chosen = choice(G2)
    assert (chosen.strategy, chosen.degree, chosen.bound) == ("inter_decom", 8, "gemm")
    assert chosen.time_s == pytest.approx(6.3775 * MILLI, rel=1e-12)
    assert chosen.d_star == pytest.approx(75**0.5)  # sqrt(1.5 ms / 20 us)
    assert chosen.crossing == pytest.approx(450)  # 4.5 ms / 10 us
    assert times(G2, 16, 1) == pytest.approx([6.44375 * MILLI, 7.55 * MILLI], rel=1e-12)


def test_g3_is_decided_at_the_crossing_where_either_curve_alone_is_wrong() -> None:
    chosen = choice(G3)
    assert (chosen.degree, chosen.time_s) == (8, pytest.approx(2.970 * MILLI, rel=1e-12))
    assert chosen.crossing == pytest.approx(8)  # 0.6 ms / 75 us
    assert chosen.d_star == pytest.approx(8)
    costs = costs_of(problem(G3).operators).of(0)
    assert float(gemm_bound(costs).optimum()) == pytest.approx(20)  # sqrt(2 ms / 5 us), the stage slower at d = 1
    assert float(comm_bound(costs).optimum()) == pytest.approx(5.70, abs=0.005)  # sqrt(2.6 ms / 80 us)
    assert times(G3, 16) == pytest.approx([3.4475 * MILLI], rel=1e-12)


def test_g3_the_printed_formula_alone_takes_16_chunks() -> None:
    naive = next(one for one in baselines(problem(G3), Limits()) if one.name == "naive_closed_form")
    assert naive.solution is not None
    assert naive.solution.choices[0].degree == 16
    assert naive.objective == pytest.approx(3.4475 * MILLI, rel=1e-12)


def test_g4_of_tied_degrees_takes_the_smallest() -> None:
    assert times(G4, 2, 4, 1) == [112.0, 112.0, 118.0]
    chosen = choice(G4)
    assert (chosen.degree, chosen.time_s) == (2, 112.0)
    assert chosen.runner_up is not None
    assert (chosen.runner_up.degree, chosen.runner_up.time_s) == (4, 112.0)


def test_g5_takes_a_divisor_beside_the_root() -> None:
    chosen = choice(G5)
    assert (chosen.degree, chosen.time_s) == (10, pytest.approx(2.222 * MILLI, rel=1e-12))
    assert chosen.d_star == pytest.approx(120**0.5)  # sqrt(1.2 ms / 10 us)
    assert times(G5, 15, 9) == pytest.approx([2.232 * MILLI, 2.2253333333 * MILLI], rel=1e-9)


def test_g6_contention_makes_chunks_worse_than_the_sequence() -> None:
    chosen = choice(G6)
    assert (chosen.strategy, chosen.degree, chosen.time_s) == ("sequential", 1, pytest.approx(3.43 * MILLI, rel=1e-12))
    assert float(comm_bound(costs_of(problem(G6).operators)).C[0]) == pytest.approx(-1.1 * MILLI)
    assert times(G6, 2) == pytest.approx([4.010 * MILLI], rel=1e-12)


def test_g7_the_table_decides_against_the_closed_form() -> None:
    chosen = choice(G7)
    assert (chosen.degree, chosen.time_s, chosen.bound) == (32, 1.33 * MILLI, "table")
    free = choice({name: value for name, value in G7.items() if name != "inter_decom_table"})
    assert free.degree == 8
    assert pytest.approx(0.023, abs=5e-4) == 1.36 / 1.33 - 1


def test_g8_the_grid_has_288_operators_and_these_counts_and_totals() -> None:
    given = problem(*grid()["operators"])
    solution = solved(given)
    assert len(given.operators) == 288
    assert check(given, solution) == []
    said = Counter(choice.variant or choice.strategy for choice in solution.choices)
    assert said == {"single_ring": 112, "inter_decom": 92, "double_ring": 72, "sequential": 12}
    degrees = Counter(choice.degree for choice in solution.choices if choice.strategy == "inter_decom")
    assert degrees == {2: 2, 4: 8, 8: 24, 16: 32, 32: 26}
    assert solution.metrics.total_time_s == pytest.approx(4.150599205603, rel=1e-12)
    assert solution.metrics.sequential_total_time_s == pytest.approx(5.130122966854, rel=1e-12)
    for topology, expected in (
        ("nvlink", {"single_ring": 64, "inter_decom": 56, "double_ring": 12, "sequential": 12}),
        ("hybrid", {"double_ring": 60, "single_ring": 48, "inter_decom": 36}),
    ):
        here = [choice for choice in solution.choices if f"/{topology}/" in choice.operator_id]
        assert Counter(choice.variant or choice.strategy for choice in here) == expected


def test_g8_the_selector_equals_exhaustive_search_on_every_configuration() -> None:
    """Every degree from 2 to 32 tried by the page's formula, written out here once more."""
    given = problem(*grid()["operators"])
    for operator, chosen in zip(given.operators, solved(given).choices, strict=True):
        comm, gemm = operator.comm, operator.gemm
        assert comm is not None
        assert gemm is not None
        found = {("sequential", 1, None): comm.startup_s + comm.payload_s + gemm.startup_s + gemm.payload_s}
        for d in range(2, 33):
            if operator.split_extent % (128 * d) == 0:
                t_c, t_g = comm.startup_s + comm.payload_s / d, gemm.startup_s + gemm.payload_s / d
                found["inter_decom", d, None] = t_c + t_g + (d - 1) * max(1.10 * t_c, 1.06 * t_g)
        found |= {("intra_fusion", 1, fused.id): fused.time_s for fused in operator.fused}
        best, second = sorted(found.values())[:2]
        assert second / best - 1 > 1.5e-5, "no ties: the closest runner-up is 1.6e-5 away"
        assert found[chosen.strategy, chosen.degree, chosen.variant] == best  # type: ignore[index]
        assert chosen.time_s == pytest.approx(best, rel=1e-12)


def test_g8_no_single_strategy_is_right() -> None:
    """Each alone over the mixed optimum; chunks alone and one ring alone wherever they are legal (page, section 10)."""
    given = problem(*grid()["operators"])
    best_s = solved(given).metrics.total_time_s
    costs = costs_of(given.operators)
    sequential = inter_decom_s(costs, 1)
    chunked = [
        min((float(inter_decom_s(costs.of(i), d)) for d in legal_degrees(operator)), default=float(sequential[i]))
        for i, operator in enumerate(given.operators)
    ]
    rings = {
        name: [f.time_s for o in given.operators for f in o.fused if f.id == name]
        for name in ("single_ring", "double_ring")
    }
    assert float(sequential.sum()) / best_s == pytest.approx(1.236, abs=5e-4)
    assert sum(chunked) / best_s == pytest.approx(1.054, abs=5e-4)
    assert sum(rings["single_ring"]) / best_s == pytest.approx(1.062, abs=5e-4)
    assert sum(rings["double_ring"]) / best_s == pytest.approx(1.153, abs=5e-4)


def test_g9_one_switch_makes_both_overlap_though_one_loses() -> None:
    given = g9((1, 2))
    solution = solved(given)
    assert check(given, solution) == []
    assert [(choice.strategy, choice.degree) for choice in solution.choices] == [("inter_decom", 4), ("inter_decom", 2)]
    assert solution.metrics.total_time_s == pytest.approx(2.10 * MILLI)
    assert solution.metrics.sequential_total_time_s == pytest.approx(2.30 * MILLI)


def test_g9_of_settings_that_tie_the_switch_is_off() -> None:
    given = g9((1, 1))
    solution = solved(given)
    assert check(given, solution) == []
    assert {choice.strategy for choice in solution.choices} == {"sequential"}
    assert solution.metrics.total_time_s == pytest.approx(1.30 * MILLI)


@pytest.mark.parametrize("document", [G1, G2, G3, G4, G5, G6, G7], ids=["G1", "G2", "G3", "G4", "G5", "G6", "G7"])
def test_bounds_stand_under_the_plan_and_the_exhaustive_one_meets_it(document: Document) -> None:
    given = problem(document)
    solution = solved(given)
    combinatorial, exhaustive = bounds(given, solution, False, 1.0)
    assert combinatorial.value <= solution.metrics.total_time_s * (1 + 1e-12)
    assert exhaustive.value == solution.metrics.total_time_s
    assert np.isfinite(combinatorial.value)
    assert combinatorial.value > 0.9 * exhaustive.value
