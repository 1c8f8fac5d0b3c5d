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
_ROUTED = ("nodes", "hidden", "experts", "top_k")
_STATE = ("hidden", "conv_width", "key_heads", "key_dim", "value_heads", "value_dim")
_MAMBA = ("hidden", "state", "conv_width", "heads", "head_dim", "groups", "chunk")

# Heads are those of one rank. The cache may hold tokens before the new ones: `first_position` is where these start,
# counted from 1, because an axis is a positive integer and 0 tokens of prefix is the usual case.
_LATENT = ("heads", "batch")
_PREFIXED = ("heads", "batch", "first_position")

_SPARSE = {
    "dsa": "DeepSeek sparse attention (V3.2, GLM-5) with indexer and projections",
    "msa": "MiniMax sparse attention (M3) with indexer and projections",
    "csa": "compressed sparse attention (DeepSeek V4, one entry for 4 tokens) with projections",
    "hca": "heavily compressed attention (DeepSeek V4, one entry for 128 tokens) with projections",
}
_PARTS = {
    "dsa_kernel": "the attention kernel inside dsa, over the chosen tokens",
    "dsa_logits": "the scores of dsa's indexer",
    "dsa_topk": "the choice of tokens by dsa's indexer",
    "csa_logits": "the scores of csa's indexer",
    "csa_topk": "the choice of entries by csa's indexer",
    "hca_kernel": "the attention kernel inside hca",
}

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("gemm", (), ("n", "k"), "m", "one matrix product (m, k) x (k, n)"),
        Family("encoder_attention", ("head_dim",), ("heads",), "length", "non-causal self-attention, batch x heads"),
        Family("prefill_attention", _ATTENTION_EXACT, ("batch", "heads"), "length", "causal self-attention"),
        Family("decode_attention", _ATTENTION_EXACT, ("batch", "heads"), "kv_length", "one query token per sequence"),
        Family("mla_prefill", (), _LATENT, "length", "the kernel of multi-head latent attention over new tokens"),
        Family("mla_decode", (), _LATENT, "kv_length", "the kernel of latent attention, one query token per sequence"),
        Family("mla_prefill_block", (), _LATENT, "length", "latent attention with the projections around it"),
        Family("mla_decode_block", (), _LATENT, "kv_length", "latent attention with the products around it"),
        Family("mla_bmm", (), ("heads",), "tokens", "the product before or after mla_decode, one per head"),
        *(Family(f"{name}_prefill", (), _PREFIXED, "length", meaning) for name, meaning in _SPARSE.items()),
        *(Family(f"{name}_decode", (), _LATENT, "kv_length", meaning) for name, meaning in _SPARSE.items()),
        *(Family(name, (), _PREFIXED, "length", meaning) for name, meaning in _PARTS.items()),
        Family("gdn", _STATE, ("batch",), "length", "a kernel of gated delta networks (Qwen3.5); `backend` names it"),
        Family("kda", _STATE, ("batch",), "length", "a kernel of Kimi delta attention; `backend` names it"),
        Family("mamba2", _MAMBA, ("batch",), "length", "a kernel of Mamba-2; `backend` names it"),
        Family(
            "mhc", ("hidden", "streams", "sinkhorn_steps", "sites"), (), "tokens", "hyper-connections (DeepSeek V4)"
        ),
        Family("mlp", ("hidden", "ffn"), (), "tokens", "a gated feed-forward block: two products, activation, product"),
        Family("moe_gemm", _MOE_EXACT, (), "tokens", "the expert products of one layer on one rank"),
        Family(
            "moe_fused", _MOE_EXACT, (), "tokens", "dispatch, expert products and combine of one layer in one kernel"
        ),
        Family(
            "moe_prepare", _ROUTED, ("ranks",), "tokens", "exchange of what each rank will send, before moe_dispatch"
        ),
        Family("moe_dispatch", _ROUTED, ("ranks",), "tokens", "each rank's `tokens` to the ranks of their experts"),
        Family("moe_combine", _ROUTED, ("ranks",), "tokens", "the experts' results back to the tokens' ranks, summed"),
        Family("elementwise", (), ("width",), "tokens", "an operation on (tokens, width); `workload` names it"),
        Family("memory_copy", (), (), "message_bytes", "one copy; `workload` says from where to where"),
        *(Family(name, ("nodes",), ("ranks",), "message_bytes", "one collective") for name in COLLECTIVES),
        Family("engine_prefill", (), (), "length", "time to first token of one prompt on an otherwise idle engine"),
        Family("engine_decode", (), ("kv_length",), "kv_tokens", "time between tokens of an engine under load"),
    )
}

DTYPE_BYTES: dict[str, float] = {
    "fp64": 8, "fp32": 4, "tf32": 4, "int32": 4, "int64": 8, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1,
    # fp8_block: one scale for 128 x 128 weights. nvfp4: one fp8 scale for 16 values, mxfp4: for 32.
    "fp8_block": 1, "nvfp4": 0.5625,
    # Weights wW and activations aA of different width.
    "w8a16": 1, "w4a16": 0.5, "w4a8": 0.5, "w4a16_mxfp4": 0.53125, "w4a8_mxfp4_mxfp8": 0.53125,
    # Computed (attention) or multiplied (weights of a block) in the first, cached in the second.
    "bf16_kv_fp8": 1, "fp8_block_kv_bf16": 2, "fp8_block_kv_fp8": 1, "nvfp4_kv_bf16": 2, "nvfp4_kv_fp8": 1,
}  # fmt: skip
"""Bytes of one stored element, scales included: of the weights in products, of the cache in attention."""
