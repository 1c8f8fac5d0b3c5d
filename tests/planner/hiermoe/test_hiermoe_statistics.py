"""What a swap does is told exactly without counting anew: statistics (9), smooth maxima (8), and their updates."""

from __future__ import annotations

import numpy as np
import pytest
from hiermoe_cases import golden_2, problem_of, random_document, seeded

from planner.papers.hiermoe.exchange.time import counts, layer_objective
from planner.papers.hiermoe.instance import Case, Tokens, compile_case
from planner.papers.hiermoe.swaps.descent import best_plain, best_smooth
from planner.papers.hiermoe.swaps.moving_placement import MovingPlacement
from planner.papers.hiermoe.swaps.terms import power
from planner.papers.hiermoe.swaps.token_hop import TokenHop
from planner.papers.hiermoe.swaps.token_index import Pairs, TokenIndex


def placement_of(case: Case, table: np.ndarray, d: int) -> MovingPlacement:
    layer = case.layers[0]
    index = TokenIndex(layer.routed, case.E) if isinstance(layer.routed, Tokens) else None
    return MovingPlacement(case, layer, index, table, d)


def random_placement(seed: int, kind: str = "mask") -> tuple[Case, MovingPlacement, np.random.Generator]:
    source = seeded(seed)
    case = compile_case(problem_of(random_document(source, gpus=int(source.choice([2, 4, 8])), kinds=(kind,))))
    d = int(source.integers(1, case.D + 1))
    return case, placement_of(case, source.permutation(case.E), d), source


def pairs_apart(placement: MovingPlacement) -> np.ndarray:
    return np.argwhere(np.triu(placement.rank[:, None] != placement.rank))


def swapped(case: Case, placement: MovingPlacement, r: int, f: int) -> MovingPlacement:
    rank = placement.rank.copy()
    rank[[r, f]] = rank[[f, r]]
    return placement_of(case, np.argsort(rank, kind="stable"), placement.d)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("kind", ["mask", "loads"])
def test_every_swap_is_valued_as_the_placement_it_makes(seed: int, kind: str) -> None:
    case, placement, source = random_placement(seed, kind)
    for _ in range(2):
        pairs = pairs_apart(placement)
        plain, smooth = placement.after(pairs[:, 0], pairs[:, 1])
        for (r, f), one, other in zip(pairs.tolist(), plain, smooth, strict=True):
            there = swapped(case, placement, r, f)
            assert one == pytest.approx(layer_objective(case, case.layers[0], there.table(), placement.d), rel=1e-9)
            assert other == pytest.approx(there.smooth, rel=1e-9)
        placement.swap(*pairs[int(source.integers(len(pairs)))].tolist())


@pytest.mark.parametrize("seed", range(24))
def test_the_three_ways_to_count_after_a_swap_agree(seed: int) -> None:
    _, placement, _ = random_placement(seed)
    for term in placement.terms:
        counted = term.counted
        totals = counted.totals()
        for r in range(len(counted.group)):
            others = np.flatnonzero(counted.group != counted.group[r])
            own, theirs = counted.row(r, others)
            each = counted.entries(Pairs(np.full(len(others), r), others))
            assert np.array_equal(own, each[0])
            assert np.array_equal(theirs, each[1])
            assert totals[r, others] == pytest.approx(own.sum(axis=1))
            assert totals[others, r] == pytest.approx(theirs.sum(axis=1))
            for c in range(own.shape[1]):
                assert np.array_equal(counted.one_class(r, c)[others], own[:, c])


@pytest.mark.parametrize("seed", range(24))
def test_after_swaps_everything_is_as_if_counted_anew(seed: int) -> None:
    case, placement, source = random_placement(seed)
    hops = [term.counted for term in placement.terms if isinstance(term.counted, TokenHop)]
    for hop in hops:
        hop.ready()
        hop.row(0, np.arange(1, case.E))
    for _ in range(6):
        placement.swap(*source.choice(case.E, 2, replace=False).tolist())
    assert placement.plain == pytest.approx(
        layer_objective(case, case.layers[0], placement.table(), placement.d), rel=1e-12
    )
    for hop in hops:
        anew = TokenHop(hop.index, hop.hop, placement.rank, case.G)
        assert np.array_equal(hop.counts, counts(case, case.layers[0], placement.table(), hop.hop))
        assert np.array_equal(hop.ready().touch, anew.ready().touch)
        assert np.array_equal(hop.ready().beside, anew.ready().beside)
        assert np.array_equal(hop.ready().alone, anew.ready().alone)
        others = np.flatnonzero(hop.group != hop.group[0])
        for one, other in zip(hop.row(0, others), anew.row(0, others), strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", ["mask", "loads"])
def test_no_plain_swap_that_helps_is_overlooked(seed: int, kind: str) -> None:
    _, placement, _ = random_placement(seed, kind)
    pairs = pairs_apart(placement)
    plain, _ = placement.after(pairs[:, 0], pairs[:, 1])
    found = best_plain(placement, None)
    if plain.min() >= placement.plain * (1 - 1e-12):
        assert found is None
    else:
        assert found is not None
        assert plain[pairs.tolist().index(list(found))] == pytest.approx(plain.min(), rel=1e-11)


def test_screening_is_exact_where_classes_are_alike() -> None:
    """Golden 2: all sources send the same tokens, so that sums over holders tell the whole."""
    case = compile_case(problem_of(golden_2()))
    placement = placement_of(case, case.layers[0].current, 1)
    pairs = pairs_apart(placement)
    _, smooth = placement.after(pairs[:, 0], pairs[:, 1])
    assert placement.screened(pairs[:, 0], pairs[:, 1]) == pytest.approx(smooth)


def test_smooth_swaps_lead_out_where_plain_ones_do_not() -> None:
    case = compile_case(problem_of(golden_2()))
    placement = placement_of(case, case.layers[0].current, 1)
    assert (placement.plain, round(placement.smooth, 4)) == (8, 10.5561)
    assert best_plain(placement, None) is None
    step = best_smooth(placement, None)
    # (1,4), (2,7) and (3,6) are as good: the lexicographically first is taken.
    assert step is not None
    assert (step.r, step.f, step.plain, round(step.smooth, 4)) == (0, 5, 8, 9.8501)
    placement.swap(step.r, step.f)
    step = best_smooth(placement, None)
    assert step is not None
    assert (step.plain, round(step.smooth, 4)) == (4, 5.2780)


def test_whole_powers_are_products() -> None:
    x = np.array([0.0, 0.3, 1.0, 1.7])
    for gamma in (1.0, 2.0, 10.0, 13.0, 2.5, 100.0):
        assert power(x, gamma) == pytest.approx(np.power(x, gamma), rel=1e-12)


@pytest.mark.parametrize("tokens", [0, 3])
def test_where_every_token_selects_everything_no_swap_is_worth_anything(tokens: int) -> None:
    problem = golden_2()
    problem["top_k"] = 8
    problem["layers"][0]["routing"] = {
        "kind": "mask",
        "source_rank": list(range(tokens)),
        "expert_ids": [list(range(8))] * tokens,
    }
    case = compile_case(problem_of(problem))
    placement = placement_of(case, case.layers[0].current, 1)
    pairs = pairs_apart(placement)
    plain, smooth = placement.after(pairs[:, 0], pairs[:, 1])
    assert plain.tolist() == [4.0 * bool(tokens)] * len(pairs)
    assert smooth == pytest.approx(placement.smooth)
    assert placement.screened(pairs[:, 0], pairs[:, 1]) == pytest.approx(placement.smooth)
    assert best_plain(placement, None) is None
