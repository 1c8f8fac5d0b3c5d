"""Candidate layouts of a replica: degrees that divide the model, on at most two nodes (page, section 6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.papers.bidirl.derived import Rollout, Train
from profiles.geometry.attention import GroupedAttention
from profiles.geometry.feed_forward import Experts
from profiles.geometry.model import ModelGeometry

NODES = 2
"""A replica is on at most so many where its degrees are not stated."""


@dataclass(frozen=True)
class Candidate:
    """Degrees of a replica; ``shard`` is 0 but of FSDP, whose context ranks are among those of the shard."""

    tp: int = 1
    pp: int = 1
    cp: int = 1
    shard: int = 0

    @property
    def gpus(self) -> int:
        """Of one replica."""
        return self.shard or self.tp * self.pp * self.cp

    @property
    def id(self) -> str:
        """Degrees above 1 by name, and tp or fsdp always."""
        first = f"fsdp{self.shard}" if self.shard else f"tp{self.tp}"
        named = ((name, getattr(self, name)) for name in ("pp", "cp"))
        return "-".join([first, *(f"{name}{ranks}" for name, ranks in named if ranks > 1)])


def rollout_candidates(given: Rollout, model: ModelGeometry, node: int) -> list[Candidate]:
    """Of replicas that generate, fewest GPUs first."""
    found = [Candidate(tp=tp, pp=pp) for tp, pp in _inner(given.tp, given.pp, model, node)]
    return _few(found, node, stated=given.tp is not None and given.pp is not None)


def train_candidates(given: Train, model: ModelGeometry, node: int) -> list[Candidate]:
    """Of replicas that train, fewest GPUs first."""
    if given.backend == "fsdp":
        shards = given.shard or _powers(NODES * node)
        found = [Candidate(shard=shard, cp=cp) for shard in shards for cp in given.cp if shard % cp == 0]
        return _few(found, node, stated=given.shard is not None)
    found = [Candidate(tp=tp, pp=pp, cp=cp) for tp, pp in _inner(given.tp, given.pp, model, node) for cp in given.cp]
    return _few(found, node, stated=given.tp is not None and given.pp is not None)


def divides(model: ModelGeometry, tp: int, pp: int) -> bool:
    """Whether heads, the experts' width and layers can be cut so."""
    for kind, _ in model.kinds():
        attention, network = kind.attention, kind.feed_forward
        kv_heads = attention.kv_heads if isinstance(attention, GroupedAttention) else attention.heads
        if attention.heads % tp or (kv_heads % tp and tp % kv_heads):
            return False
        if isinstance(network, Experts) and network.ffn % tp:
            return False
    return model.num_layers % pp == 0


def _inner(
    tp: tuple[int, ...] | None, pp: tuple[int, ...] | None, model: ModelGeometry, node: int
) -> Iterator[tuple[int, int]]:
    for t in tp or _powers(NODES * node):
        for p in pp or _powers(NODES * node):
            if divides(model, t, p):
                yield t, p


def _few(found: list[Candidate], node: int, *, stated: bool) -> list[Candidate]:
    kept = found if stated else [each for each in found if each.gpus <= NODES * node]
    return sorted(dict.fromkeys(kept), key=lambda each: (each.gpus, each.id))


def _powers(most: int) -> tuple[int, ...]:
    return tuple(1 << exponent for exponent in range(most.bit_length()))
