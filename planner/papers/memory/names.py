"""Placements in the words that people know them by."""

from __future__ import annotations

from planner.papers.memory.explained import Placement

_ON_HOST = "offloaded"


def named(placement: Placement, num_dims: int) -> str:
    """The stage's name, and what is recomputed or lies on the host."""
    away = [state for state in ("parameters", "gradients", "optimizer") if getattr(placement, state) == _ON_HOST]
    parts = [_stage(placement, num_dims)]
    if away:
        parts.append(f"{listed(away)} on the host")
    if placement.activations != "kept":
        parts.append(
            {"materialised": "activations recomputed", _ON_HOST: "activations on the host"}[placement.activations]
        )
    return ", ".join(parts)


def _stage(placement: Placement, n: int) -> str:
    prefixes = (placement.i_p, placement.i_g, placement.i_o)
    stages = {(0, 0, 0): "data parallel", (0, 0, n): "ZeRO-1", (0, n, n): "ZeRO-2"}
    if prefixes in stages:
        return stages[prefixes]
    keeps = placement.parameters == "gather_keep"
    i_p, i_g, i_o = prefixes
    if prefixes == (n, n, n):
        return "FSDP shard-grad-op" if keeps else "ZeRO-3"
    if 0 < i_p == i_g and i_o in (i_p, n):
        return f"HSDP{' shard-grad-op' if keeps else ''}{' with fully sharded optimizer' if i_o > i_p else ''}"
    over = {"parameters": i_p, "gradients": i_g, "optimizer": i_o}
    sharded = listed([f"{state} over {prefix}" for state, prefix in over.items() if prefix])
    return f"{sharded} of {n} dims"


def listed(words: list[str]) -> str:
    """Words as a sentence lists them."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
