"""The search lists of a derived problem, where they are left out: what the model, the cluster and the launcher admit.

Powers of two but for pp, any divisor of the GPUs into which the layers can be cut, and vpp, whose multiples of a
pipeline are any. tp and etp stay in a node; a context rank keeps at least so many tokens; pipelines end at so many
stages. Bounds are those of the page's own searches (section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from planner.errors import BadInputError
from planner.papers.layout.costs.setting import Setting
from planner.papers.layout.derived import DerivedSearch
from planner.papers.layout.partitions import partitions
from planner.papers.layout.problem import PARTITIONS, RECOMPUTE, Batch, PartitionKind, Rules, Search
from planner.validation import validate

MAX_TP = 8
MAX_CP = 16
MAX_PP = 64
MOST_PP = 12
"""Of a number of GPUs with more divisors than that: powers of two, then the least others."""
MAX_VPP = 10
MAX_EP = 128
MAX_MICRO_BATCH = 8
LEAST_TOKENS = 2048
"""Of a context rank: shorter sequences gain nothing by it."""

ZERO_STAGES: dict[Rules, tuple[int, ...]] = {
    "none": (0, 1, 2, 3),
    "megatron": (0, 1, 3),
    "deepspeed": (0, 1, 2, 3),
    "torchtitan": (2, 3),
}


def search_of(given: DerivedSearch, setting: Setting, batch: Batch, rules: Rules) -> Search:
    """The lists as stated, the others filled in. Raises BadInputError: lists that do not ascend, or are too long."""
    model, experts, N = setting.model, setting.experts, setting.cluster.num_ranks
    node, deepspeed = setting.device.node, rules == "deepspeed"
    s, B, L = batch.sequence_length, batch.global_batch_size, model.num_layers
    kinds = given.partitions or PARTITIONS
    pp = given.pp or _stages(N, L, kinds, (1,) if deepspeed else given.vpp or range(1, MAX_VPP + 1))
    heads, kv_heads = model.num_heads, model.num_kv_heads
    tp = _powers(MAX_TP, lambda t: node % t == 0 and heads % t == 0 and (kv_heads % t == 0 or t % kv_heads == 0))
    lists = dict[str, object](
        tp=given.tp or tp,
        cp=given.cp or ((1,) if deepspeed else _powers(MAX_CP, lambda c: s % (2 * c) == 0 and s >= LEAST_TOKENS * c)),
        pp=pp,
        vpp=given.vpp or ((1,) if deepspeed else _chunks(L, pp)),
        ep=given.ep or (_powers(MAX_EP, lambda e: experts.count % e == 0 and N % e == 0) if experts else (1,)),
        etp=given.etp or (_powers(MAX_TP, lambda u: node % u == 0 and experts.ffn % u == 0) if experts else (1,)),
        zero_stage=given.zero_stage or ZERO_STAGES[rules],
        recompute=given.recompute or (RECOMPUTE if setting.selective else ("none", "full")),
        micro_batch=given.micro_batch or _powers(MAX_MICRO_BATCH, lambda b: B % b == 0),
        sequence_parallel=given.sequence_parallel or (False, True),
        partitions=kinds,
        keep=given.keep,
    )
    try:
        return validate(Search, lists)
    except BadInputError as error:
        raise BadInputError(error.message, code=error.code, where=f"search.{error.where}") from None


def _powers(most: int, admitted: Callable[[int], bool]) -> tuple[int, ...]:
    """Powers of two; 1 is always one of them."""
    found = (1 << exponent for exponent in range(most.bit_length()) if 1 << exponent <= most)
    return tuple(size for size in found if size == 1 or admitted(size))


def _stages(gpus: int, layers: int, kinds: tuple[PartitionKind, ...], chunks: Iterable[int]) -> tuple[int, ...]:
    """Pipelines that divide the GPUs and into which the layers can be cut, in so many chunks a rank."""

    def admitted(p: int) -> bool:
        # Of one stage there are no more chunks.
        return any(partitions(layers, p, v, kinds) for v in (chunks if p > 1 else (1,)))

    sizes = [p for p in range(1, min(MAX_PP, layers) + 1) if p == 1 or (gpus % p == 0 and admitted(p))]
    return tuple(sorted(sorted(sizes, key=lambda p: (p.bit_count() > 1, p))[:MOST_PP]))


def _chunks(layers: int, pp: tuple[int, ...]) -> tuple[int, ...]:
    """Chunks a rank that cut the layers evenly over some pipeline."""
    return tuple(v for v in range(1, MAX_VPP + 1) if v == 1 or any(p > 1 and layers % (p * v) == 0 for p in pp))
