"""The rules that a layout must keep, the launcher's among them, in the order of the page (section 3.1)."""

from __future__ import annotations

from collections.abc import Iterator

from planner.papers.layout.layouts import Layout
from planner.papers.layout.partitions import partitions
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.table import Key, Kind


def broken_rule(problem: LayoutProblem, layout: Layout) -> str | None:
    """The first rule that a layout breaks, all but ``memory``; None where it keeps them.

    The layout's own partition is not read: ``partition`` is broken where there is none to choose.
    """
    for rule, kept in _rules(problem, layout):
        if not kept:
            return rule
    return None


def _rules(problem: LayoutProblem, layout: Layout) -> Iterator[tuple[str, bool]]:
    """Name by name; later ones may rest on earlier ones."""
    cluster, batch, model = problem.cluster, problem.batch, problem.model
    t, c, p, v, e, u = layout.tp, layout.cp, layout.pp, layout.vpp, layout.ep, layout.etp
    num_gpus, experts, kv_heads = cluster.num_gpus, model.num_experts, model.num_kv_heads
    sequence = batch.sequence_length

    yield "world_size", num_gpus % (t * c * p) == 0
    yield "expert_world_size", not experts or num_gpus % (u * e * p) == 0
    yield "no_experts", bool(experts) or e == u == 1
    yield "expert_split", not experts or experts % e == 0
    yield "tp_crosses_node", t <= cluster.gpus_per_node and cluster.gpus_per_node % t == 0
    yield "heads", model.num_heads % t == 0 and (kv_heads % t == 0 or t % kv_heads == 0)
    yield "cp_sequence", c == 1 or sequence % (2 * c) == 0
    yield "sp_without_tp", not layout.sequence_parallel or t > 1
    yield "sp_sequence", not layout.sequence_parallel or (sequence % c == 0 and (sequence // c) % t == 0)
    dp = num_gpus // (t * c * p)
    yield "global_batch", batch.global_batch_size % (layout.micro_batch * dp) == 0
    yield "vpp_without_pp", v == 1 or p > 1
    yield "interleave_micro_batches", v == 1 or batch.global_batch_size // (layout.micro_batch * dp) % p == 0
    if problem.launcher_rules == "megatron":
        yield from _megatron(problem, layout)
    elif problem.launcher_rules == "deepspeed":
        yield from _deepspeed(layout)
    elif problem.launcher_rules == "torchtitan":
        yield from _torchtitan(problem, layout, dp)
    yield "partition", bool(partitions(model.num_layers, p, v, problem.search.partitions))
    yield "row_not_in_table", not missing_rows(problem, layout)


def _megatron(problem: LayoutProblem, layout: Layout) -> Iterator[tuple[str, bool]]:
    yield "moe_needs_sp", not problem.model.num_experts or layout.tp == 1 or layout.sequence_parallel
    yield "megatron_zero_stage", layout.zero_stage in (0, 1) or (layout.zero_stage == 3 and layout.pp == 1)


def _deepspeed(layout: Layout) -> Iterator[tuple[str, bool]]:
    yield "deepspeed_zero_pipeline", layout.zero_stage < 2 or layout.pp == 1
    yield "deepspeed_interleave", layout.vpp == 1
    yield "deepspeed_cp", layout.cp == 1


def _torchtitan(problem: LayoutProblem, layout: Layout, dp: int) -> Iterator[tuple[str, bool]]:
    yield "torchtitan_fsdp", layout.zero_stage >= 2
    yield "torchtitan_ep", not problem.model.num_experts or dp * layout.cp * layout.tp % layout.ep == 0
    yield "torchtitan_sp", layout.tp == 1 or layout.sequence_parallel


def needed_kinds(problem: LayoutProblem) -> tuple[Kind, ...]:
    """Kinds of rows without which no layout of the model has a price."""
    kinds: set[Kind] = {run.kind for run in problem.model.layers}
    return (*sorted(kinds), "embedding", "head")


def missing_rows(problem: LayoutProblem, layout: Layout) -> list[Key]:
    """Keys that the layout needs and the table lacks."""
    table = problem.costs.by_key
    return [key for kind in needed_kinds(problem) if (key := layout.row_key(kind)) not in table]
