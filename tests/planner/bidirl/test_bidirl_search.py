"""The search against the reference on random problems of every kind, and the bounds and relaxations around it."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from bidirl_cases import changed, eight_and_eight, layout, linear, problem, small

from planner.errors import InfeasibleError, LimitError
from planner.papers.bidirl.certificate import bounds
from planner.papers.bidirl.engines import solve
from planner.papers.bidirl.formulation import enumerated, exhausted, time_s
from planner.papers.bidirl.fractional import fractional_bound_s
from planner.papers.bidirl.infeasibility import no_split
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.search import best_split
from planner.papers.bidirl.split_figures import figures_of
from planner.papers.bidirl.stage_times.times import batch_s, relaxed_s, taken_s
from planner.papers.bidirl.stage_times.work import work_of
from solvers.report import Limits

SEEDS = range(400)


@pytest.fixture(scope="module")
def problems() -> list[BidirlProblem]:
    return [small(seed) for seed in SEEDS]


def test_the_search_finds_what_the_reference_finds(problems: list[BidirlProblem]) -> None:
    found = [(best_split(one), exhausted(one)) for one in problems]
    assert all(split == reference for split, reference in found)
    assert 100 < sum(split is not None for split, _ in found) < len(problems)


def test_the_order_of_layouts_changes_nothing(problems: list[BidirlProblem]) -> None:
    for one in problems:
        costs = one.costs
        turned = costs.model_copy(
            update={
                "rollout_layouts": costs.rollout_layouts[::-1],
                "train_layouts": costs.train_layouts[::-1],
            }
        )
        assert best_split(one.model_copy(update={"costs": turned})) == best_split(one)


def test_no_split_undercuts_the_fractional_bound(problems: list[BidirlProblem]) -> None:
    for one in problems:
        split = best_split(one)
        if split is not None:
            reached_s = figures_of(one, split).objective_s
            assert 0 < fractional_bound_s(one) <= reached_s * (1 + 1e-9)
            assert fractional_bound_s(one, reached_s) <= reached_s


def test_the_fractional_bound_is_that_of_a_fine_grid() -> None:
    # One layout of each role, half of a batch stale: max(M_r, M_t + 0.5 * 400 * 2 / g + 0.002 * 2048) + 2, with
    # M_r = 14.096 + 800 / g and M_t = 10 + 600 / (8 - g), over a million points.
    one = problem(
        objective="period",
        staleness=0.5,
        costs__rollout_layouts=[layout("tp2", 2, linear(10, 400, 0.002))],
    )
    gpus = np.linspace(0, 8, 1_000_001)[1:-1]
    rollout_s = 10 + 4.096 + 800 / gpus
    after_s = 10 + 600 / (8 - gpus) + 0.5 * 800 / gpus + 4.096
    least_s = float((2 + np.maximum(rollout_s, after_s)).min())
    assert fractional_bound_s(one) == pytest.approx(least_s, rel=1e-5)


def test_on_policy_the_bound_is_a_closed_form() -> None:
    # a = 800, b = 600: 2 + 10 + 10 + (sqrt 800 + sqrt 600)^2 / 8 = 22 + 1400 / 8 + 2 sqrt(480000) / 8.
    one = problem(objective="period", staleness=0)
    assert fractional_bound_s(one) == pytest.approx(22 + 175 + math.sqrt(480_000) / 4, rel=1e-12)


def test_certificates_name_a_bound_that_is_attained() -> None:
    solution, report = solve(problem(), None, Limits())
    relaxed, exhaustive = bounds(problem(), solution, False, 1.0)
    assert (exhaustive.kind, exhaustive.value, exhaustive.attained) == ("exhaustive", report.objective, True)
    assert relaxed.kind == "fractional"
    assert relaxed.value < exhaustive.value


def test_every_relaxation_that_is_named_makes_a_split_possible(problems: list[BidirlProblem]) -> None:
    seen = set()
    for one in problems:
        if best_split(one) is not None:
            continue
        error = no_split(one)
        seen.add(error.code)
        if error.relaxation is None or not error.relaxation.enough:
            continue
        relaxed = _relaxed(one, error.relaxation.field, error.relaxation.value)
        assert exhausted(relaxed) is not None
        if error.relaxation.field == "cluster.gpus":
            gpus = range(one.cluster.gpus, int(error.relaxation.value))
            assert all(best_split(_relaxed(one, "cluster.gpus", fewer)) is None for fewer in gpus)
        if error.relaxation.field == "cluster.gpu_memory_bytes":
            less = float(error.relaxation.value) * (1 - 1e-9)
            assert best_split(_relaxed(one, "cluster.gpu_memory_bytes", less)) is None
    assert seen == {
        "no_compatible_split",
        "rollout_memory_infeasible",
        "time_not_in_table",
        "train_memory_infeasible",
    }


def _relaxed(one: BidirlProblem, path: str, value: float | str) -> BidirlProblem:
    words: dict[str, object] = {"true": True, "false": False}
    outer, _, inner = path.partition(".")
    new = words.get(str(value), value)
    if not inner:
        return one.model_copy(update={outer: new})
    return one.model_copy(update={outer: getattr(one, outer).model_copy(update={inner: new})})


def test_stage_times_are_those_of_the_page(problems: list[BidirlProblem]) -> None:
    replicas = np.arange(1, 13)
    for one in problems:
        for role, whole in (("rollout", one.batch.prompt_groups), ("train", one.batch.train_chunks)):
            for each in one.layouts(role):  # type: ignore[arg-type]
                taken = batch_s(each.time, work_of(one.batch, role), replicas)  # type: ignore[arg-type]
                assert taken.tolist() == pytest.approx([time_s(one, each.time, whole, d) for d in range(1, 13)])


def test_real_replicas_take_no_longer_than_whole_ones(problems: list[BidirlProblem]) -> None:
    for one in problems:
        for role in ("rollout", "train"):
            work = work_of(one.batch, role)  # type: ignore[arg-type]
            for each in one.layouts(role):  # type: ignore[arg-type]
                relaxed = relaxed_s(each.time, work, np.arange(2, 25) / 2)
                assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(relaxed))
                assert (relaxed[::2] <= batch_s(each.time, work, np.arange(1, 13)) * (1 + 1e-12)).all()


def test_parts_of_a_batch_take_parts_of_its_time() -> None:
    one = eight_and_eight(problem().costs.switch.model_dump())
    work = work_of(one.batch, "rollout")
    # 16 of 64 groups on 8 replicas: 5 + 2400 / 4 / 8.
    assert float(taken_s(one.costs.rollout_layouts[0].time, work, 16, 8)) == 80


def test_a_thousand_gpus_and_twelve_layouts_a_role_give_the_best_of_each_pair() -> None:
    sizes = [1, 1, 1, 2, 2, 2, 4, 4, 4, 8, 8, 16]
    one = problem(
        cluster__gpus=1024,
        costs__rollout_layouts=[layout(f"r{k}", size, linear(10 - k / 4, 4000 / size)) for k, size in enumerate(sizes)],
        costs__train_layouts=[layout(f"t{k}", size, linear(12 - k / 4, 3000 / size)) for k, size in enumerate(sizes)],
    )
    split = best_split(one)
    assert split is not None
    pairs = [
        problem(
            one.model_dump(exclude_none=True),
            costs__rollout_layouts=[rollout.model_dump(exclude_none=True)],
            costs__train_layouts=[train.model_dump(exclude_none=True)],
        )
        for rollout in one.costs.rollout_layouts
        for train in one.costs.train_layouts
    ]
    best = [best_split(pair) for pair in pairs]
    least_s = min(figures_of(one, each).objective_s for each in best if each is not None)
    assert figures_of(one, split).objective_s == least_s


def test_the_reference_refuses_what_it_would_take_for_ever() -> None:
    with pytest.raises(LimitError) as raised:
        solve(problem(cluster__gpus=1024, allow_idle_gpus=True), "exhaustive", Limits())
    assert raised.value.code == "too_large"


def test_both_methods_give_one_solution() -> None:
    one = problem(objective="period", staleness=0.5, allow_idle_gpus=True)
    assert solve(one, "exhaustive", Limits())[0] == solve(one, "enumeration", Limits())[0]


def test_gpus_that_save_nothing_stay_idle() -> None:
    # Without divisible work every pool takes as long: one GPU each, and the smaller rollout pool.
    one = problem(
        allow_idle_gpus=True,
        costs__rollout_layouts=[layout("r", 1, linear(10, 0))],
        costs__train_layouts=[layout("t", 1, linear(10, 0))],
    )
    split = best_split(one)
    assert split is not None
    assert (split.rollout_gpus, split.train_gpus) == (1, 1)


def test_the_reference_counts_the_splits_of_the_page() -> None:
    # Golden case 6 with 12 GPUs: both pools multiples of 4.
    one = problem(
        cluster__gpus=12,
        cluster__gpus_per_node=2,
        costs__rollout_layouts=[layout("tp1", 1, linear(5, 300))],
        costs__train_layouts=[layout("fsdp4", 4, linear(5, 300))],
    )
    assert [timed.split.rollout_gpus for timed in enumerated(one)] == [4, 8]


def test_a_role_without_layouts_that_tile_a_node_has_no_split() -> None:
    with pytest.raises(InfeasibleError) as raised:
        solve(problem(costs__train_layouts=[layout("three", 3, linear(10, 300))]), None, Limits())
    assert raised.value.code == "no_compatible_split"
    assert "replica_straddles_node" in raised.value.message


def test_tables_name_the_replicas_they_lack() -> None:
    table = {"kind": "table", "replicas": [4], "time_s": [3.0]}
    with pytest.raises(InfeasibleError) as raised:
        solve(problem(changed(costs__train_layouts=[layout("t", 2, table)])), None, Limits())
    assert raised.value.code == "time_not_in_table"
    assert "train layout t 1, 2, 3" in raised.value.message


def test_what_was_tried_in_vain_is_named_and_one_gpu_is_one() -> None:
    """Replicas of 2 do not tile nodes of 7, however many: nodes of 8 would do, and are not among what is tried."""
    with pytest.raises(InfeasibleError, match=r"none of these alone makes one possible: idle GPUs, more GPUs up to 16"):
        solve(problem(cluster__gpus_per_node=7), None, Limits())
    with pytest.raises(InfeasibleError, match=r"possible with 1 idle GPU or 10 GPUs"):
        solve(problem(cluster__gpus=9), None, Limits())
