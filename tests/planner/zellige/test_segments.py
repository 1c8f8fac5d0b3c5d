"""From a compact placement to run lists: one order on every rank, no rank waits where sets are nested."""

from __future__ import annotations

import itertools

import pytest
import zellige_golden as golden
from hypothesis import given
from hypothesis import strategies as st

from planner.papers.zellige.instance import Piece, compile_instance
from planner.papers.zellige.segments import build_solution, token_range
from planner.papers.zellige.solution import ZelligeSolution
from planner.validation import validate


def test_the_solution_of_the_page_comes_out_verbatim() -> None:
    instance = compile_instance(golden.z1_problem().sorted())
    # Kinds by whole price: img (1 s), mid (4 s), long (8 s); modes by degree.
    placement = {
        Piece(0, 0, (0,)): 1,
        Piece(0, 0, (1,)): 1,
        Piece(0, 0, (2,)): 1,
        Piece(0, 0, (3,)): 1,
        Piece(1, 0, (2,)): 1,
        Piece(1, 0, (3,)): 1,
        Piece(2, 1, (0, 1)): 1,
    }
    assert build_solution(instance, placement) == validate(ZelligeSolution, golden.Z1_SOLUTION)


@given(st.integers(1, 10**6), st.integers(1, 64))
def test_token_ranges_tile_the_sequence_in_near_equal_chunks_longer_ones_first(tokens: int, degree: int) -> None:
    ranges = [token_range(tokens, degree, position) for position in range(degree)]
    assert ranges[0][0] == 0
    assert ranges[-1][1] == tokens
    assert all(left[1] == right[0] for left, right in itertools.pairwise(ranges))
    sizes = [end - start for start, end in ranges]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1


def test_pure_head_splits_of_one_set_are_packed_and_other_splits_are_not() -> None:
    problem = golden.problem(
        4,
        {"h2": (1, 2, 1), "q2": (2, 1, 1)},
        {"a": (2, {"h2": (1.0, 1.0)}), "b": (2, {"q2": (1.0, 1.0)})},
    )
    instance = compile_instance(problem)
    kinds = {kind.sequence_ids[0]: index for index, kind in enumerate(instance.kinds)}
    placement = {Piece(kinds["a0"], 0, (0, 1)): 2, Piece(kinds["b0"], 0, (2, 3)): 2}
    solution = build_solution(instance, placement)
    packed = [s.sequence_ids for s in solution.rank_segments[0].segments]
    alone = [s.sequence_ids for s in solution.rank_segments[2].segments]
    assert packed == [("a0", "a1")]
    assert alone == [("b0",), ("b1",)]


def test_sets_that_are_not_nested_are_replayed_with_waiting() -> None:
    # Golden case Z8: T = 5, replay 8.
    problem = golden.problem(
        6,
        {"q3": (3, 1, 1), "q2": (2, 1, 1), "whole": (1, 1, 1)},
        {"a": (1, {"q3": (3.0, 1.0)}), "b": (1, {"q2": (2.0, 1.0)}), "c": (1, {"whole": (3.0, 1.0)})},
        policy="explicit",
        sets={"q3": [[0, 1, 2]], "q2": [[2, 3]]},
    )
    instance = compile_instance(problem)
    kinds = {kind.sequence_ids[0]: index for index, kind in enumerate(instance.kinds)}
    placement = {
        Piece(kinds["a0"], 0, (0, 1, 2)): 1,
        Piece(kinds["b0"], 0, (2, 3)): 1,
        Piece(kinds["c0"], 0, (3,)): 1,
    }
    metrics = build_solution(instance, placement).metrics
    assert metrics.makespan_s == pytest.approx(5)
    assert metrics.replay_makespan_s == pytest.approx(8)
