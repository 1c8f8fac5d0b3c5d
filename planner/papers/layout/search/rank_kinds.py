"""Ranks of one pipeline shape by what they hold: ranks of the same layers differ in their place alone.

For the bound the last of equal ranks counts, for memory the first, so that no array has an axis of ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.papers.layout.search.combinations import Floats, Ints
from planner.papers.layout.search.resident import peaks

KINDS = ("dense", "moe", "embedding", "head")
"""What a stage is made of."""


@dataclass(frozen=True)
class RankKinds:
    """Of some partitions the kinds of ranks; a partition with fewer repeats its first."""

    layers: Floats
    """On one rank, over all its chunks: [partition, rank kind, kind]; kinds of layers are those that were asked for."""
    before: Floats
    """In the first chunks of all ranks before the last of the kind: [partition, rank kind, kind]."""
    forward_hops: Floats
    """Boundaries that one micro-batch crosses forward from the rank: [partition, rank kind]."""
    backward_hops: Floats
    hops_before: Floats
    """Forward and backward from the first chunks of the ranks before: [partition, rank kind]."""
    first: Ints
    """The first rank of the kind: [partition, rank kind]."""
    ranks: tuple[tuple[tuple[int, ...], ...], ...]
    """Of each partition and rank kind the ranks, ascending."""
    stages: Floats
    """Layers of each virtual stage: [partition, virtual stage, kind]."""
    pp: int
    vpp: int

    def resident(self, micro_batches: int) -> Floats:
        """Micro-batches times layers held where activations peak: [partition, rank kind, state, kind].

        Of the states none is less in all kinds than another of the same rank kind; the first fills up the rest.
        """
        if self.vpp == 1:
            # Of equal ranks the first has the most in flight.
            return self.layers[:, :, None] * peaks(self.pp, 1, micro_batches)[self.first, :, 0][..., None]
        partitions = len(self.ranks)
        chunks = self.stages.reshape(partitions, self.vpp, self.pp, -1).transpose(0, 2, 1, 3)
        held = peaks(self.pp, self.vpp, micro_batches) @ chunks
        kinds = [[_largest(held[place, list(ranks)]) for ranks in each] for place, each in enumerate(self.ranks)]
        most = max(len(states) for each in kinds for states in each)
        count = self.layers.shape[1]
        filled = np.empty((partitions, count, most, chunks.shape[-1]))
        for place, each in enumerate(kinds):
            for kind in range(count):
                states = each[kind if kind < len(each) else 0]
                filled[place, kind] = states[0]
                filled[place, kind, : len(states)] = states
        return filled


@lru_cache(maxsize=512)
def rank_kinds(
    layers: tuple[str, ...], partitions: tuple[tuple[int, ...], ...], pp: int, vpp: int, wanted: tuple[int, ...]
) -> RankKinds:
    """Those of partitions of ``layers``, given by kind in order; ``wanted`` are places in KINDS."""
    stages = _stages(layers, np.array(partitions))[..., wanted]
    first_chunks = np.cumsum(stages[:, :pp], axis=1) - stages[:, :pp]
    totals = stages.reshape(len(stages), vpp, pp, -1).sum(axis=1)
    ranks = tuple(_equal(each) for each in totals.astype(np.int64).tolist())
    count = max(len(each) for each in ranks)
    filled = [(*each, *each[:1] * (count - len(each))) for each in ranks]
    last = np.array([[group[-1] for group in each] for each in filled])
    at = np.arange(len(ranks))[:, None]
    end = last == pp - 1
    return RankKinds(
        layers=totals[at, last],
        before=first_chunks[at, last],
        forward_hops=vpp - end.astype(np.float64) if pp > 1 else np.zeros(last.shape),
        backward_hops=vpp - (last == 0).astype(np.float64) if pp > 1 else np.zeros(last.shape),
        hops_before=np.maximum(2.0 * last - 1, 0),
        first=np.array([[group[0] for group in each] for each in filled]),
        ranks=ranks,
        stages=stages,
        pp=pp,
        vpp=vpp,
    )


def _stages(layers: Sequence[str], partitions: Ints) -> Floats:
    """Layers of each virtual stage; the embedding is in the first, the head in the last."""
    ends = np.cumsum(partitions, axis=1)
    sparse = np.concatenate([[0], np.cumsum([kind == "moe" for kind in layers])])
    moe = sparse[ends] - sparse[ends - partitions]
    stages = np.zeros((*partitions.shape, len(KINDS)))
    stages[..., 0], stages[..., 1] = partitions - moe, moe
    stages[:, 0, 2] = stages[:, -1, 3] = 1
    return stages


def _equal(totals: list[list[int]]) -> tuple[tuple[int, ...], ...]:
    """Ranks of the same layers together, in the order of their first. With the ends they never share a group."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for rank, total in enumerate(totals):
        groups.setdefault(tuple(total), []).append(rank)
    return tuple(tuple(group) for group in groups.values())


def _largest(held: Floats) -> Floats:
    """Of states [rank, state, kind] those that no other is at least as large as in all kinds."""
    states = held.reshape(-1, held.shape[-1])
    top = states.max(axis=0, keepdims=True)
    if (states == top).all(axis=1).any():
        return np.asarray(top)
    states = np.unique(states, axis=0)
    beaten = np.all(states[:, None] <= states[None], axis=2)
    # Distinct states are never each at least as large as the other.
    np.fill_diagonal(beaten, False)
    return np.asarray(states[~beaten.any(axis=1)])


def weighed(counts: Floats, values: Floats) -> Floats:
    """Sums over kinds of layers: counts [..., kind] times values [kind, ...]."""
    flat = counts.reshape(-1, len(values)) @ values.reshape(len(values), -1)
    return flat.reshape(*counts.shape[:-1], *values.shape[1:])
