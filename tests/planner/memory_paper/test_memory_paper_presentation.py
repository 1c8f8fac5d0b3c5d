"""What a memory plan shows: bytes by cause that add up, baselines with what they lack, what a step pays, warnings."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from memory_paper_cases import dim, group, offloading, problem_of, problems, section_6, solved, zero_paper

from planner.errors import InfeasibleError
from planner.paper import SOURCES
from planner.papers.memory import presentation
from planner.papers.memory.account import account
from planner.papers.memory.baselines import baselines
from planner.papers.memory.causes import UNITS, by_cause
from planner.papers.memory.cautions import warnings
from planner.papers.memory.explained import Placement, fullest, placement_of
from planner.papers.memory.launch_settings import launched
from planner.papers.memory.names import named
from planner.papers.memory.pictures import view
from planner.papers.memory.problem import STATES, MemoryProblem
from planner.view import Bars, Table
from solvers.report import Limits

NAMES = ["dp", "zero1", "zero2", "zero3", "hsdp", "shard_grad_op", "zero3_full_recompute", "zero_offload"]
CAUSES = {"attention": 5e9, "ffn": 9e9, "embedding": 1e9}


def with_causes(**changes: Any) -> MemoryProblem:
    """The page's example with its bytes by cause."""
    fields = section_6().model_dump()
    fields["groups"] = [fields["groups"][0] | {"parameters_causes": CAUSES}]
    fields["activations"] |= {"kept_causes": {"attention": 10e9, "ffn": 18e9, "logits": 2e9}}
    fields["other_causes"] = {"context": 1e9, "communicators": 2e9}
    return problem_of(**fields | changes)


@settings(max_examples=25, deadline=None)
@given(problems())
def test_bytes_by_cause_rows_of_memory_and_items_paid_add_up(problem: MemoryProblem) -> None:
    try:
        solution = solved(problem)
    except InfeasibleError:
        return
    placement = placement_of(solution)
    own = fullest(problem, placement)
    causes = by_cause(own, placement)
    for state in STATES:
        held = math.fsum(row.get(state, 0.0) for row in causes.values())
        assert held == pytest.approx(getattr(solution.by_state, state), rel=1e-9, abs=1e-9)
    assert math.fsum(each for row in causes.values() for each in row.values()) == pytest.approx(solution.device_bytes)
    rows = presentation.memory(problem, solution)
    on_device = [row.bytes for row in rows if row.where == "device"]
    assert len(on_device) == 3 * len(problem.groups) + 2 + (own.workspace_bytes > 0)
    others = [row.bytes for row in rows if row.where.startswith("rank ")]
    assert len(others) == len(problem.ranks)
    assert max(others, default=0.0) <= solution.device_bytes * (1 + 1e-12)
    assert math.fsum(on_device) == pytest.approx(solution.device_bytes)
    items = account(problem, placement)
    assert math.fsum(item.seconds for item in items) == pytest.approx(solution.overhead_s, rel=1e-9, abs=1e-12)
    sent = math.fsum(item.moved_bytes for item in items if item.group)
    # The slowest rank is not always the one that sends most.
    assert sent <= solution.communication_bytes * (1 + 1e-9) + 1e-9
    if not problem.ranks:
        assert sent == pytest.approx(solution.communication_bytes, rel=1e-9, abs=1e-9)
    shares = presentation.shares(problem, solution)
    assert tuple(shares) == SOURCES
    assert math.fsum(shares.values()) == pytest.approx(1)
    assert len(view(problem, solution).sections) >= 4
    assert 1 <= len(presentation.summary(problem, solution)) <= 8


