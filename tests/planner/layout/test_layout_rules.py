"""Every rule of the page (section 3.1), broken once and kept once, and which of several broken ones counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from layout_cases import Document, layers, problem, row, x

from planner.papers.layout.layouts import Layout
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.rules import broken_rule, missing_rows
from planner.papers.layout.solution import RULES

PLAIN = Layout(1, 1, 1, 1, 1, 1, 0, "none", 1, False)
MOE = {"layers": layers(4, "moe"), "num_heads": 8, "num_kv_heads": 4, "num_experts": 6}
DENSE = {"layers": layers(4), "num_heads": 12, "num_kv_heads": 4, "num_experts": 0}


def posed(launcher_rules: str = "none", num_gpus: int = 24, node: int = 12, model: Document = DENSE) -> LayoutProblem:
    """24 GPUs in two nodes, 48 sequences of 96 tokens."""
    experts = [row("moe", ep=e, etp=u) for e in (1, 2, 3, 4, 5) for u in (1, 5)]
    return problem(
        x(
            launcher_rules=launcher_rules,
            cluster__num_gpus=num_gpus,
            cluster__gpus_per_node=node,
            batch={"global_batch_size": 48, "sequence_length": 96},
            model=model,
            rows=[row("dense"), row("embedding"), row("head"), *experts],
        )
    )


BROKEN: list[tuple[str, LayoutProblem, dict[str, object]]] = [
    ("world_size", posed(), {"tp": 5}),
    ("expert_world_size", posed(model=MOE), {"ep": 2, "etp": 5}),
    ("no_experts", posed(), {"ep": 2}),
    ("no_experts", posed(), {"etp": 2}),
    ("expert_split", posed(model=MOE), {"ep": 4}),
    ("tp_crosses_node", posed(), {"tp": 24}),
    ("tp_crosses_node", posed(), {"tp": 8}),
    ("heads", posed(), {"tp": 6}),  # divides the heads, but 4 and 6 do not divide one another
    ("heads", posed(model=MOE), {"tp": 3}),
    ("cp_sequence", posed(num_gpus=64, node=4), {"cp": 64}),
    ("sp_without_tp", posed(), {"sequence_parallel": True}),
    ("sp_sequence", posed(num_gpus=192), {"tp": 4, "cp": 48, "sequence_parallel": True}),
    ("global_batch", posed(), {"micro_batch": 3}),
    ("vpp_without_pp", posed(), {"vpp": 2}),
    ("interleave_micro_batches", posed(num_gpus=12), {"pp": 3, "vpp": 2, "micro_batch": 3}),
    ("moe_needs_sp", posed("megatron", model=MOE), {"tp": 2}),
    ("megatron_zero_stage", posed("megatron"), {"zero_stage": 2}),
    ("megatron_zero_stage", posed("megatron"), {"zero_stage": 3, "pp": 2}),
    ("deepspeed_zero_pipeline", posed("deepspeed"), {"zero_stage": 2, "pp": 2}),
    ("deepspeed_interleave", posed("deepspeed"), {"pp": 2, "vpp": 2}),
    ("deepspeed_cp", posed("deepspeed"), {"cp": 2}),
    ("torchtitan_fsdp", posed("torchtitan"), {"zero_stage": 1}),
    ("torchtitan_sp", posed("torchtitan"), {"zero_stage": 2, "tp": 2}),
    ("partition", posed(), {"pp": 3}),
    ("row_not_in_table", posed(), {"cp": 2}),
    ("row_not_in_table", posed(model=MOE), {"ep": 6}),
]
KEPT: list[tuple[str, LayoutProblem, dict[str, object]]] = [
    (
        "multi-query attention allows more tensor ranks than key heads",
        posed(model=DENSE | {"num_kv_heads": 1}),
        {"tp": 2},
    ),
    ("sequence parallelism beside tensor parallelism", posed(), {"tp": 2, "sequence_parallel": True}),
    ("Megatron shards all only without a pipeline", posed("megatron"), {"zero_stage": 3}),
    ("DeepSpeed shards gradients without a pipeline", posed("deepspeed"), {"zero_stage": 3}),
    ("torchtitan", posed("torchtitan"), {"zero_stage": 3}),
    ("a last node that is not full", posed(num_gpus=16), {}),
    ("one GPU", posed(num_gpus=1), {}),
]


@pytest.mark.parametrize(("rule", "given", "changes"), BROKEN)
def test_a_broken_rule_is_named(rule: str, given: LayoutProblem, changes: dict[str, object]) -> None:
    assert broken_rule(given, replace(PLAIN, **changes)) == rule  # type: ignore[arg-type]


@pytest.mark.parametrize(("given", "changes"), [each[1:] for each in KEPT], ids=[each[0] for each in KEPT])
def test_what_looks_like_a_broken_rule_and_is_none(given: LayoutProblem, changes: dict[str, object]) -> None:
    broken = broken_rule(given, replace(PLAIN, **changes))  # type: ignore[arg-type]
    assert broken in (None, "row_not_in_table")
    assert (broken is None) == (not missing_rows(given, replace(PLAIN, **changes)))  # type: ignore[arg-type]


def test_every_rule_is_provoked_but_memory_and_the_one_that_another_implies() -> None:
    # torchtitan_ep, e | d c t = N / p, follows from expert_world_size, u e p | N.
    assert {rule for rule, *_ in BROKEN} == set(RULES) - {"memory", "torchtitan_ep"}


def test_the_first_broken_rule_in_the_order_of_the_page_counts() -> None:
    # tp 5 divides neither the GPUs nor the node nor the heads, and no row prices it.
    assert broken_rule(posed(), replace(PLAIN, tp=5, vpp=2)) == "world_size"
    assert broken_rule(posed(), replace(PLAIN, tp=8, vpp=2)) == "tp_crosses_node"
    assert broken_rule(posed(), replace(PLAIN, tp=4, vpp=2)) == "vpp_without_pp"


def test_the_missing_rows_are_listed_by_key() -> None:
    keys = missing_rows(posed(model=MOE), replace(PLAIN, ep=6, cp=2))
    assert keys == [("moe", 1, 2, False, 1, 6, 1), ("embedding", 1, 2, False, 1, 0, 0), ("head", 1, 2, False, 1, 0, 0)]
