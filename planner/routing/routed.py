"""The routing of one layer in memory: token by token, as loads, or uniform in expectation."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Tokens:
    """``expert_ids`` int32 [T, K], ascending and distinct in a row; ``source`` int32 [T], the token's rank."""

    expert_ids: NDArray[np.int32]
    source: NDArray[np.int32]

    @property
    def count(self) -> int:
        """T."""
        return len(self.source)


@dataclass(frozen=True, eq=False)
class Loads:
    """``load`` float64 [E]: assignments of each expert over all ranks; ``tokens`` T = their sum / K."""

    load: NDArray[np.float64]
    tokens: float


@dataclass(frozen=True)
class Uniform:
    """Each of a rank's tokens picks K of E experts at random."""

    tokens_per_rank: int


@dataclass(frozen=True, eq=False)
class TokenArrays:
    """The tokens of a layer as a file has them: ids as in ``Tokens``, and sources where it names them."""

    expert_ids: NDArray[np.int32]
    source: NDArray[np.int32] | None

    def tokens(self, ranks: int) -> Tokens:
        """The tokens; without sources they come in contiguous blocks of near-equal size, one a rank."""
        if self.source is not None:
            return Tokens(self.expert_ids, self.source)
        count = len(self.expert_ids)
        return Tokens(self.expert_ids, (np.arange(count) * ranks // max(count, 1)).astype(np.int32))


TokenFiles = dict[tuple[str, int | None], TokenArrays]
"""Tokens by the sha256 of their file and the layer named in it."""


@dataclass(eq=False)
class Kept:
    """Arrays held in memory beside a problem: of the files that it names, and tokens made once from what it says.

    The document says by digest, recipe or in full what they are, so they never tell two problems apart. ``worked_out``
    is what a paper made of them and may be asked for again.
    """

    files: TokenFiles = field(default_factory=dict)
    made: dict[Hashable, Tokens] = field(default_factory=dict)
    worked_out: dict[Hashable, object] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept)

    __hash__ = None  # type: ignore[assignment]


Routed = Tokens | Loads | Uniform


def routing_digest(routed: Routed) -> str | None:
    """sha256 of the tokens (sources, then ids row by row, 32-bit little-endian); None where there are no tokens."""
    if not isinstance(routed, Tokens):
        return None
    hasher = hashlib.sha256(np.ascontiguousarray(routed.source, "<i4").data)
    hasher.update(np.ascontiguousarray(routed.expert_ids, "<i4").data)
    return hasher.hexdigest()
