"""The pairs of a GEMM and a collective that a layer runs, forward and backward, under their launcher's names.

With sequence parallelism a column-parallel GEMM gathers its input and a row-parallel one scatters its sums; the
gradients of their inputs do the opposite. Without it sums are all-reduced, forward behind the row-parallel ones,
backward behind the column-parallel ones. Experts on other ranks get their tokens by an all-to-all, and so do the
gradients of what they returned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from planner.memory.messages import expert_message_bytes, tensor_message_bytes
from planner.papers.compass.costs.tensor_parallel import Cut
from planner.papers.compass.costs.tiles import tile_of
from planner.papers.compass.derived import Derive
from planner.papers.compass.problem import AG_NAMES, RS_NAMES, Op, Rules
from profiles.geometry.feed_forward import Experts

COLLECTIVE = {"ag_gemm": "all_gather", "gemm_rs": "reduce_scatter", "gemm_ar": "all_reduce", "a2a_gemm": "all_to_all"}
"""Families of the profile."""

Cutting = Literal["rows", "shards", "features", "experts"]
"""What a chunk is: rows of all ranks; the shards of one or two ranks (a ring); output features; tokens to experts."""

_TE_SHARED = {"shared_fc1": "fc1", "shared_fc2": "fc2"}
"""Megatron gives the layers of shared experts the names, and so the user buffers, of dense ones."""


@dataclass(frozen=True)
class Pair:
    """One pair: (m, k) by (k, n) on a rank, ``message_bytes`` in the convention of `Profile.collective`.

    ``gemm_name`` is TransformerEngine's, None where it has none. Of experts m counts the group's tokens.
    """

    id: str
    gemm_name: str | None
    op: Op
    cutting: Cutting
    ranks: int
    message_bytes: float
    m: int
    n: int
    k: int
    extent: int
    multiple: int
    count: int

    @property
    def ring(self) -> int | None:
        """The ranks of the ring that moves its shards; None where chunks are of any number."""
        return self.ranks if self.cutting == "shards" else None


def pairs_of(given: Derive, cuts: tuple[Cut, ...], rules: Rules) -> tuple[Pair, ...]:
    """All pairs of tensor parallelism that the rules let overlap, in the order of the layer; forward first."""
    found = _every(given, cuts, rules)
    if rules == "transformer_engine":
        return tuple(pair for pair in found if pair.gemm_name is not None)
    return tuple(_told_apart(found))


def dropped_pairs(given: Derive, cuts: tuple[Cut, ...], rules: Rules) -> tuple[Pair, ...]:
    """Those that TransformerEngine overlaps in bulk with something else, or not at all."""
    if rules == "none":
        return ()
    return tuple(pair for pair in _every(given, cuts, rules) if pair.gemm_name is None)


def _every(given: Derive, cuts: tuple[Cut, ...], rules: Rules) -> list[Pair]:
    found = [_forward(given, cut, rules) for cut in cuts]
    if given.backward:
        found += [_backward(given, cut, rules) for cut in reversed(cuts)]
    return [pair for pair in found if pair is not None]


def expert_pairs(given: Derive, hidden: int, experts: Experts, layers: int) -> tuple[Pair, ...]:
    """Dispatch before the experts, and the gradients' way to them; each rank sends the copies of its own tokens."""
    ranks = given.expert_parallel_size or 1
    own = given.tokens // given.tp_size
    names = ("experts_fprop", "experts_dgrad") if given.backward else ("experts_fprop",)
    return tuple(
        Pair(
            id=name,
            gemm_name=None,
            op="a2a_gemm",
            cutting="experts",
            ranks=ranks,
            message_bytes=expert_message_bytes(hidden, experts.top_k, own, given.gathered_bytes),
            m=own * ranks,
            n=experts.ffn,
            k=hidden,
            extent=own,
            multiple=tile_of(given, own, None),
            count=layers * given.micro_batches,
        )
        for name in names
    )


def _forward(given: Derive, cut: Cut, rules: Rules) -> Pair | None:
    op = _op(given, cut.column_parallel)
    return None if op is None else _pair(given, cut, op, "fprop", (cut.n, cut.k), rules)


def _backward(given: Derive, cut: Cut, rules: Rules) -> Pair | None:
    """The gradient of the input: the same product with n and k exchanged."""
    op = _op(given, not cut.column_parallel)
    return None if op is None else _pair(given, cut, op, "dgrad", (cut.k, cut.n), rules)


def _op(given: Derive, gathers: bool) -> Op | None:
    """Without shards of the sequence there is nothing to gather."""
    if gathers:
        return "ag_gemm" if given.sequence_parallel else None
    return "gemm_rs" if given.sequence_parallel else "gemm_ar"


def _pair(given: Derive, cut: Cut, op: Op, way: str, shape: tuple[int, int], rules: Rules) -> Pair:
    n, k = shape
    number_bytes = given.gathered_bytes if op == "ag_gemm" else given.reduced_bytes
    cutting, extent, multiple = _cutting(given, op, n, rules)
    name = f"{cut.name if rules == 'none' else _TE_SHARED.get(cut.name, cut.name)}_{way}"
    return Pair(
        id=name,
        gemm_name=name if name in AG_NAMES + RS_NAMES else None,
        op=op,
        cutting=cutting,
        ranks=given.tp_size,
        message_bytes=tensor_message_bytes(cut.width, given.tokens, number_bytes),
        m=given.tokens,
        n=n,
        k=k,
        extent=extent,
        multiple=multiple,
        count=cut.layers * given.micro_batches,
    )


def _cutting(given: Derive, op: Op, n: int, rules: Rules) -> tuple[Cutting, int, int]:
    """What is cut, E and e. Rows of a chunk that is gathered or scattered must divide among ranks."""
    if rules == "transformer_engine":
        if op == "ag_gemm":
            return "shards", given.tokens, tile_of(given, given.tokens, given.tp_size)
        return "features", n, tile_of(given, n, None)
    among = 1 if op == "gemm_ar" else given.tp_size
    return "rows", given.tokens, tile_of(given, given.tokens, None, among)


def _told_apart(pairs: list[Pair]) -> list[Pair]:
    """Pairs of one name and several sizes (layers of several widths) by their sizes."""
    names = [pair.id for pair in pairs]
    return [pair if names.count(pair.id) == 1 else replace(pair, id=f"{pair.id}_{pair.n}x{pair.k}") for pair in pairs]
