"""What torchrun's environment variables say, and which collectives follow from it."""

from __future__ import annotations

import pytest

from profiles.errors import ProfileError
from profiles.measure.torchrun import Placement, placement


def environment(rank: int, ranks: int, local_rank: int, local_ranks: int) -> dict[str, str]:
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    return {name: str(value) for name, value in zip(names, (rank, ranks, local_rank, local_ranks), strict=True)}


def test_outside_torchrun_there_is_no_placement() -> None:
    assert placement({"WORLD_SIZE": "4", "HOME": "x"}) is None


def test_one_node_measures_its_parts() -> None:
    found = placement(environment(5, 8, 5, 8))
    assert found == Placement(rank=5, ranks=8, local_rank=5, local_ranks=8)
    assert found.nodes == 1
    assert found.worlds() == [(1, 2), (1, 4), (1, 8)]


def test_several_nodes_measure_parts_of_one_and_whole_ones() -> None:
    found = placement(environment(23, 24, 7, 8))
    assert found is not None
    assert found.nodes == 3
    assert found.worlds() == [(1, 2), (1, 4), (1, 8), (2, 16), (3, 24)]


def test_one_rank_has_no_collectives() -> None:
    found = placement(environment(0, 1, 0, 1))
    assert found is not None
    assert found.worlds() == []


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"RANK": "0"}, "WORLD_SIZE is no whole number: it is not set"),
        (environment(0, 2, 0, 2) | {"RANK": "two"}, "RANK is no whole number: got 'two'"),
        (environment(0, 2, 0, 2) | {"RANK": "4K"}, "RANK is no whole number: got '4K'"),
        (environment(0, 2, 0, 2) | {"RANK": "²"}, "RANK is no whole number: got '²'"),
        (environment(2, 2, 0, 2), "contradict each other: RANK 2, WORLD_SIZE 2"),
        (environment(0, 2, 0, 4), "contradict each other"),
        (environment(0, 6, 0, 4), "as many ranks each, got 6 ranks and 4 on this node"),
    ],
)
def test_variables_that_cannot_be_are_refused(variables: dict[str, str], message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        placement(variables)