def test_causes_are_sharded_alike_and_units_stand_apart() -> None:
    problem = with_causes()
    causes = by_cause(problem, placement_of(solved(problem)))
    # (1,1,2) over 8 x 8: attention 5/8 GB of parameters and of gradients, a third of 90/64 GB of optimizer states.
    attention = {"parameters": 5e9 / 8, "gradients": 5e9 / 8, "optimizer": 30e9 / 64, "activations": 10e9}
    assert causes["attention"] == pytest.approx(attention)
    assert causes[UNITS] == pytest.approx({"parameters": 0.8e9, "gradients": 0.4e9})
    assert causes["logits"] == {"activations": 2e9}
    assert causes["communicators"] == {"other": 2e9}


def test_the_first_thing_shown_is_the_table_by_cause() -> None:
    problem = with_causes()
    first = view(problem, solved(problem)).sections[0]
    assert isinstance(first, Table)
    assert first.columns == ("cause", "params", "grads", "optim", "activ", "other", "in all", "share")
    cells = {row[0]: row for row in first.rows}
    assert list(cells) == [*CAUSES, UNITS, "logits", "context", "communicators", "in all", "free"]
    assert cells["in all"][-2:] == ("39.4 GB", "81.99%")
    assert cells["free"][-2:] == ("8.64 GB", "18.01%")


def test_rivals_are_drawn_beside_the_devices_memory() -> None:
    problem = section_6()
    bars = next(each for each in view(problem, solved(problem)).sections if isinstance(each, Bars))
    assert bars.limit == 48e9
    # No host, so no zero_offload.
    assert [bar.label for bar in bars.bars] == ["planned", *NAMES[:-1]]
    assert ", over" in bars.bars[1].note
    assert ", over" not in bars.bars[0].note


def test_every_other_mode_says_what_it_loses_by() -> None:
    problem = section_6()
    table = next(each for each in view(problem, solved(problem)).sections if each.title == "with another mode")
    assert isinstance(table, Table)
    loses = {row[0]: row[-1] for row in table.rows}
    assert set(loses) == {
        "parameters replicated",
        "parameters gather_keep",
        "gradients replicated",
        "optimizer replicated",
        "activations materialised",
    }
    # Replicated gradients go with replicated parameters and take 15 + 15 + 1.41 + 30 + 3 GB, or recompute and fit.
    assert "times" in loses["gradients replicated"]


def test_baselines_that_do_not_fit_say_what_they_lack_and_have_no_objective() -> None:
    problem = section_6()
    found = {baseline.name: baseline for baseline in baselines(problem, Limits())}
    assert list(found) == NAMES
    # dp: 15 + 15 + 90 + 30 + 3 GB.
    assert found["dp"].objective is None
    assert found["dp"].note.startswith("device: 153 GB, 105 GB too many")
    assert found["zero_offload"].note == "there is no host"
    zero3 = found["zero3"]
    assert zero3.solution is not None
    assert zero3.objective == zero3.solution.overhead_s
    # 15/64 + 0.8 + 15/64 + 0.4 + 90/64 + 30 + 3 GB.
    assert zero3.solution.device_bytes == pytest.approx(36.075e9)
    assert all(baseline.feasible == (baseline.objective is not None) for baseline in found.values())


def test_baselines_without_their_modes_or_dimensions_say_so() -> None:
    searched = section_6(search={"optimizer": ["sharded"]}, activations={"kept_bytes": 1e9}, capacity_bytes=1e12)
    notes = {baseline.name: baseline.note for baseline in baselines(searched, Limits())}
    assert notes["dp"] == "search leaves replicated optimizer out"
    assert notes["zero3_full_recompute"].startswith("recomputing is not offered")
    one = {baseline.name: baseline.note for baseline in baselines(zero_paper(), Limits())}
    assert one["hsdp"].startswith("there is one data-parallel dimension")


