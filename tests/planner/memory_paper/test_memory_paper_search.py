"""The search gives what plain enumeration gives, ties included, and proves it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from memory_paper_cases import problem_of, problems, section_6, solved

from planner.errors import InfeasibleError
from planner.papers.memory.certificate import bounds
from planner.papers.memory.check import check, stated_of
from planner.papers.memory.explained import Placement, placement_at
from planner.papers.memory.formulation import enumerated, exhausted
from planner.papers.memory.infeasibility import nothing_fits
from planner.papers.memory.placements import fitting, placements
from planner.papers.memory.problem import MemoryProblem
from planner.papers.memory.traffic import Groups


@settings(max_examples=12, deadline=None)
@given(problems())
def test_all_placements_are_those_of_the_reference_in_its_order(problem: MemoryProblem) -> None:
    found, wanted = placements(problem), enumerated(problem)
    assert [placement_at(found, place) for place in range(len(found))] == [
        Placement(**vars(one.stated)) for one in wanted
    ]
    for figures, name in (
        (found.device_bytes, "device_bytes"),
        (found.host_bytes, "host_bytes"),
        (found.sent_bytes, "communication_bytes"),
        (found.overhead_s, "overhead_s"),
    ):
        assert figures.tolist() == pytest.approx([getattr(one.takes, name) for one in wanted], rel=1e-12, abs=1e-12)


@settings(max_examples=15, deadline=None)
@given(problems())
def test_the_search_takes_what_the_reference_takes(problem: MemoryProblem) -> None:
    wanted = exhausted(problem)
    if wanted is None:
        with pytest.raises(InfeasibleError):
            solved(problem)
        return
    solution = solved(problem)
    assert stated_of(solution) == wanted.stated
    assert check(problem, solution) == []
    least, best = bounds(problem, solution, False, 1.0)
    assert least.value <= best.value
    assert best.value == pytest.approx(solution.overhead_s, rel=1e-9)
    assert (best.kind, best.attained) == ("exhaustive", True)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_the_relaxation_of_an_infeasible_problem_is_enough_and_the_least_that_is(problem: MemoryProblem) -> None:
    tight = problem.model_copy(update={"capacity_bytes": problem.other_bytes + 0.125})
    found = placements(tight)
    on_device, on_host = fitting(tight, found)
    if (on_device & on_host).any():
        return
    error = nothing_fits(tight, found)
    assert error.code == "device_memory"
    assert error.relaxation is not None
    assert error.relaxation.field == "capacity_bytes"
    needed = float(error.relaxation.value)
    assert solved(tight.model_copy(update={"capacity_bytes": needed})).device_bytes == pytest.approx(needed, rel=1e-12)
    with pytest.raises(InfeasibleError):
        solved(tight.model_copy(update={"capacity_bytes": needed * (1 - 1e-9)}))


def test_where_a_larger_host_would_do_the_error_says_how_large() -> None:
    # All on the host leaves units of 0.8 + 0.4, activations of 1.5 and 3 GB of other: 5.7 GB.
    host = {"capacity_bytes": 1e9, "beta_s_per_byte": 4e-11, "update_s_per_byte": 1e-11}
    problem = section_6(capacity_bytes=6e9, host=host)
    with pytest.raises(InfeasibleError) as raised:
        solved(problem)
    message = raised.value.message
    host_bytes = float(message.split("host.capacity_bytes of ")[1].split()[0])
    assert solved(section_6(capacity_bytes=6e9, host=host | {"capacity_bytes": host_bytes}))
    with pytest.raises(InfeasibleError):
        solved(section_6(capacity_bytes=6e9, host=host | {"capacity_bytes": host_bytes * (1 - 1e-9)}))


def test_a_search_that_forces_the_optimizer_onto_a_small_host_names_the_host() -> None:
    host = {"capacity_bytes": 1e9, "beta_s_per_byte": 4e-11, "update_s_per_byte": 1e-11}
    search = {"optimizer": ["offloaded"]}
    with pytest.raises(InfeasibleError) as raised:
        solved(section_6(host=host, search=search))
    assert raised.value.code == "host_memory"
    # 90 GB of optimizer states over 64 devices.
    assert raised.value.required == 90e9 / 64
    assert raised.value.relaxation is not None
    assert raised.value.relaxation.proven
    needed = float(raised.value.relaxation.value)
    assert solved(section_6(host=host | {"capacity_bytes": needed}, search=search)).host_bytes == needed


def test_where_device_and_host_are_both_too_small_no_one_change_is_said_to_be_enough() -> None:
    host = {"capacity_bytes": 1e9, "beta_s_per_byte": 4e-11, "update_s_per_byte": 1e-11}
    with pytest.raises(InfeasibleError) as raised:
        solved(section_6(capacity_bytes=3.1e9, host=host, search={"optimizer": ["offloaded"]}))
    assert raised.value.code == "host_memory"
    assert raised.value.relaxation is not None
    assert not raised.value.relaxation.enough
    assert "nor does any fit the device" in raised.value.message


def test_bytes_that_no_problem_may_state_are_no_relaxation() -> None:
    """Two groups of 9e15 bytes on one rank: 1.8e16 are more than 2^53."""
    one = section_6().groups[0].model_dump() | {
        "parameters_bytes": 9e15,
        "dims": [{"id": "d", "size": 1, "alpha_s": 0.0, "beta_s_per_byte": 0.0}],
    }
    with pytest.raises(InfeasibleError) as raised:
        solved(section_6(groups=[one, one | {"id": "experts"}]))
    assert (raised.value.code, raised.value.relaxation) == ("device_memory", None)
    assert (raised.value.required or 0) > 2**53


def test_a_search_that_leaves_no_placement_names_a_state_to_free() -> None:
    search = {"parameters": ["gather"], "gradients": ["sharded"], "optimizer": ["replicated"]}
    with pytest.raises(InfeasibleError) as raised:
        solved(section_6(search=search))
    assert raised.value.code == "no_placement"
    assert raised.value.relaxation is not None
    assert raised.value.relaxation.field == "search.optimizer"
    assert raised.value.relaxation.enough
    assert solved(section_6(search=search | {"optimizer": None}))


def test_with_one_rank_everywhere_nothing_is_moved_and_the_least_bytes_win() -> None:
    dims = [{"id": "d", "size": 1, "alpha_s": 1.0, "beta_s_per_byte": 1.0}]
    group = {
        "id": "dense",
        "parameters_bytes": 4.0,
        "gradients_bytes": 4.0,
        "optimizer_bytes": 8.0,
        "parameters_unit_bytes": 1.0,
        "gradients_unit_bytes": 1.0,
        "dims": dims,
    }
    found = placements(problem_of(groups=[group]))
    assert found.overhead_s.max() == 0
    # 4 + 4 + 8 whatever the mode: nothing is gathered on one rank.
    assert set(found.device_bytes.tolist()) == {16.0}
    solution = solved(problem_of(groups=[group]))
    assert (solution.parameters, solution.gradients, solution.optimizer) == ("replicated",) * 3


def test_experts_on_one_rank_are_replicated_where_the_dense_group_is_sharded() -> None:
    problem = section_6()
    experts = problem.groups[0].model_dump() | {"id": "experts"}
    experts["dims"] = [each | {"size": 1} for each in experts["dims"]]
    both = problem_of(
        groups=[problem.groups[0].model_dump(), experts], activations={"kept_bytes": 0.0}, num_micro_batches=2
    )
    found = placements(both)
    zero3 = Placement("gather", "sharded", "sharded", "kept", 2, 2, 2)
    place = next(place for place in range(len(found)) if placement_at(found, place) == zero3)
    # Dense: 15/64 + 0.8, 15/64 + 0.4, 90/64 GB; experts: 15 + 15 + 90 GB.
    assert found.device_bytes[place] == pytest.approx(120e9 / 64 + 1.2e9 + 120e9, rel=1e-12)


def test_with_one_micro_batch_zero_2_takes_the_time_of_zero_1_and_wins_by_bytes() -> None:
    solution = solved(section_6(num_micro_batches=1, capacity_bytes=1e12, search={"parameters": ["replicated"]}))
    assert solution.gradients == "sharded"


def test_units_of_nothing_are_the_ideal_of_zero() -> None:
    group = section_6().groups[0].model_dump() | {"parameters_unit_bytes": 0.0, "gradients_unit_bytes": 0.0}
    found = placements(problem_of(groups=[group]))
    assert found.device_bytes.min() == 120e9 / 64


def test_a_ring_over_gpus_ports_has_one_for_each_of_its_ranks_inside_the_dimension() -> None:
    group = section_6().groups[0].model_dump()
    shard, replicate = group["dims"]
    groups = Groups(problem_of(groups=[group | {"dims": [shard, replicate | {"beta_of": "gpu"}]}]))
    # 15e9 bytes over 8 x 8 ranks at 4e-11 / 8, which is more than the 4e-12 inside.
    assert groups.parameters_update(0, 2).seconds == pytest.approx(63 * 1e-5 + 63 / 64 * 15e9 * 5e-12, rel=1e-12)
    # An eighth of them over the outer dimension alone: one port.
    assert groups.parameters_update(1, 2).seconds == pytest.approx(7 * 1e-5 + 7 / 8 * 15e9 / 8 * 4e-11, rel=1e-12)
    # Where a node's own links are slower than its ports together they count.
    slow = shard | {"beta_s_per_byte": 1e-11}
    groups = Groups(problem_of(groups=[group | {"dims": [slow, replicate | {"beta_of": "gpu"}]}]))
    assert groups.parameters_update(0, 2).seconds == pytest.approx(63 * 1e-5 + 63 / 64 * 15e9 * 1e-11, rel=1e-12)
