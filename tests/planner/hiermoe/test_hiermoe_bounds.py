"""No bound is above the best of all placements, and on the page's cases they are what the page says."""

from __future__ import annotations

import dataclasses
import itertools
import math

import hiermoe_cases as cases
import hiermoe_oracle as oracle
import numpy as np
import pytest

from planner.papers.hiermoe.bounds.expected_bounds import least_peak
from planner.papers.hiermoe.bounds.layer_bound import layer_bound
from planner.papers.hiermoe.bounds.pair_bound import least_touches, picked_together
from planner.papers.hiermoe.exact.enumeration import is_tiny, tables
from planner.papers.hiermoe.exchange.time import a2a_seconds, best_dimension, rank_loads
from planner.papers.hiermoe.instance import Case, LayerCase, compile_case


def one_layer(document: cases.Document) -> tuple[Case, LayerCase]:
    case = compile_case(cases.problem_of(document))
    return case, case.layers[0]


@pytest.mark.parametrize(
    ("document", "least"),
    [
        (cases.golden_1(), 4.0),
        (cases.golden_2(), 4.0),
        (cases.golden_3(), 7.0),
        # Every expert of 8 tokens x 2 has 8 assignments a rank on average: 4 s and 8 kappa below the split pairs' 8.
        (cases.golden_4(0.0), 6.0),
        (cases.golden_5(), 7.0),
        (cases.printed(), 0.000228672),
    ],
)
def test_the_page_cases_have_the_bound_that_the_page_says(document: cases.Document, least: float) -> None:
    assert layer_bound(*one_layer(document)).objective_s == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize(
    ("experts", "token_bytes", "milliseconds"),
    [
        (128, 4096, (18.3164, 13.0402, 12.3960, 12.8994)),
        (256, 7168, (31.1250, 21.8756, 20.8953, 21.5926)),
    ],
)
def test_uniform_routing_is_bounded_by_what_it_takes(
    experts: int, token_bytes: int, milliseconds: tuple[float, ...]
) -> None:
    case, layer = one_layer(cases.golden_6(experts, token_bytes))
    found = layer_bound(case, layer).by_dimension
    assert tuple(found) == (1, 2, 3, 4)
    assert list(found.values()) == pytest.approx([ms / 1e3 for ms in milliseconds], rel=1e-5)
    reached = [a2a_seconds(case, layer, layer.current, d)[0] for d in case.dimensions]
    assert list(found.values()) == pytest.approx(reached, rel=1e-11)
    assert all(bound <= value for bound, value in zip(found.values(), reached, strict=True))


def test_tokens_on_one_expert_make_its_count_the_bound() -> None:
    # Both holders send 3 tokens to the rank of expert 1; no spread can help: t = 2 participants x 3.
    case, layer = one_layer(cases.document(2, 4, 1, cases.mask([(s, (1,)) for s in (0, 0, 0, 1, 1, 1)])))
    assert layer_bound(case, layer).objective_s == 6.0 == best_dimension(case, layer, layer.current)[1]


def test_no_tokens_leave_the_start_up_times() -> None:
    document = cases.golden_3() | {"layers": [{"layer_id": 0, "routing": cases.mask([])}]}
    found = layer_bound(*one_layer(document))
    assert found.by_dimension == {1: 1.0, 2: 2.0} and found.peak_load == 0


# Without names that do not matter: 8!/2!^4 = 2520 placements, of which the tree 1-2-4 leaves 2520 / (2·2·2) = 315.
@pytest.mark.parametrize(("experts", "gpus", "levels", "expected"), [(8, 4, (1, 2), 315), (8, 4, (1,), 105)])
def test_placements_are_enumerated_up_to_renaming(
    experts: int, gpus: int, levels: tuple[int, ...], expected: int
) -> None:
    case, _ = one_layer(cases.document(gpus, experts, 1, cases.mask([]), levels=levels))
    found = [tuple(table.tolist()) for table in tables(case, renamed=True)]
    assert len(found) == len(set(found)) == expected
    assert sum(1 for _ in tables(case, renamed=False)) == oracle.count_tables(experts, gpus) == 2520


def test_the_page_s_46_200_placements_of_12_experts() -> None:
    case, _ = one_layer(cases.document(4, 12, 1, cases.mask([]), levels=(1, 2)))
    assert sum(1 for _ in tables(case, renamed=True)) == 46_200


def test_all_six_tables_of_three_experts_in_four_slots_are_tried() -> None:
    document = cases.golden_5()
    case, layer = one_layer(document)
    assert is_tiny(case)
    values = {tuple(t.tolist()): best_dimension(case, layer, t)[1] for t in tables(case, renamed=False)}
    assert sorted(values.values()) == [7, 8, 8, 9, 11, 11]
    assert {table: values[table] for table in cases.GOLDEN_5_VALUES} == cases.GOLDEN_5_VALUES
    for table, value in values.items():
        assert oracle.best_s(document, document["layers"][0], table) == value