def test_zero_offload_is_what_two_devices_beside_a_host_want() -> None:
    problem = offloading()
    found = {baseline.name: baseline for baseline in baselines(problem, Limits())}
    assert found["zero_offload"].objective == solved(problem).overhead_s
    items = {item.name: item for item in account(problem, placement_of(solved(problem)))}
    # (26 + 52) / 2 GB over a link of 25 GB/s; 156 / 2 GB updated at 100 GB/s.
    assert items["optimizer_over_host_link"].seconds == pytest.approx(1.56)
    assert items["host_update"].seconds == pytest.approx(0.78)
    assert [row.where for row in presentation.memory(problem, solved(problem))][-1] == "host"


@pytest.mark.parametrize(
    ("placement", "words"),
    [
        (Placement("replicated", "replicated", "replicated", "kept", 0, 0, 0), "data parallel"),
        (Placement("replicated", "replicated", "sharded", "kept", 0, 0, 2), "ZeRO-1"),
        (Placement("replicated", "sharded", "sharded", "materialised", 0, 2, 2), "ZeRO-2, activations recomputed"),
        (Placement("gather", "sharded", "sharded", "kept", 2, 2, 2), "ZeRO-3"),
        (Placement("gather_keep", "sharded", "sharded", "kept", 2, 2, 2), "FSDP shard-grad-op"),
        (Placement("gather", "sharded", "sharded", "offloaded", 1, 1, 1), "HSDP, activations on the host"),
        (Placement("gather", "sharded", "sharded", "kept", 1, 1, 2), "HSDP with fully sharded optimizer"),
        (Placement("replicated", "sharded", "offloaded", "kept", 0, 2, 2), "ZeRO-2, optimizer on the host"),
        (
            Placement("replicated", "sharded", "sharded", "kept", 0, 1, 1),
            "gradients over 1 and optimizer over 1 of 2 dims",
        ),
    ],
)
def test_placements_have_the_names_that_people_know(placement: Placement, words: str) -> None:
    assert named(placement, 2) == words


def test_a_plan_near_capacity_warns_until_a_measured_peak_is_stated() -> None:
    def codes(problem: MemoryProblem) -> list[str]:
        return [warned.code for warned in warnings(problem, solved(problem))]

    assert codes(section_6()) == []
    # 39.36 of 45 GB are 87 %.
    close = section_6(capacity_bytes=45e9)
    assert codes(close) == ["near_capacity"]
    assert "measured peak" in warnings(close, solved(close))[0].message
    measured = section_6(capacity_bytes=45e9, other_measured=True)
    assert "measured peak" not in warnings(measured, solved(measured))[0].message
    assert codes(section_6(other_bytes=0.5e9)) == ["other_bytes_unmeasured"]
    assert codes(section_6(other_bytes=0.5e9, other_measured=True)) == []
    said = section_6(cautions={"left_out": "modules of multi-token prediction are left out"})
    assert codes(said) == ["left_out"]


def test_seconds_come_from_where_their_dimension_does() -> None:
    measured = dim(8, 0.0, 4e-12) | {"sources": {"measured": 1.0}}
    slower = dim(8, 0.0, 4e-11, "replicate")
    problem = problem_of(
        groups=[group(7.5e9, (2, 2, 12), 0.2e9, [measured, slower])],
        search={"parameters": ["gather"], "gradients": ["sharded"], "optimizer": ["sharded"]},
        capacity_bytes=40e9,
    )
    solution = solved(problem)
    assert placement_of(solution).i_g == 1
    shares = presentation.shares(problem, solution)
    # Within the node: gather twice and scatter once 15 GB; between the nodes 1.875 GB there and back, ten times slower.
    assert shares["measured"] == pytest.approx(3 * 15 * 4 / (3 * 15 * 4 + 2 * 1.875 * 40))
    assert shares["stated"] == pytest.approx(1 - shares["measured"])


def told(placement: Placement) -> dict[str, str]:
    """What each launcher is told over two dimensions of 8, empty where it cannot."""
    return {each.launcher: each.settings for each in launched(section_6(), placement)}


