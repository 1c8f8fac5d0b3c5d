"""What is run at a place on the CPU, from the kernels of one library and, for collectives, a group."""

from __future__ import annotations

from collections.abc import Callable

from profiles.families import COLLECTIVES
from profiles.measure.group import Group
from profiles.measure.kernels import Array, Kernels
from profiles.measure.place import Place, element_bytes

Run = Callable[[], object]


def prepare(place: Place, kernels: Kernels, group: Group) -> Run:
    """A function that runs the operation of `place` once, its operands made beforehand.

    A collective is run by the members of `group`; anything else by each rank alone.
    """
    family, dtype, axes = place.curve.family, place.curve.dtype, place.axes
    if family in COLLECTIVES:
        return _collective(place, kernels, group)
    if family == "memory_copy":
        source, target = (kernels.array((axes["message_bytes"] // 4,), "fp32", seed) for seed in (0, 1))
        return lambda: kernels.copy(target, source)
    if family == "gemm":
        a = kernels.array((axes["m"], axes["k"]), dtype, 0)
        b = kernels.array((axes["k"], axes["n"]), dtype, 1)
        return lambda: kernels.matmul(a, b)
    if family == "moe_gemm":
        return _experts(axes, dtype, kernels)
    return _attention(family, axes, dtype, kernels)


def routed_rows(axes: dict[str, int]) -> list[int]:
    """Rows of each expert of one rank when tokens are spread evenly, as evenly as whole rows allow."""
    local = axes["experts"] // axes["expert_ranks"]
    routed = -(-axes["tokens"] * axes["top_k"] // axes["expert_ranks"])
    return [routed // local + (expert < routed % local) for expert in range(local)]


def _experts(axes: dict[str, int], dtype: str, kernels: Kernels) -> Run:
    """Gate and up as one product, then down, for every expert that has rows."""
    hidden, ffn = axes["hidden"], axes["ffn"] // axes["tensor_ranks"]
    products: list[tuple[Array, Array]] = []
    for expert, rows in enumerate(routed_rows(axes)):
        if rows:
            products.append(
                (kernels.array((rows, hidden), dtype, 0), kernels.array((hidden, 2 * ffn), dtype, 2 * expert + 1))
            )
            products.append((kernels.array((rows, ffn), dtype, 0), kernels.array((ffn, hidden), dtype, 2 * expert + 2)))

    def run() -> None:
        for a, b in products:
            kernels.matmul(a, b)

    return run


def _attention(family: str, axes: dict[str, int], dtype: str, kernels: Kernels) -> Run:
    depth, heads = axes["head_dim"], axes.get("batch", 1) * axes["heads"]
    if family == "decode_attention":
        # The queries that share keys are the rows of one small product.
        queries = axes["queries_per_kv_head"]
        q = kernels.array((heads // queries, queries, depth), dtype, 0)
        k, v = (kernels.array((heads // queries, axes["kv_length"], depth), dtype, seed) for seed in (1, 2))
        return lambda: kernels.attention(q, k, v)
    causal = family == "prefill_attention"
    kv_heads = heads // axes["queries_per_kv_head"] if causal else heads
    q = kernels.array((heads, axes["length"], depth), dtype, 0)
    k, v = (kernels.array((kv_heads, axes["length"], depth), dtype, seed) for seed in (1, 2))
    return lambda: kernels.attention(q, k, v, causal=causal)


def _collective(place: Place, kernels: Kernels, group: Group) -> Run:
    family, dtype, message = place.curve.family, place.curve.dtype, place.axes["message_bytes"]
    elements = message // element_bytes(dtype)
    if family == "all_gather":
        x = kernels.array((elements // group.ranks,), dtype, group.rank)
        return lambda: group.all_gather(x)
    x = kernels.array((elements,), dtype, group.rank)
    if family == "send_recv":
        following, before = (group.rank + 1) % group.ranks, (group.rank - 1) % group.ranks
        return lambda: group.send_recv(x, following, before)
    run: Run = {
        "all_reduce": lambda: group.all_reduce(x),
        "reduce_scatter": lambda: group.reduce_scatter(x),
        "all_to_all": lambda: group.all_to_all(x),
    }[family]
    return run
