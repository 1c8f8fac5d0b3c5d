"""How layers are cut into stages, and what each stage then holds."""

from __future__ import annotations

import pytest
from layout_cases import problem, x

from planner.papers.layout.partitions import layers_by_stage, partitions


def test_even_needs_stages_that_divide_the_layers() -> None:
    assert partitions(12, 2, 3, ("even",)) == ((2,) * 6,)
    assert partitions(12, 5, 1, ("even",)) == ()


def test_ends_of_one_stage_is_all_of_it_and_no_chunks_are_cut_unevenly() -> None:
    assert partitions(7, 1, 1, ("ends",)) == ((7,),)
    assert partitions(8, 2, 2, ("ends",)) == ()


def test_ends_of_two_stages_differ_by_four_at_most() -> None:
    assert partitions(9, 2, 1, ("ends",)) == ((3, 6), (4, 5), (5, 4), (6, 3))
    assert partitions(8, 2, 1, ("even", "ends")) == ((2, 6), (3, 5), (4, 4), (5, 3), (6, 2))
    assert partitions(2, 2, 1, ("ends",)) == ((1, 1),)
    assert partitions(1, 2, 1, ("even", "ends")) == ()


@pytest.mark.parametrize(("layers", "stages"), [(10, 4), (61, 16), (126, 16), (5, 3), (4, 4), (7, 6)])
def test_ends_of_more_stages_is_every_cut_of_the_rule(layers: int, stages: int) -> None:
    even = -(-layers // stages)
    by_rule = {
        (first, *(middle,) * (stages - 2), last)
        for middle in (even, even + 1, even + 2)
        for first in range(1, middle + 1)
        for last in range(1, middle + 1)
        if first + (stages - 2) * middle + last == layers
    }
    assert partitions(layers, stages, 1, ("ends",)) == tuple(sorted(by_rule))


def test_an_uneven_count_has_cuts_where_even_has_none() -> None:
    assert partitions(61, 16, 1, ("even",)) == ()
    assert (2, *(4,) * 14, 3) in partitions(61, 16, 1, ("ends",))


def test_layers_are_told_apart_by_kind_in_the_order_of_the_model() -> None:
    runs = [{"kind": "dense", "count": 3}, {"kind": "moe", "count": 5}]
    model = {"layers": runs, "num_heads": 8, "num_kv_heads": 8, "num_experts": 4}
    runs_of = problem(x(model=model)).model.layers
    assert layers_by_stage(runs_of, (2, 2, 4)) == [
        {"dense": 2},
        {"dense": 1, "moe": 1},
        {"moe": 4},
    ]
