"""A series takes the cheapest pools of every interval."""

from __future__ import annotations

import janus_cases as cases
import pytest

from planner.errors import BadInputError
from planner.papers.janus import sizing
from planner.papers.janus.problem import SeriesProblem
from planner.papers.janus.solution import SeriesSolution


def pools(solution: SeriesSolution) -> list[tuple[int, int]]:
    return [(each.attention_instances, each.expert_instances) for each in solution.intervals]


def test_the_pages_series_takes_22_gpu_hours() -> None:
    solution = cases.over_series(cases.series([100.0, 600.0, 1500.0]))
    assert pools(solution) == [(1, 4), (1, 6), (2, 8)]
    assert solution.objective == solution.gpu_hours == 5 + 7 + 10
    # The pools of 1500 tokens/s all three hours.
    assert solution.gpu_hours_peak == 30
    assert solution.gpu_hours_monolithic is None


def test_an_interval_is_sized_like_its_demand_alone() -> None:
    demands = [900.0, 100.0, 1500.0, 900.0, 350.0]
    solution = cases.over_series(cases.series(demands))
    for demand, interval in zip(demands, solution.intervals, strict=True):
        alone = cases.scaled(cases.j(demand_tokens_per_s=demand))
        assert (alone.attention_instances, alone.expert_instances) == (
            interval.attention_instances,
            interval.expert_instances,
        )
        assert (alone.batch, alone.tpot_s) == (interval.batch, interval.tpot_s)


def test_hours_weigh_intervals() -> None:
    # Five GPUs for half an hour, seven for four hours; the peak's seven all of it.
    solution = cases.over_series(cases.series([100.0, 600.0], [0.5, 4.0]))
    assert solution.gpu_hours == pytest.approx(2.5 + 28)
    assert solution.gpu_hours_peak == pytest.approx(7 * 4.5)


def test_no_demand_is_one_request_at_a_time() -> None:
    solution = cases.over_series(cases.series([0.0]))
    assert pools(solution) == [(1, 4)]
    assert solution.intervals[0].batch == 1.0


def test_prices_are_paid_by_the_hour_and_gpus_counted_beside() -> None:
    prices = {"attention_per_hour": 1.0, "expert_per_hour": 10.0}
    solution = cases.over_series(cases.series([100.0, 600.0], [1.0, 2.0], prices=prices))
    assert pools(solution) == [(1, 4), (1, 6)]
    assert solution.objective == pytest.approx(41 + 2 * 61)
    assert solution.gpu_hours == pytest.approx(5 + 2 * 7)
    assert solution.gpu_hours_peak == pytest.approx(7 * 3)


def test_the_one_pool_is_sized_for_every_interval_too() -> None:
    one_pool = {"monolithic": {"allowed_gpus": [2, 4, 8, 16], "comm_s": 3e-4, "expert_bytes": 4e9}}
    # Page: 8 GPUs for 600 tokens/s, where 4 take 26 ms.
    both = cases.over_series(cases.series([600.0, 600.0], [1.0, 3.0], baselines=one_pool))
    assert both.gpu_hours_monolithic == pytest.approx(8 * 4)
    few = {"monolithic": one_pool["monolithic"] | {"allowed_gpus": [4]}}
    assert cases.over_series(cases.series([100.0, 600.0], baselines=few)).gpu_hours_monolithic is None


def test_both_methods_give_the_same_series() -> None:
    document = cases.series([0.0, 300.0, 1500.0])
    assert cases.over_series(document, "enumerate") == cases.over_series(document)


def test_equal_demands_are_sized_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[float]] = []

    def counting(choices: object, demands: list[float], count: int) -> object:
        asked.append(list(demands))
        return sizing.cheapest(choices, demands, count)  # type: ignore[arg-type]

    problem = cases.problem_of(cases.series([600.0, 100.0, 600.0, 100.0]))
    assert isinstance(problem, SeriesProblem)
    sizing.solve_series(problem, counting)  # type: ignore[arg-type]
    assert asked == [[100.0, 600.0]]


def test_many_demands_are_sized_in_stretches_of_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    document = cases.series([float(demand) for demand in range(50, 1500, 50)])
    whole = cases.over_series(document)
    monkeypatch.setattr("planner.papers.janus.search.TOGETHER", 30)
    assert cases.over_series(document) == whole


def test_a_series_too_long_for_its_limits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "MOST_CELLS", 23)
    cases.over_series(cases.series([100.0, 600.0, 100.0]))
    with pytest.raises(BadInputError) as caught:
        cases.over_series(cases.series([100.0, 600.0, 1500.0]))
    assert (caught.value.code, caught.value.where) == ("too_large", "series")


def test_arrivals_have_to_be_read_first() -> None:
    document = cases.series([]) | {"arrivals": {"path": "trace.csv"}}
    with pytest.raises(BadInputError) as caught:
        cases.over_series(document)
    assert caught.value.where == "arrivals"