@pytest.mark.parametrize("seed", range(40))
def test_no_placement_is_below_the_bound(seed: int) -> None:
    source = cases.seeded(seed)
    kinds = ("mask", "mask", "loads", "uniform_expected")
    document = cases.random_document(source, gpus=int(source.choice([2, 4])), kinds=kinds, redundant=seed % 2 == 0)
    case, layer = one_layer(document)
    every = tables(case, renamed=case.P == case.E)
    some = list(itertools.islice(every, 200))
    if len(some) == 200 and case.P > case.E:
        some = [np.array(random_table(case, source)) for _ in range(100)]
    bound = layer_bound(case, layer)
    reached = {d: min(a2a_seconds(case, layer, table, d)[0] for table in some) for d in case.dimensions}
    load = min(float(rank_loads(case, layer, table).max()) for table in some)
    weights, kappa = case.problem.objective, case.problem.costs.compute_s_per_assignment
    assert bound.peak_load <= load
    for d, value in reached.items():
        least = bound.by_dimension[d] - weights.compute_multiplier * kappa * bound.peak_load
        assert least <= weights.a2a_multiplier * value * (1 + 1e-12)
    assert bound.objective_s <= min(best_dimension(case, layer, table)[1] for table in some) * (1 + 1e-12)


def random_table(case: Case, source: np.random.Generator) -> list[int]:
    """Every expert once, then copies on ranks that have none of them yet."""
    while True:
        ranks: list[list[int]] = [[] for _ in range(case.G)]
        for expert in [*source.permutation(case.E), *source.integers(case.E, size=case.P - case.E)]:
            free = [rank for rank in ranks if len(rank) < case.slots and int(expert) not in rank]
            if not free:
                break
            free[int(source.integers(len(free)))].append(int(expert))
        else:
            return [expert for rank in ranks for expert in sorted(rank)]


@pytest.mark.parametrize("seed", range(20))
def test_the_least_peak_is_not_above_the_best_packing(seed: int) -> None:
    source = cases.seeded(seed)
    bins, size = int(source.integers(1, 4)), int(source.integers(1, 4))
    values = 10 ** source.uniform(-1, 1, bins * size)
    case, _ = one_layer(cases.document(bins, bins * size, 1, cases.mask([])))
    best = min(float(values[t].reshape(bins, size).sum(axis=1).max()) for t in tables(case, renamed=True))
    assert least_peak(values, bins) <= best * (1 + 1e-12)


def test_two_of_the_three_largest_of_two_bins_are_together() -> None:
    # 5, 5, 5 and 0 in two bins of two: the mean is 7.5, the largest alone 5, two of the three 10.
    assert least_peak(np.array([5.0, 0.0, 5.0, 5.0]), 2) == 10


def test_limits_leave_the_bound_as_it_is() -> None:
    document = cases.golden_1()
    free = layer_bound(*one_layer(document))
    tight = layer_bound(*one_layer(document | {"search": {"max_moved_experts": 0, "max_load_ratio": 1.0}}))
    assert dataclasses.astuple(tight) == dataclasses.astuple(free)


def test_a_dimension_that_is_not_allowed_does_not_lower_the_bound() -> None:
    document = cases.golden_3() | {"search": {"dimensions": [1]}}
    assert layer_bound(*one_layer(document)).objective_s == 9.0
    assert not math.isclose(layer_bound(*one_layer(cases.golden_3())).objective_s, 9.0)


@pytest.mark.parametrize("seed", range(20))
def test_no_partition_touches_fewer_groups_than_pairs_allow(seed: int) -> None:
    source = cases.seeded(seed)
    bins, size = int(source.integers(2, 5)), int(source.integers(1, 4))
    E = bins * size
    if E > 9:
        size, E = 2, bins * 2
    K = int(source.integers(1, min(E, 5) + 1))
    tokens = cases.random_tokens(source, 1, E, K, 20)["expert_ids"]
    ids = np.array(tokens, dtype=np.int32)
    case, _ = one_layer(cases.document(bins, E, 1, cases.mask([])))

    def touches(table: np.ndarray) -> int:
        group = np.empty(E, dtype=np.int64)
        group[table] = np.arange(E) // size
        return sum(len(set(row)) for row in group[ids].tolist())

    fewest = min(touches(table) for table in tables(case, renamed=True))
    assert least_touches(picked_together(ids, E), size, K) <= fewest + 1e-9


# Every pair of four experts equally often, K = 2: in groups of two each expert is alone in 2 of its 3 pairs. 6 tokens
# touch 12 - 2 groups, and the bound says so: each of 4 experts saves a half of the one pair it can have.
def test_pairs_that_are_all_alike_make_the_bound_what_it_takes() -> None:
    ids = np.array(list(itertools.combinations(range(4), 2)), dtype=np.int32)
    assert least_touches(picked_together(ids, 4), 2, 2) == 10
    assert least_touches(picked_together(ids, 4), 1, 2) == 12
    document = cases.document(2, 4, 2, cases.mask([(0, pair) for pair in ids.tolist()]))
    # Ten touches of two ranks from one source: five each, 2 x 5 s. Every token touches one group at least: 2 x 3 s.
    assert layer_bound(*one_layer(document)).objective_s == 10.0


def test_a_busy_source_is_bounded_by_its_own_pairs() -> None:
    # Rank 1 sends one token; over both sources 11 or 12 touches of four (rank, holder) places would be 3 each.
    pairs = [(0, pair) for pair in itertools.combinations(range(4), 2)] + [(1, (0, 1))]
    document = cases.document(2, 4, 2, cases.mask(pairs))
    assert layer_bound(*one_layer(document)).objective_s == 10.0
