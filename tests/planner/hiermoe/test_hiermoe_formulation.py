"""The exact model finds what enumeration finds, proves it, and keeps limits; names of groups are fixed without loss."""

from __future__ import annotations

import math

import hiermoe_cases as cases
import hiermoe_oracle as oracle
import numpy as np
import pytest

from planner.errors import LimitError
from planner.papers.hiermoe.exact.enumeration import tables
from planner.papers.hiermoe.exact.naming import first_come
from planner.papers.hiermoe.exact.reference import Exact, cannot, exact_layer, is_small
from planner.papers.hiermoe.exchange.tables import moved_count
from planner.papers.hiermoe.exchange.time import best_dimension, rank_loads
from planner.papers.hiermoe.instance import Case, LayerCase, compile_case
from solvers.report import Limits


def one_layer(document: cases.Document) -> tuple[Case, LayerCase]:
    case = compile_case(cases.problem_of(document))
    return case, case.layers[0]


def solved(document: cases.Document, most_moved: int | None = None) -> Exact:
    case, layer = one_layer(document)
    return exact_layer(case, layer, layer.current, Limits(), most_moved)


@pytest.mark.parametrize(
    ("document", "d", "least"),
    [
        (cases.golden_1(), 1, 4.0),
        (cases.golden_2(), 1, 4.0),
        (cases.golden_3(), 2, 7.0),
        # Contiguous, 6 + 12 kappa, is best below kappa = 0.5 s; splitting the pairs, 8 + 8 kappa, above.
        (cases.golden_4(0.25), 1, 9.0),
        (cases.golden_4(0.5), 1, 12.0),
        (cases.golden_4(1.0), 1, 16.0),
        (cases.golden_5(), 1, 7.0),
        (cases.printed(), 1, 0.000228672),
    ],
)
def test_the_page_cases_are_solved_and_proved(document: cases.Document, d: int, least: float) -> None:
    found = solved(document)
    assert found.proved and found.d == d
    assert found.objective_s == pytest.approx(least, rel=1e-12)
    assert found.bound_s == pytest.approx(least, rel=1e-9) and found.bound_s <= found.objective_s


@pytest.mark.parametrize("seed", range(24))
def test_the_model_finds_the_best_of_all_placements(seed: int) -> None:
    source = cases.seeded(seed)
    document = cases.random_document(source, gpus=int(source.choice([2, 4])), experts_per_gpu=2)
    case, _ = one_layer(document)
    routed = document["layers"][0]
    least = min(oracle.best_s(document, routed, t) for t in every_table(case))
    found = solved(document)
    assert found.proved and found.table is not None
    assert found.objective_s == pytest.approx(least, rel=1e-9)
    assert found.bound_s <= least * (1 + 1e-12)
    assert oracle.best_s(document, routed, found.table.tolist()) == pytest.approx(least, rel=1e-9)


def every_table(case: Case) -> list[list[int]]:
    return [table.tolist() for table in tables(case, renamed=True)]


@pytest.mark.parametrize("seed", range(12))
def test_limits_on_moves_and_loads_hold_and_nothing_within_them_is_better(seed: int) -> None:
    source = cases.seeded(100 + seed)
    document = cases.random_document(source, gpus=2, experts_per_gpu=3)
    ratio = float(source.uniform(1.0, 1.4))
    document["search"] = {"max_load_ratio": ratio}
    document["layers"][0]["initial_physical_to_logical"] = [int(e) for e in source.permutation(6)]
    most_moved = int(source.choice([0, 2, 4]))
    case, layer = one_layer(document)
    least = math.inf
    for table in tables(case, renamed=False):
        loads = rank_loads(case, layer, table)
        if moved_count(layer.current, table, 2) <= most_moved and loads.max() <= ratio * loads.mean() * (1 + 1e-9):
            least = min(least, best_dimension(case, layer, table)[1])
    found = solved(document, most_moved)
    assert found.objective_s == pytest.approx(least, rel=1e-9)
    assert found.bound_s == pytest.approx(least, rel=1e-9)
    assert found.proved and (found.table is None) == math.isinf(least)


def test_small_is_at_most_32_experts_8_ranks_and_500_distinct_rows() -> None:
    assert is_small(*one_layer(cases.golden_1()))
    assert is_small(*one_layer(cases.golden_5()))
    assert not is_small(*one_layer(cases.document(2, 34, 1, cases.mask([(0, (0,))]))))
    assert not is_small(*one_layer(cases.document(16, 16, 1, cases.mask([(0, (0,))]))))
    pairs = [(s, (a, b)) for s in range(8) for a in range(16) for b in range(a)]
    assert is_small(*one_layer(cases.document(8, 32, 2, cases.mask(pairs[:500] * 2))))
    assert not is_small(*one_layer(cases.document(8, 32, 2, cases.mask(pairs[:501]))))
    assert not is_small(*one_layer(cases.golden_6(128, 4096)))


def test_what_the_reference_cannot_do_is_said() -> None:
    assert cannot(*one_layer(cases.golden_1())) is None
    assert cannot(*one_layer(cases.golden_5())) is None
    assert "tokens" in str(cannot(*one_layer(cases.golden_6(128, 4096))))
    large = cases.document(4, 64, 1, cases.mask([]), redundant_slots=64)
    assert "replicas" in str(cannot(*one_layer(large)))
    tokens = [(0, (a, b)) for a in range(256) for b in range(a)][:4000]
    assert "distinct token" in str(cannot(*one_layer(cases.document(32, 256, 2, cases.mask(tokens)))))


def test_groups_are_named_in_the_order_of_their_first_experts() -> None:
    # Ranks {4,5} {2,3} | {6,7} {0,1}: the second half has expert 0, and in it the last rank.
    rank_of = np.array([3, 3, 1, 1, 0, 0, 2, 2])
    named = first_come(rank_of, (2, 4), np.arange(8))
    assert named.tolist() == [0, 0, 2, 2, 3, 3, 1, 1]
    assert first_come(rank_of, (4,), np.arange(8)).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_planning_twice_gives_the_same() -> None:
    document = cases.random_document(cases.seeded(5), gpus=4, experts_per_gpu=2, kappa=True)
    first, second = solved(document), solved(document)
    assert first.table is not None and second.table is not None
    assert first.table.tolist() == second.table.tolist()
    assert (first.objective_s, first.bound_s) == (second.objective_s, second.bound_s)


def test_a_spent_budget_keeps_the_hint_and_the_counted_bound() -> None:
    source = cases.seeded(0)
    document = cases.document(8, 32, 4, cases.random_tokens(source, 8, 32, 4, 200), levels=(1, 2, 4))
    case, layer = one_layer(document)
    found = exact_layer(case, layer, layer.current, Limits(effort=1e-6))
    assert not found.proved and found.table is not None
    assert found.bound_s <= found.objective_s <= best_dimension(case, layer, layer.current)[1]


def test_a_time_limit_that_ends_the_search_is_an_error_unless_the_best_is_kept() -> None:
    source = cases.seeded(0)
    document = cases.document(8, 32, 4, cases.random_tokens(source, 8, 32, 4, 200), levels=(1, 2, 4))
    case, layer = one_layer(document)
    with pytest.raises(LimitError) as caught:
        exact_layer(case, layer, layer.current, Limits(time_limit_s=1e-3))
    assert caught.value.code == "time_limit"
    assert exact_layer(case, layer, layer.current, Limits(time_limit_s=1e-3, keep_best=True)).table is not None
