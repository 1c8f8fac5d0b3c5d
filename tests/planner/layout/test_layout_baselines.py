"""Baselines are what their rules say, by the same evaluator; what does not fit is shown with what it lacks."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from layout_cases import G1, G4, G6, G7, Document, problem, row, x
from layout_random import random_problem

from planner.errors import InfeasibleError
from planner.paper import Baseline
from planner.papers.layout.baselines import baselines
from planner.papers.layout.check import check
from planner.papers.layout.engines import solve
from planner.papers.layout.solution import LayoutSolution
from solvers.report import Limits


def by_name(document: Document) -> dict[str, Baseline[LayoutSolution]]:
    return {one.name: one for one in baselines(problem(document), Limits())}


def searched(document: Document, **search: Any) -> Document:
    """With other search lists."""
    return document | {"search": document["search"] | search}


def test_baselines_are_listed_in_the_order_of_the_page() -> None:
    assert list(by_name(G4)) == ["pure_dp", "fsdp", "zero3", "full_recompute", "megatron_rule"]


def test_g4_is_sharded_or_recomputed_and_without_sharding_too_large() -> None:
    found = by_name(G4)
    # Section 10: zero 2 + full 138.2 s is the optimum, zero 3 + full 147.2 s.
    assert found["full_recompute"].objective == pytest.approx(138.2, rel=1e-12)
    assert found["fsdp"].objective == found["zero3"].objective == pytest.approx(147.2, rel=1e-12)
    # zero 1 + full needs 43.5 GB of 40: 8 micro-batches of 4 layers of 4 s; 1.2 s to scatter and 0.6 s to gather.
    for name in ("pure_dp", "megatron_rule"):
        one = found[name]
        assert (one.feasible, one.objective) == (False, pytest.approx(129.8, rel=1e-12))
        assert one.note.endswith("full recomputation: 3.5 GB over")
        assert one.solution is not None
        assert one.solution.peak_memory_bytes == pytest.approx(43.5e9, rel=1e-12)


def test_a_rule_beyond_the_search_lists_is_followed_as_no_answer_of_the_problem() -> None:
    found = by_name(G1)
    assert found["pure_dp"].solution is not None
    assert (found["pure_dp"].objective, found["pure_dp"].outside) == (pytest.approx(26.4, rel=1e-12), False)
    # Each layer gathers 2e9 bytes twice and scatters 4e9 over 4 ranks: 0.6 s beside its 3 s; 8 layers a step.
    fsdp = found["fsdp"]
    assert (fsdp.objective, fsdp.outside, fsdp.solution) == (pytest.approx(28.8, rel=1e-12), True, None)
    assert fsdp.note.endswith("; the search has no zero_stage 3")


def test_a_rule_that_leaves_no_layout_names_the_rule_that_excludes_most() -> None:
    found = by_name(G6)["pure_dp"]
    assert (found.objective, found.feasible, found.solution) == (None, False, None)
    assert found.note == "no layout keeps the rules, global_batch excludes most"


def test_the_megatron_rule_takes_the_largest_tp_that_fits_though_it_is_slower() -> None:
    """G6 with traffic of 3 s a layer each way under tp 2: 3 micro-batches of 4 layers of 7.5 s."""
    rows = [dict(one) for one in G6["costs"]["rows"]]
    for one in rows:
        if one["kind"] == "dense" and one["tp"] == 2:
            one.update(comm_forward_s=3.0, comm_backward_s=3.0)
    document = G6 | {"costs": G6["costs"] | {"rows": rows}}
    found = by_name(document)["megatron_rule"]
    assert found.solution is not None
    assert (found.solution.tp, found.solution.pp, found.solution.micro_batch) == (2, 1, 1)
    # The tail is that of G6: half of 16 + 8 GB over 2 ranks, 1e-10 s a byte.
    assert found.objective == pytest.approx(3 * 4 * 7.5 + 0.6, rel=1e-12)
    assert found.objective > solve(problem(document), None, Limits())[0].step_time_s


def megatron(document: Document) -> LayoutSolution:
    solution = by_name(document)["megatron_rule"].solution
    assert solution is not None
    return solution


def test_the_megatron_rule_takes_the_fewest_stages_that_fit_then_the_least_recomputation() -> None:
    """Under zero 1 one stage needs 8 + 16 + 12 + 4 = 40 GB, two need 4 + 8 + 12 + 4 = 28 GB."""
    document = searched(G1, zero_stage=[0, 1, 2], recompute=["none", "full"])
    assert megatron(document).pp == 1
    document = document | {"cluster": document["cluster"] | {"gpu_memory_bytes": 30e9}}
    found = megatron(document)
    assert (found.pp, found.zero_stage, found.recompute) == (2, 1, "none")
    document = searched(document, pp=[2], recompute=["full"])
    assert megatron(document).recompute == "full"


def test_the_megatron_rule_takes_the_largest_interleaving_and_the_smallest_cp() -> None:
    rows = [row(kind, cp=cp) for kind in ("dense", "embedding", "head") for cp in (1, 2)]
    document = searched(x(rows=rows), pp=[2], vpp=[1, 2], cp=[1, 2], zero_stage=[1])
    found = megatron(document)
    assert (found.cp, found.vpp) == (1, 2)


def test_no_rule_gives_a_layout_where_there_is_none() -> None:
    """G7: 4 GPUs and micro-batches of 4 do not divide a batch of 6."""
    assert all(one.objective is None and not one.feasible for one in baselines(problem(G7), Limits()))


@pytest.mark.parametrize("seed", range(25))
def test_no_baseline_within_the_search_is_better_than_the_plan_and_each_stands_the_check(seed: int) -> None:
    given = random_problem(Random(seed))
    try:
        least_s = solve(given, None, Limits())[0].step_time_s
    except InfeasibleError:
        least_s = float("inf")
    for one in baselines(given, Limits()):
        assert one.note
        assert (one.objective is None) <= (not one.feasible)
        if one.feasible and not one.outside:
            assert one.solution is not None
            assert one.solution.rule == one.name
            assert check(given, one.solution) == []
            assert one.objective == one.solution.step_time_s >= least_s * (1 - 1e-9)
        if not one.feasible and one.solution is not None and not one.outside:
            assert {violation.code for violation in check(given, one.solution)} == {"memory"}
