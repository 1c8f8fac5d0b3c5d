"""The methods: what each proves and gives, layers in order, processes that change nothing."""

from __future__ import annotations

import pytest
from hiermoe_cases import (
    copied,
    document,
    golden_1,
    golden_2,
    golden_3,
    golden_4,
    golden_5,
    mask,
    printed,
    problem_of,
    random_document,
    seeded,
)
from hiermoe_oracle import all_tables, best_s

from planner.errors import BadInputError, InfeasibleError, LimitError
from planner.papers.hiermoe.certificate import bounds
from planner.papers.hiermoe.check import check
from planner.papers.hiermoe.engines import METHODS, solve
from planner.papers.hiermoe.instance import Case, LayerCase, compile_case
from planner.papers.hiermoe.layer_processes import each_layer
from solvers.report import Limits, Status


@pytest.mark.parametrize(
    ("written", "objective"),
    [
        (printed(), 0.000228672),
        (golden_1(), 4.0),
        (golden_2(), 4.0),
        (golden_3(), 7.0),
        (golden_4(0.25), 9.0),
        (golden_4(1.0), 16.0),
        (golden_5(), 7.0),
    ],
)
def test_the_golden_cases_are_solved_and_proved(written: dict[str, object], objective: float) -> None:
    problem = problem_of(written)
    for method in (None, "exact"):
        solution, report = solve(problem, method, Limits())
        assert check(problem, solution) == []
        assert solution.objective_s == pytest.approx(objective, rel=1e-12)
        assert report.status is Status.OPTIMAL
        assert report.bound == pytest.approx(objective, rel=1e-9)


def test_the_papers_method_makes_one_swap_at_the_dimension_of_now() -> None:
    problem = problem_of(golden_2())
    solution, report = solve(problem, "one_swap", Limits())
    assert check(problem, solution) == []
    assert (solution.objective_s, solution.layers[0].moved_experts) == (8.0, 2)
    assert (report.status, report.bound) == (Status.FEASIBLE, None)


def test_the_papers_method_is_refused_where_experts_have_copies() -> None:
    with pytest.raises(BadInputError, match="one copy"):
        solve(problem_of(golden_5()), "one_swap", Limits())


@pytest.mark.parametrize("seed", range(8))
def test_exact_is_the_best_of_all_tables_and_search_is_not_far(seed: int) -> None:
    written = random_document(seeded(seed), gpus=2, experts_per_gpu=3, tokens=16)
    problem = problem_of(written)
    best = min(best_s(written, written["layers"][0], table) for table in all_tables(2, 6, 6))
    exact, report = solve(problem, "exact", Limits())
    assert exact.objective_s == pytest.approx(best, rel=1e-9)
    assert report.status is Status.OPTIMAL
    alone = problem_of(copied(written) | {"search": {"exact": "never"}})
    searched, report = solve(alone, None, Limits())
    assert report.bound is None
    assert check(alone, searched) == []
    # Page section 12: local search alone is never worse than 5 %.
    assert best * (1 - 1e-9) <= searched.objective_s <= best * 1.05


def test_exact_says_what_is_too_large_for_it() -> None:
    routing = {"kind": "loads", "tokens_per_rank": 4.0, "expert_load": [2.0] * 16}
    problem = problem_of(document(4, 16, 2, routing, levels=(1, 2)))
    with pytest.raises(LimitError) as caught:
        solve(problem, "exact", Limits())
    assert caught.value.code == "exact_too_large"
    assert caught.value.where == "layers.0"


def test_slots_that_cannot_keep_copies_apart_are_infeasible() -> None:
    routing = {"kind": "uniform_expected", "tokens_per_rank": 4}
    with pytest.raises(InfeasibleError) as caught:
        solve(problem_of(document(2, 2, 1, routing, redundant_slots=4)), None, Limits())
    assert caught.value.code == "replicas_exceed_ranks"


