"""The best disjoint plan: the page's values, and never better than the joint reference."""

from __future__ import annotations

import pytest
import zellige_cases as cases
from hypothesis import given, settings
from oracle import best_by_enumeration

from planner.papers.zellige.disjoint import best_disjoint, describe, is_disjoint
from planner.papers.zellige.instance import compile_instance, loads
from solvers.report import Limits


def test_z1_best_groups() -> None:
    makespan_s, placement, note, proved = best_disjoint(cases.golden_instance("Z1"), Limits())
    assert (makespan_s, proved) == (6.0, True)
    assert note == "groups: 2 x 1, 1 x 2"
    assert placement is not None and is_disjoint(placement)


def test_theorem_2_disjoint_needs_every_sequence_split() -> None:
    # Z2: 9 only as one group of four with nine splits.
    makespan_s, placement, _, proved = best_disjoint(cases.golden_instance("Z2"), Limits())
    assert (makespan_s, proved) == (9.0, True)
    assert placement is not None
    assert describe(placement) == "1 x 4"
    assert sum(placement.values()) == 9


def test_no_partition_with_memory() -> None:
    assert best_disjoint(cases.golden_instance("Z5"), Limits()) == (None, None, "no partition has the memory", True)


@given(cases.small_problems(most_sequences=4))
@settings(max_examples=40, deadline=None)
def test_disjoint_is_the_best_of_all_partitions_and_never_beats_joint(problem: cases.ZelligeProblem) -> None:
    instance = compile_instance(problem)
    if not all(kind.modes for kind in instance.kinds):
        return
    joint = best_by_enumeration(instance)
    alone = best_by_enumeration(instance, disjoint=True)
    makespan_s, placement, _, proved = best_disjoint(instance, Limits())
    assert proved
    if alone is None:
        assert makespan_s is None and placement is None
        return
    assert makespan_s == alone[0]
    assert joint is not None and joint[0] <= alone[0]
    assert placement is not None and is_disjoint(placement)
    assert max(loads(instance, placement)[1]) <= instance.memory_cap_bytes


@pytest.mark.parametrize("scale", [1e-9, 1e6])
def test_the_unit_of_time_changes_nothing(scale: float) -> None:
    makespan_s, _, _, _ = best_disjoint(cases.golden_instance("Z1", scale), Limits())
    assert makespan_s is not None and makespan_s / scale == pytest.approx(6.0)
