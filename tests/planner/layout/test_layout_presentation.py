"""What is read off a layout plan: lines, bytes by rank, shares by source, decisions and metrics."""

from __future__ import annotations

from typing import Any

import pytest
from layout_cases import G1, G3, G8, Document, layers, problem, row, x

from planner.papers.layout.attributed import shares
from planner.papers.layout.formulation import enumerate_all
from planner.papers.layout.presentation import decisions, memory, metrics, summary, words
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.solution import Alternative, LayoutSolution
from planner.papers.layout.stated import alternative, figures

MEASURED = {"measured": 1.0}
MODELLED = {"modelled": 1.0}


def planned(document: Document) -> tuple[LayoutProblem, LayoutSolution]:
    """The best layout, with all others beside it."""
    given = problem(document)
    found = enumerate_all(given)
    chosen, *others = found.fitting
    rows = [alternative(one, chosen, "slower") for one in others]
    counted = {"combinations": found.combinations, "legal": found.legal, "excluded": found.excluded}
    front = [Alternative.model_validate(rows[-1])] if rows else []
    made = {
        **figures(chosen),
        "alternatives": rows,
        "pareto": [alternative(chosen, chosen, "chosen"), *front],
        **counted,
    }
    return given, LayoutSolution.model_validate(made)


def test_bytes_are_listed_by_rank_and_cause_beside_the_whole_gpu() -> None:
    given, solution = planned(x(cluster__reserve_bytes=1e9, search={"pp": [2]}))
    table = {(each.where, each.cause): each.bytes for each in memory(given, solution)}
    assert {each.capacity_bytes for each in memory(given, solution)} == {80e9}
    # 2 layers of 1e9 parameters; 2 and 1 micro-batches in flight. What is nothing and optional has no row.
    ranks = {"rank 0": 4e9, "rank 1": 2e9}
    states = {"weights": 4e9, "gradients": 8e9, "optimizer": 24e9, "transient": 0.0, "reserve": 1e9}
    assert table == {
        (rank, cause): amount
        for rank, activations in ranks.items()
        for cause, amount in ({"activations": activations} | states).items()
    }
    assert solution.peak_memory_bytes == sum(
        amount for (rank, cause), amount in table.items() if rank == "rank 0" and cause != "reserve"
    )


def test_the_summary_tells_the_layout_its_time_its_memory_and_what_comes_next() -> None:
    assert summary(*planned(G1)) == [
        "dp 4, ZeRO 0, micro-batch 1 x 2",
        "26.4 s a step: compute 24 s, reduction 2.4 s; 77.58 tokens/s a GPU",
        "peak 76 GB of 80 GB that are free on a GPU, on every GPU: optimizer 48 GB, gradients 16 GB, weights 8 GB",
        "3 combinations: 3 layouts keep the rules, 3 of them fit",
        "next: pp 2, dp 2, ZeRO 0, micro-batch 1 x 4: 16.67 % longer (slower)",
        "2 layouts trade time for memory, down to 22 GB in 33 s (pp 4, ZeRO 0, micro-batch 1 x 8)",
    ]


def test_uneven_stages_experts_and_exclusions_are_told() -> None:
    lines = summary(*planned(G3))
    assert lines[0] == "pp 2, ZeRO 0, micro-batch 1 x 8, layers 5 + 3"
    # Rank 1: 18 bytes of 3e8 and the head's 1e9 parameters, and 3.5e9 bytes of one micro-batch.
    assert lines[2].startswith("peak 26.9 GB of 80 GB that are free on a GPU, on rank 1 of 2: optimizer 15.6 GB")
    lines = summary(*planned(G8))
    assert lines[0] == "pp 2, ep 2, dp 2, ZeRO 1, micro-batch 1 x 8"
    assert lines[3] == (
        "6 combinations: 5 layouts keep the rules, 1 of them fit; the rule expert_world_size excludes most, 1"
    )


def test_longer_pipelines_tell_their_middle_once_and_what_is_on_is_named() -> None:
    table = [row(kind, tp=2, sp=True) for kind in ("dense", "embedding", "head")]
    search: dict[str, Any] = {"tp": [2], "pp": [4], "sequence_parallel": [True], "recompute": ["full"]}
    document = x(
        cluster__num_gpus=8,
        cluster__gpus_per_node=8,
        model__layers=layers(10),
        rows=table,
        search=search | {"partitions": ["ends"]},
    )
    _, solution = planned(document)
    assert words(solution) == (
        "tp 2, pp 4, ZeRO 0, micro-batch 1 x 8, full recomputation, sequence parallel, layers 2 + 2 x 3 + 2"
    )


def test_shares_follow_what_each_second_is_made_of() -> None:
    table = [row("dense", sources=MEASURED), row("embedding"), row("head", forward_s=1, backward_s=1, sources=MODELLED)]
    document = x(rows=table, search={"pp": [1], "zero_stage": [1]}, costs__optimizer_s_per_param=1e-9)
    document["costs"]["fixed_s"] = 1.2
    document["costs"]["collectives"]["intra"]["sources"] = {"interpolated": 1.0}
    given, solution = planned(document)
    # 2 micro-batches of 12 s of layers and 2 s of the head; reduction 1.2 s and gather 0.6 s; an update of 1 s.
    assert solution.step_time_s == pytest.approx(24 + 4 + 1.8 + 1 + 1.2, rel=1e-12)
    expected = {"measured": 24.0, "modelled": 4.0, "interpolated": 1.8, "stated": 1.0 + 1.2}
    assert shares(given, solution) == pytest.approx({name: part / 32 for name, part in expected.items()}, rel=1e-12)


def test_shares_of_shown_shard_traffic_and_of_hops_are_those_of_their_links() -> None:
    document = x(
        search={"pp": [2], "zero_stage": [3]}, rows=[row("dense", sources=MEASURED), row("embedding"), row("head")]
    )
    slow = {"alpha_s": 0, "beta_s_per_byte": 1e-9, "sources": MODELLED}
    document["costs"]["collectives"] = {"intra": slow, "inter": slow}
    document["costs"]["p2p"]["intra"] = {"alpha_s": 1.0, "beta_s_per_byte": 0, "sources": {"interpolated": 1.0}}
    given, solution = planned(document)
    # Of one micro-batch: 4 layers of 3 s; 2 gathers of 1 s and a scatter of 2 s each; one hop forward and one backward.
    busy = {"measured": 12.0, "modelled": 16.0, "interpolated": 2.0, "stated": 0.0}
    assert shares(given, solution) == pytest.approx({name: part / 30 for name, part in busy.items()}, rel=1e-12)


def test_a_step_of_no_time_is_stated() -> None:
    nothing = [row("dense", forward_s=0, backward_s=0), row("embedding"), row("head")]
    given, solution = planned(x(rows=nothing, cluster__num_gpus=1, cluster__gpus_per_node=1, search={}))
    assert shares(given, solution) == {"measured": 0.0, "interpolated": 0.0, "modelled": 0.0, "stated": 1.0}
    assert summary(given, solution)[1] == "0 s a step; 0 tokens/s a GPU"


def test_decisions_and_metrics_cover_every_figure_of_a_row_once() -> None:
    _, solution = planned(G1)
    told = decisions(solution) | metrics(solution)
    assert len(told) == len(decisions(solution)) + len(metrics(solution))
    assert set(told) == set(figures(enumerate_all(problem(G1)).fitting[0]))
    assert decisions(solution)["partition"] == [4]
    assert metrics(solution)["step_time_s"] == solution.step_time_s
