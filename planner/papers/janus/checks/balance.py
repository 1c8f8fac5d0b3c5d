"""AEBS (page, "Model", 10), expert by expert: how many activated experts the busiest instance gets."""

from __future__ import annotations

from collections.abc import Sequence


def busiest(placement: Sequence[Sequence[int]], batch: Sequence[Sequence[int]]) -> int | None:
    """a_max of one batch of tokens, each its experts; None where an expert sits nowhere."""
    hosts: dict[int, list[int]] = {}
    for instance, experts in enumerate(placement):
        for expert in experts:
            hosts.setdefault(expert, []).append(instance)
    active = sorted({expert for token in batch for expert in token})
    if any(expert not in hosts for expert in active):
        return None
    load = [0] * len(placement)
    for expert in active:
        if len(hosts[expert]) == 1:
            load[hosts[expert][0]] += 1
    for expert in active:
        if len(hosts[expert]) > 1:
            load[min(hosts[expert], key=lambda instance: (load[instance], instance))] += 1
    return max(load)