def test_launchers_are_told_what_they_can_be_told() -> None:
    zero1 = told(Placement("replicated", "replicated", "sharded", "kept", 0, 0, 2))
    assert zero1 == {
        "DeepSpeed": '"zero_optimization": {"stage": 1}',
        "Megatron-LM": "--use-distributed-optimizer",
        "torchtitan": "",
    }
    zero2 = told(Placement("replicated", "sharded", "sharded", "kept", 0, 2, 2))
    assert zero2 == {"DeepSpeed": '"zero_optimization": {"stage": 2}', "Megatron-LM": "", "torchtitan": ""}
    hsdp = told(Placement("gather", "sharded", "sharded", "kept", 1, 1, 1))
    assert (hsdp["DeepSpeed"], hsdp["Megatron-LM"]) == ("", "")
    assert "data_parallel_shard_degree=8, data_parallel_replicate_degree=8" in hsdp["torchtitan"]
    full = told(Placement("gather", "sharded", "sharded", "materialised", 2, 2, 2))
    assert "data_parallel_shard_degree=64, data_parallel_replicate_degree=1" in full["torchtitan"]
    assert full["DeepSpeed"].startswith('"zero_optimization": {"stage": 3}')


@pytest.mark.parametrize(
    ("context", "prefix", "settings"),
    [
        # dp_replicate * dp_shard * cp ranks are 8 x 8.
        (4, 2, "data_parallel_shard_degree=16, data_parallel_replicate_degree=1"),
        (4, 1, "data_parallel_shard_degree=2, data_parallel_replicate_degree=8"),
        (16, 2, "data_parallel_shard_degree=4, data_parallel_replicate_degree=1"),
        (16, 1, ""),
    ],
)
def test_torchtitan_is_told_the_shards_beside_context_parallel_ranks(context: int, prefix: int, settings: str) -> None:
    sizes = {"hidden": 64, "num_layers": 4, "num_heads": 4, "ffn": 128, "vocab": 512}
    layout, batch = {"cp": context}, {"sequence_length": 128}
    problem = section_6(job={"model": sizes, "layout": layout, "batch": batch})
    [told] = launched(problem, Placement("gather", "sharded", "sharded", "kept", prefix, prefix, prefix))[2:]
    assert told.settings.startswith(settings)
    assert bool(told.settings) == bool(settings)
    assert ("16 context-parallel ranks" in told.cannot) == (not settings)


def test_where_context_parallelism_is_not_stated_torchtitan_s_degree_is_said_to_hold_it() -> None:
    hsdp = told(Placement("gather", "sharded", "sharded", "kept", 1, 1, 1))
    assert "divided by that of context parallelism, which is not stated" in hsdp["torchtitan"]


def test_what_no_launcher_can_be_told_is_named() -> None:
    half = launched(section_6(), Placement("gather", "sharded", "sharded", "kept", 1, 1, 2))
    assert [each.settings for each in half] == ["", "", ""]
    assert all("HSDP with fully sharded optimizer" in each.cannot for each in half)


@pytest.mark.parametrize(
    ("placement", "settings"),
    [
        (Placement("replicated", "sharded", "offloaded", "kept", 0, 2, 2), '"stage": 2, "offload_optimizer"'),
        (Placement("replicated", "offloaded", "offloaded", "kept", 0, 2, 2), '"stage": 2, "offload_optimizer"'),
        (Placement("replicated", "offloaded", "offloaded", "kept", 0, 0, 2), ""),
        (Placement("replicated", "replicated", "offloaded", "kept", 0, 0, 0), ""),
        (Placement("offloaded", "sharded", "offloaded", "kept", 2, 2, 2), '"offload_param": {"device": "cpu"}'),
        (Placement("offloaded", "sharded", "offloaded", "kept", 0, 2, 2), ""),
    ],
)
def test_deepspeed_offloads_from_the_stage_on_that_shards_what_is_offloaded(
    placement: Placement, settings: str
) -> None:
    found = told(placement)["DeepSpeed"]
    assert settings in found
    assert bool(settings) == bool(found)