def test_a_limit_on_load_is_kept_or_proved_out_of_reach() -> None:
    # Eight tokens all on expert 0 of 2: one rank has all the load, twice the mean.
    tokens = mask([(t % 2, (0,)) for t in range(8)])
    written = document(2, 2, 1, tokens)
    kept = problem_of(written | {"search": {"max_load_ratio": 2.0}})
    solution, _ = solve(kept, None, Limits())
    assert check(kept, solution) == []
    with pytest.raises(InfeasibleError) as caught:
        solve(problem_of(written | {"search": {"max_load_ratio": 1.5}}), None, Limits())
    assert caught.value.code == "load_limit"


def test_a_gain_below_the_least_wanted_leaves_everything_where_it_is() -> None:
    # Golden 2 goes from 8 to 4, a gain of one half.
    wanted = problem_of(golden_2() | {"search": {"min_relative_gain": 0.5}})
    assert solve(wanted, None, Limits())[0].objective_s == 4
    solution, _ = solve(problem_of(golden_2() | {"search": {"min_relative_gain": 0.51}}), None, Limits())
    assert (solution.objective_s, solution.layers[0].moved_experts) == (8.0, 0)


def test_the_objective_is_the_sum_over_layers_in_order() -> None:
    problem = problem_of(random_document(seeded(4), gpus=4, experts_per_gpu=2, layers=3, kinds=("mask", "loads")))
    solution, _ = solve(problem, None, Limits())
    assert [layer.layer_id for layer in solution.layers] == [0, 1, 2]
    assert solution.objective_s == pytest.approx(sum(layer.objective_s for layer in solution.layers), rel=1e-12)
    (bound, *_) = bounds(problem, solution, False, 1.0)
    assert bound.value <= solution.objective_s * (1 + 1e-9)


def test_drawn_tokens_are_named_by_their_digest_and_written_ones_are_not() -> None:
    drawn = {"kind": "zipf", "tokens_per_rank": 4, "exponent": 1.0, "seed": 3}
    solution, _ = solve(problem_of(document(2, 4, 2, drawn)), None, Limits())
    assert len(solution.layers[0].routing_sha256 or "") == 64
    solution, _ = solve(problem_of(golden_1()), None, Limits())
    assert solution.layers[0].routing_sha256 is None


@pytest.mark.parametrize("method", sorted(METHODS))
def test_no_tokens_no_sources_and_one_rank_are_planned(method: str) -> None:
    none = document(4, 8, 2, mask([]), levels=(1, 2))
    one_rank = document(1, 4, 2, mask([(0, (0, 1)), (0, (2, 3))]))
    all_experts = document(2, 4, 4, mask([(1, (0, 1, 2, 3))] * 3))
    for written, objective in ((none, 0.0), (one_rank, 2.0), (all_experts, 6.0)):
        problem = problem_of(written)
        solution, _ = solve(problem, method, Limits())
        assert check(problem, solution) == []
        assert (solution.objective_s, solution.layers[0].moved_experts) == (objective, 0)


def test_processes_give_the_same_plan_and_progress_is_told() -> None:
    source = seeded(9)
    written = random_document(source, gpus=2, experts_per_gpu=2, layers=3)
    problem = problem_of(copied(written) | {"search": {"exact": "never"}})
    told: list[tuple[float, str]] = []
    alone, _ = solve(problem, None, Limits(progress=lambda done, what: told.append((done, what))))
    together, _ = solve(problem, None, Limits(workers=2))
    assert alone == together
    assert told == [(pytest.approx(n / 3), f"{n} of 3 layers") for n in (1, 2, 3)]


def ended(case: Case, layer: LayerCase, job: int) -> int:
    raise LimitError(f"layer {layer.layer_id} of {case.G} ranks", code="time_limit", where=str(job))


def test_a_limit_that_ends_in_another_process_is_the_same_error() -> None:
    case = compile_case(problem_of(random_document(seeded(1), gpus=2, layers=2)))
    for workers in (1, 2):
        with pytest.raises(LimitError) as caught:
            each_layer(ended, case, [7, 8], workers, None)
        assert (caught.value.code, caught.value.where) == ("time_limit", "7")
        assert caught.value.message == "layer 0 of 2 ranks"
