"""The rules of the page's section 3.1, read a second time: all that a layout breaks, not the first alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from planner.papers.layout.checks.decision import Decision
from planner.papers.layout.problem import LayoutProblem

Rule = Callable[[LayoutProblem, Decision], bool]


def _divides(divisor: int, number: int) -> bool:
    return number % divisor == 0


def _has_experts(problem: LayoutProblem) -> bool:
    return problem.model.num_experts > 0


def _heads(problem: LayoutProblem, of: Decision) -> bool:
    t, k = of.tp, problem.model.num_kv_heads
    return _divides(t, problem.model.num_heads) and (_divides(t, k) or _divides(k, t))


def _split_batch(problem: LayoutProblem, of: Decision) -> tuple[int, int]:
    """m, and what of the batch is left over."""
    groups = of.tp * of.cp * of.pp
    return divmod(problem.batch.global_batch_size * groups, of.micro_batch * problem.cluster.num_gpus)


def _interleaves(problem: LayoutProblem, of: Decision) -> bool:
    m, rest = _split_batch(problem, of)
    return of.vpp == 1 or rest > 0 or _divides(of.pp, m)


def _sharded_data(problem: LayoutProblem, of: Decision) -> int:
    """d·c·t, the ranks of one pipeline stage."""
    return problem.cluster.num_gpus // of.pp


KEPT: dict[str, Rule] = {
    "world_size": lambda on, of: _divides(of.tp * of.cp * of.pp, on.cluster.num_gpus),
    "expert_world_size": lambda on, of: not _has_experts(on) or _divides(of.etp * of.ep * of.pp, on.cluster.num_gpus),
    "no_experts": lambda on, of: _has_experts(on) or of.ep == of.etp == 1,
    "expert_split": lambda on, of: not _has_experts(on) or _divides(of.ep, on.model.num_experts),
    "tp_crosses_node": lambda on, of: _divides(of.tp, on.cluster.gpus_per_node),
    "heads": _heads,
    "cp_sequence": lambda on, of: of.cp == 1 or _divides(2 * of.cp, on.batch.sequence_length),
    "sp_without_tp": lambda _on, of: of.tp > 1 or not of.sequence_parallel,
    "sp_sequence": lambda on, of: not of.sequence_parallel or _divides(of.tp * of.cp, on.batch.sequence_length),
    "global_batch": lambda on, of: _split_batch(on, of)[1] == 0,
    "vpp_without_pp": lambda _on, of: of.vpp == 1 or of.pp > 1,
    "interleave_micro_batches": _interleaves,
}
"""What each rule asks, in the order of the page."""

LAUNCHED: dict[str, dict[str, Rule]] = {
    "none": {},
    "megatron": {
        "moe_needs_sp": lambda on, of: not _has_experts(on) or of.tp == 1 or of.sequence_parallel,
        "megatron_zero_stage": lambda _on, of: of.zero_stage < 2 or (of.zero_stage == 3 and of.pp == 1),
    },
    "deepspeed": {
        "deepspeed_zero_pipeline": lambda _on, of: of.zero_stage < 2 or of.pp == 1,
        "deepspeed_interleave": lambda _on, of: of.vpp == 1,
        "deepspeed_cp": lambda _on, of: of.cp == 1,
    },
    "torchtitan": {
        "torchtitan_fsdp": lambda _on, of: of.zero_stage >= 2,
        "torchtitan_ep": lambda on, of: _divides(of.ep, _sharded_data(on, of)),
        "torchtitan_sp": lambda _on, of: of.tp == 1 or of.sequence_parallel,
    },
}
"""What a launcher asks beside them."""


def broken(problem: LayoutProblem, of: Decision) -> Iterator[str]:
    """Every rule that a layout breaks, in the page's order; the partition and the cost table apart."""
    for rules in (KEPT, LAUNCHED[problem.launcher_rules]):
        for name, keeps in rules.items():
            if not keeps(problem, of):
                yield name


@cache
def partitions(layers: int, pp: int, vpp: int, kinds: tuple[str, ...]) -> frozenset[tuple[int, ...]]:
    """All that the asked kinds give (page, section 3.2)."""
    found = set()
    if "even" in kinds and _divides(pp * vpp, layers):
        found.add((layers // (pp * vpp),) * (pp * vpp))
    if "ends" in kinds and vpp == 1:
        found |= {(layers,)} if pp == 1 else set(_two(layers) if pp == 2 else _with_middle(layers, pp))
    return frozenset(found)


def _two(layers: int) -> Iterator[tuple[int, ...]]:
    for first in range(1, layers):
        if abs(layers - 2 * first) <= 4:
            yield (first, layers - first)


def _with_middle(layers: int, pp: int) -> Iterator[tuple[int, ...]]:
    least = -(-layers // pp)
    for inner in range(least, least + 3):
        rest = layers - (pp - 2) * inner
        for first in range(max(1, rest - inner), min(inner, rest - 1) + 1):
            yield (first, *[inner] * (pp - 2), rest - first)
