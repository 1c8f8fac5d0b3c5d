"""What is wrong with the routing or the table of a layer, found with whole-array operations; indices are named."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.routing.document import (
    MAX_ASSIGNMENTS,
    MAX_KEYS,
    MAX_TOKENS,
    LoadsRouting,
    MaskRouting,
    Routing,
    ZipfRouting,
)

Integers = npt.NDArray[np.integer]

SUM_RTOL = 1e-6
"""How far loads may be from tokens x K (page, "Routing")."""


@dataclass(frozen=True)
class Wrong:
    """A fault: ``where`` is a path below the object that was looked at."""

    message: str
    code: str
    where: str


def wrong_routing(routing: Routing, ranks: int, experts: int, top_k: int) -> Wrong | None:
    """The fault of a layer's routing as far as its document tells; files are looked at when they are read."""
    if isinstance(routing, MaskRouting):
        return _wrong_mask(routing, ranks, experts, top_k)
    if isinstance(routing, LoadsRouting):
        return (
            None if routing.expert_load is None else _wrong_loads(routing, routing.expert_load, ranks, experts, top_k)
        )
    if isinstance(routing, ZipfRouting):
        tokens = routing.tokens_per_rank * ranks
        if tokens > MAX_TOKENS or tokens * experts > MAX_KEYS:
            message = (
                f"expected at most {MAX_TOKENS:,} tokens and {MAX_KEYS:,} tokens x experts to draw from, "
                f"got {tokens:,} tokens"
            )
            return Wrong(message, "too_large", "tokens_per_rank")
    return None


def _wrong_mask(routing: MaskRouting, ranks: int, experts: int, top_k: int) -> Wrong | None:
    for token, chosen in enumerate(routing.expert_ids):
        if len(chosen) != top_k:
            message = f"expected top_k = {top_k} experts for token {token}, got {len(chosen)}"
            return Wrong(message, "top_k_mismatch", f"expert_ids.{token}")
    if len(routing.expert_ids) * top_k > MAX_ASSIGNMENTS:
        return Wrong(f"expected at most {MAX_ASSIGNMENTS:,} ids", "too_large", "expert_ids")
    ids = np.array(routing.expert_ids, np.int64).reshape(-1, top_k)
    return wrong_tokens(ids, np.array(routing.source_rank, np.int64), ranks, experts)


def wrong_tokens(ids: Integers, source: Integers | None, ranks: int, experts: int) -> Wrong | None:
    """The first fault of tokens: ids [T, K] in any order, sources [T] or None."""
    if source is not None:
        outside = (source < 0) | (source >= ranks)
        if outside.any():
            token = int(outside.argmax())
            message = f"expected a source rank of 0 to {ranks - 1}, got {source[token]} for token {token}"
            return Wrong(message, "source_rank_out_of_range", f"source_rank.{token}")
    unknown = np.argwhere((ids < 0) | (ids >= experts))
    if len(unknown):
        token, place = (int(index) for index in unknown[0])
        message = f"expected an expert of 0 to {experts - 1}, got {ids[token, place]} for token {token}"
        return Wrong(message, "expert_out_of_range", f"expert_ids.{token}.{place}")
    ordered = np.sort(ids, axis=1)
    again = ordered[:, 1:] == ordered[:, :-1]
    if again.any():
        token = int(again.any(axis=1).argmax())
        expert = ordered[token, int(again[token].argmax())]
        message = f"token {token} selects expert {expert} twice; the experts of a token are distinct"
        return Wrong(message, "duplicate_expert_in_token", f"expert_ids.{token}")
    return None


def _wrong_loads(routing: LoadsRouting, load: tuple[float, ...], ranks: int, experts: int, top_k: int) -> Wrong | None:
    if len(load) != experts:
        message = f"expected one load for each of the {experts} experts, got {len(load)}"
        return Wrong(message, "out_of_range", "expert_load")
    if routing.tokens_per_rank is None:
        return None
    total, expected = float(np.sum(load)), routing.tokens_per_rank * ranks * top_k
    if abs(total - expected) > SUM_RTOL * max(total, expected):
        over_ranks = f"{ranks} ranks x " if ranks > 1 else ""
        message = (
            f"expected loads that sum to tokens_per_rank x {over_ranks}top_k {top_k} = {expected:.10g}, "
            f"got {total:.10g}; without tokens_per_rank the loads tell it"
        )
        return Wrong(message, "load_sum_mismatch", "expert_load")
    return None


def wrong_table(table: tuple[int, ...], ranks: int, experts: int, slots: int, copies_apart: bool) -> Wrong | None:
    """The fault of a physical_to_logical table of so many slots; ``copies_apart`` forbids two copies on a rank."""
    if len(table) != slots:
        return Wrong(f"expected one expert for each of the {slots} slots, got {len(table)}", "slot_count", "")
    experts_of = np.array(table, np.int64)
    outside = (experts_of < 0) | (experts_of >= experts)
    if outside.any():
        slot = int(outside.argmax())
        message = f"expected an expert of 0 to {experts - 1}, got {table[slot]} in slot {slot}"
        return Wrong(message, "expert_out_of_range", f"{slot}")
    absent = np.bincount(experts_of, minlength=experts) == 0
    if absent.any():
        return Wrong(f"expert {int(absent.argmax())} is in no slot", "expert_missing", "")
    if not copies_apart:
        return None
    rows = np.sort(experts_of.reshape(ranks, -1), axis=1)
    again = rows[:, 1:] == rows[:, :-1]
    if again.any():
        rank = int(again.any(axis=1).argmax())
        expert = rows[rank, int(again[rank].argmax())]
        message = (
            f"rank {rank} holds expert {expert} twice, a wasted slot; "
            "with forbid_same_rank_replicas false such a table is accepted"
        )
        return Wrong(message, "duplicate_on_rank", "")
    return None
