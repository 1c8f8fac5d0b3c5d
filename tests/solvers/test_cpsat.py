"""The CP-SAT runner: status words, bounds, determinism."""

from __future__ import annotations

from ortools.sat.python import cp_model

from solvers import cpsat
from solvers.report import Limits, Status


def knapsack(capacity: int) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
    model = cp_model.CpModel()
    taken = [model.new_bool_var(f"x{i}") for i in range(5)]
    weights = (5, 4, 3, 2, 1)
    model.add(cp_model.LinearExpr.weighted_sum(taken, weights) <= capacity)
    model.maximize(cp_model.LinearExpr.weighted_sum(taken, (9, 7, 5, 3, 1)))
    return model, taken


def test_an_optimum_comes_with_its_values_and_an_equal_bound() -> None:
    # Of weight 9 the best is 5 + 4, worth 16.
    model, taken = knapsack(9)
    answer = cpsat.run(model, taken, Limits(), 1.0)
    assert (answer.status, answer.objective, answer.bound) == (Status.OPTIMAL, 16, 16)
    assert answer.values == (1, 1, 0, 0, 0)


def test_no_solution_is_infeasible() -> None:
    model, taken = knapsack(-1)
    answer = cpsat.run(model, taken, Limits(), 1.0)
    assert (answer.status, answer.values) == (Status.INFEASIBLE, None)


def test_a_budget_too_small_for_any_solution_is_a_limit() -> None:
    model = cp_model.CpModel()
    # Sixty numbers to be split evenly: nothing is found in no time.
    side = [model.new_bool_var(f"s{i}") for i in range(60)]
    weights = [1_000_003 + 7919 * i * i for i in range(60)]
    model.add(2 * cp_model.LinearExpr.weighted_sum(side, weights) == sum(weights))
    answer = cpsat.run(model, side, Limits(effort=1e-9), 1.0)
    assert answer.status is Status.LIMIT or answer.values is not None


def test_the_same_limits_give_the_same_values() -> None:
    assert cpsat.run(*knapsack(7), Limits(seed=3), 1.0) == cpsat.run(*knapsack(7), Limits(seed=3), 1.0)
