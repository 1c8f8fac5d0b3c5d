"""The kinds of cost table: which axes each has, and how a lookup may move along them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """One kind of table.

    `exact` axes must be met exactly (kernels differ in kind between their values), `outer` axes are interpolated
    between measured neighbours, and `along` is the axis of the measured curves: the amount of work.
    All axes are positive integers; times are seconds.
    """

    name: str
    exact: tuple[str, ...]
    outer: tuple[str, ...]
    along: str
    meaning: str

    @property
    def axes(self) -> tuple[str, ...]:
        """All axis names, in the order of a table's columns."""
        return (*self.exact, *self.outer, self.along)


COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv", "broadcast")

_ATTENTION_EXACT = ("head_dim", "queries_per_kv_head")
_MOE_EXACT = ("hidden", "ffn", "experts", "top_k", "tensor_ranks", "expert_ranks")

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("gemm", (), ("n", "k"), "m", "one matrix product (m, k) x (k, n)"),
        Family("encoder_attention", ("head_dim",), ("heads",), "length", "non-causal self-attention, batch x heads"),
        Family("prefill_attention", _ATTENTION_EXACT, ("batch", "heads"), "length", "causal self-attention"),
        Family("decode_attention", _ATTENTION_EXACT, ("batch", "heads"), "kv_length", "one query token per sequence"),
        Family("moe_gemm", _MOE_EXACT, (), "tokens", "the expert products of one layer on one rank"),
        Family("memory_copy", (), (), "message_bytes", "one copy; `workload` says from where to where"),
        *(Family(name, ("nodes",), ("ranks",), "message_bytes", "one collective") for name in COLLECTIVES),
    )
}

DTYPE_BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "int32": 4, "int64": 8, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
