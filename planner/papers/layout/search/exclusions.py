"""Rules 3.1 over arrays: the first one that each combination of one pipeline shape breaks."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.search.combinations import Bools, Inner, Ints
from planner.papers.layout.solution import RULES

KEPT = len(RULES)
"""Of a combination that breaks no rule so far."""

Broken = NDArray[np.uint8]
"""Places in RULES."""


def first_broken(problem: LayoutProblem, inner: Inner, pp: int, vpp: int, but: Collection[str] = ()) -> Broken:
    """The place in RULES of the first rule broken, ``KEPT`` where none up to the launcher's is: [zero stage, inner].

    Rules named in ``but`` are not asked.
    """
    stages = np.array(problem.search.zero_stage)[:, None]
    broken = np.full((len(stages), inner.size), KEPT, dtype=np.uint8)
    for rule, faulty in _tests(problem, inner, stages, pp, vpp):
        if rule in but or not faulty.any():
            continue
        broken[np.broadcast_to(faulty, broken.shape) & (broken == KEPT)] = RULES.index(rule)
        if not (broken == KEPT).any():
            break
    return broken


def data_ranks(problem: LayoutProblem, inner: Inner, pp: int) -> Ints:
    """d of each combination; 1 where its degrees do not divide the GPUs."""
    used = inner.tp * inner.cp * pp
    return np.maximum(np.where(problem.cluster.num_gpus % used == 0, problem.cluster.num_gpus // used, 1), 1)


def micro_batches(problem: LayoutProblem, inner: Inner, dp: Ints) -> Ints:
    """m of each combination, rounded down where it is no whole number."""
    return np.asarray(problem.batch.global_batch_size // (inner.micro_batch * dp))


def _tests(problem: LayoutProblem, inner: Inner, stages: Ints, pp: int, vpp: int) -> Iterator[tuple[str, Bools]]:
    """Rules in order with where they are broken; what a rule rests on holds wherever those before it are kept."""
    gpus, node = problem.cluster.num_gpus, problem.cluster.gpus_per_node
    heads, kv_heads, experts = problem.model.num_heads, problem.model.num_kv_heads, problem.model.num_experts
    length, batch = problem.batch.sequence_length, problem.batch.global_batch_size
    t, c, e, u, b, sp = inner.tp, inner.cp, inner.ep, inner.etp, inner.micro_batch, inner.sequence_parallel
    yield "world_size", gpus % (t * c * pp) != 0
    if experts:
        yield "expert_world_size", gpus % (u * e * pp) != 0
        yield "expert_split", experts % e != 0
    else:
        yield "no_experts", (e > 1) | (u > 1)
    yield "tp_crosses_node", node % t != 0
    yield "heads", (heads % t != 0) | ((kv_heads % t != 0) & (t % kv_heads != 0))
    yield "cp_sequence", (c > 1) & (length % (2 * c) != 0)
    yield "sp_without_tp", sp & (t == 1)
    yield "sp_sequence", sp & (length // c % t != 0)
    d = data_ranks(problem, inner, pp)
    yield "global_batch", batch % (b * d) != 0
    if vpp > 1:
        yield "vpp_without_pp", np.full(inner.size, pp == 1)
        yield "interleave_micro_batches", micro_batches(problem, inner, d) % pp != 0
    yield from _launcher_tests(problem, inner, stages, pp, vpp)


def _launcher_tests(
    problem: LayoutProblem, inner: Inner, stages: Ints, pp: int, vpp: int
) -> Iterator[tuple[str, Bools]]:
    everywhere = np.ones(inner.size, dtype=bool)
    unsplit = (inner.tp > 1) & ~inner.sequence_parallel
    if problem.launcher_rules == "megatron":
        if problem.model.num_experts:
            yield "moe_needs_sp", unsplit
        yield "megatron_zero_stage", ~((stages <= 1) | ((stages == 3) & (pp == 1)))
    elif problem.launcher_rules == "deepspeed":
        yield "deepspeed_zero_pipeline", (stages >= 2) & (pp > 1)
        yield "deepspeed_interleave", everywhere & (vpp > 1)
        yield "deepspeed_cp", inner.cp > 1
    elif problem.launcher_rules == "torchtitan":
        yield "torchtitan_fsdp", stages < 2
        ranks = data_ranks(problem, inner, pp) * inner.cp * inner.tp
        yield "torchtitan_ep", ranks % inner.ep != 0
        yield "torchtitan_sp", unsplit
