"""What the ranks of one shared sequence send each other: heads for tokens, keys and values, blocks round a ring.

Shards are near-equal; collectives carry them padded to the longest, and what is returned has its own length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.program import Split
from planner.runner.clock import Clock
from profiles.measure.group import Group
from profiles.measure.kernels import Array


def empty(like: Array, shape: Sequence[int]) -> Array:
    """An array of the same library and dtype."""
    if hasattr(like, "new_empty"):
        return like.new_empty(tuple(shape))
    import numpy as np

    return np.empty(tuple(shape), like.dtype)


def joined(parts: Sequence[Array]) -> Array:
    """Arrays one after the other along axis 0; a single one is itself."""
    if len(parts) == 1:
        return parts[0]
    out = empty(parts[0], (sum(part.shape[0] for part in parts), *parts[0].shape[1:]))
    start = 0
    for part in parts:
        out[start : start + part.shape[0]] = part
        start += part.shape[0]
    return out


@dataclass(frozen=True)
class Place:
    """One rank's place in a piece, and its groups along the axes (None along one that is not split)."""

    split: Split
    position: int
    along_q: Group | None
    along_h: Group | None
    along_k: Group | None


def find_place(split: Split, position: int, group: Group) -> Place:
    """The groups of shard ``position``; ``group`` is that of the piece's ranks, all of which must call this."""
    q, h, k = split.place(position)

    def along(members: list[int]) -> Group | None:
        return group.subgroup(members) if len(members) > 1 else None

    return Place(
        split,
        position,
        along([split.position(i, h, k) for i in range(split.q)]),
        along([split.position(q, i, k) for i in range(split.h)]),
        along([split.position(q, h, i) for i in range(split.k)]),
    )


class Exchange:
    """The messages of one sequence of ``tokens`` tokens at one place; arrays are (rows, heads, head_dim)."""

    def __init__(self, place: Place, tokens: int, clock: Clock) -> None:
        self.place, self._clock = place, clock
        split = self._split = place.split
        q, _, self.block = split.place(place.position)
        self.own = split.rows(tokens, place.position)
        self._padded = split.rows(tokens, 0)
        self._h_rows = [split.rows(tokens, split.position(q, i, self.block)) for i in range(split.h)]
        grouped = [
            [sum(split.rows(tokens, split.position(i, h, j)) for h in range(split.h)) for i in range(split.q)]
            for j in range(split.k)
        ]
        self._q_rows = grouped[self.block]
        self.block_rows = [sum(rows) for rows in grouped]

    def own_heads(self, x: Array) -> Array:
        """This rank's heads of rows that every rank has."""
        heads = x.shape[1] // self._split.h
        first = self._split.place(self.place.position)[1] * heads
        return x[:, first : first + heads]

    def to_heads(self, given: Sequence[Array]) -> list[Array]:
        """From this rank's tokens of all heads to all tokens of its h ranks of its own heads; one all-to-all."""
        if self.place.along_h is None:
            return list(given)
        h, heads, depth = self._split.h, given[0].shape[1] // self._split.h, given[0].shape[2]
        packed = empty(given[0], (h, len(given), self._padded, heads, depth))
        for number, x in enumerate(given):
            for i in range(h):
                packed[i, number, : self.own] = x[:, i * heads : (i + 1) * heads]
        with self._clock("collectives"):
            received = self.place.along_h.all_to_all(packed)
        return [
            joined([received[i, number, :rows] for i, rows in enumerate(self._h_rows)]) for number in range(len(given))
        ]

    def to_tokens(self, given: Sequence[Array]) -> list[Array]:
        """The way back of ``to_heads``."""
        if self.place.along_h is None:
            return list(given)
        h, heads, depth = self._split.h, given[0].shape[1], given[0].shape[2]
        packed = empty(given[0], (h, len(given), self._padded, heads, depth))
        for number, x in enumerate(given):
            start = 0
            for i, rows in enumerate(self._h_rows):
                packed[i, number, :rows] = x[start : start + rows]
                start += rows
        with self._clock("collectives"):
            received = self.place.along_h.all_to_all(packed)
        found = []
        for number in range(len(given)):
            out = empty(given[0], (self.own, h * heads, depth))
            for i in range(h):
                out[:, i * heads : (i + 1) * heads] = received[i, number, : self.own]
            found.append(out)
        return found

    def all_heads(self, x: Array) -> Array:
        """All heads of rows of which each of the h ranks has its own."""
        if self.place.along_h is None:
            return x
        rows, heads, depth = x.shape
        packed = empty(x, (1, rows, heads, depth))
        packed[0] = x
        with self._clock("collectives"):
            received = self.place.along_h.all_gather(packed)
        out = empty(x, (rows, self._split.h * heads, depth))
        for i in range(self._split.h):
            out[:, i * heads : (i + 1) * heads] = received[i]
        return out

    def gathered(self, keys: Array, values: Array) -> tuple[Array, Array]:
        """K and V of the whole block; one all-gather over the q ranks."""
        if self.place.along_q is None:
            return keys, values
        packed = empty(keys, (1, 2, max(self._q_rows), *keys.shape[1:]))
        packed[0, 0, : keys.shape[0]], packed[0, 1, : keys.shape[0]] = keys, values
        with self._clock("collectives"):
            received = self.place.along_q.all_gather(packed)
        parts = [[received[i, n, :rows] for i, rows in enumerate(self._q_rows)] for n in (0, 1)]
        return joined(parts[0]), joined(parts[1])

    def scattered(self, keys: Array, values: Array) -> tuple[Array, Array]:
        """This rank's part of the summed gradients of K and V; one reduce-scatter over the q ranks."""
        if self.place.along_q is None:
            return keys, values
        packed = empty(keys, (self._split.q, 2, max(self._q_rows), *keys.shape[1:]))
        start = 0
        for i, rows in enumerate(self._q_rows):
            for number, x in enumerate((keys, values)):
                packed[i, number, :rows], packed[i, number, rows:] = x[start : start + rows], 0
            start += rows
        with self._clock("collectives"):
            received = self.place.along_q.reduce_scatter(packed)
        own = self._q_rows[self._split.place(self.place.position)[0]]
        return received[0, 0, :own], received[0, 1, :own]

    def packed_block(self, given: Sequence[Array]) -> Array:
        """Arrays of one block, padded to the longest of the ring: what a hop carries."""
        packed = empty(given[0], (len(given), max(self.block_rows), *given[0].shape[1:]))
        for number, x in enumerate(given):
            packed[number, : x.shape[0]] = x
        return packed

    def hop(self, packed: Array) -> Array:
        """Pass a block to the next of the k ranks and take the one of the rank before."""
        ring = self.place.along_k
        if ring is None:
            return packed
        with self._clock("collectives"):
            return ring.send_recv(packed, (ring.rank + 1) % ring.ranks, (ring.rank - 1) % ring.ranks)
