"""The weights of a layer, matrix by matrix: shapes, how many a token passes, how tensor parallelism cuts them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from profiles.errors import ProfileError

Part = Literal[
    "embeddings", "attention", "indexer", "dense_ffn", "experts", "shared_experts", "router", "norms", "head"
]
PARTS: tuple[Part, ...] = (
    "embeddings",
    "attention",
    "indexer",
    "dense_ffn",
    "experts",
    "shared_experts",
    "router",
    "norms",
    "head",
)
Split = Literal["out", "in", "copied"]


@dataclass(frozen=True)
class Weight:
    """`count` matrices of (out_features, in_features), of which a token passes `used`; or a vector, in_features 1.

    `split` is the dimension that tensor parallelism cuts ("copied": each rank holds all of it), in at most `pieces`
    parts (heads), or as many as divide it where `pieces` is 0. More ranks than pieces hold copies.
    """

    name: str
    part: Part
    out_features: int
    in_features: int
    split: Split = "copied"
    pieces: int = 0
    count: int = 1
    used: int = 1
    vector: bool = False

    @property
    def parameters(self) -> int:
        """All of its parameters."""
        return self.count * self.out_features * self.in_features

    @property
    def used_parameters(self) -> int:
        """Those that one token passes."""
        return self.used * self.out_features * self.in_features

    @property
    def flops_per_token(self) -> int:
        """Forward FLOPs of its products for one token, a multiply-add being two; adding and scaling count nothing."""
        return 0 if self.vector else 2 * self.used_parameters

    def on_rank(self, tensor_ranks: int = 1, expert_ranks: int = 1, expert_tensor_ranks: int = 1) -> int:
        """Parameters one rank holds; experts are cut by the two last numbers, all else by the first.

        Raises `ProfileError` (out_of_range) if a number does not divide what it cuts.
        """
        if self.part == "experts":
            ways = expert_tensor_ranks
            if self.count % expert_ranks:
                raise _uneven("expert_ranks", self.name, self.count, expert_ranks)
        else:
            ways, expert_ranks = tensor_ranks, 1
        if self.split == "copied" or ways == 1:
            return self.parameters // expert_ranks
        whole = self.pieces or (self.out_features if self.split == "out" else self.in_features)
        if whole % ways and ways % whole:
            raise _uneven("tensor_ranks", self.name, whole, ways)
        return self.parameters // expert_ranks // min(ways, whole)


def matrix(
    name: str, part: Part, out_features: int, in_features: int, split: Split = "copied", pieces: int = 0
) -> Weight:
    """One matrix that every token passes."""
    return Weight(name, part, out_features, in_features, split, pieces)


def vector(name: str, part: Part, length: int, split: Split = "copied", pieces: int = 0) -> Weight:
    """A bias, a norm's scale, one number a head."""
    return Weight(name, part, length, 1, split, pieces, vector=True)


def norm(name: str, length: int, kind: Literal["rms", "layer"]) -> tuple[Weight, ...]:
    """A norm's scale, and its shift in a layer norm."""
    scale = (vector(name, "norms", length),)
    return scale if kind == "rms" else (*scale, vector(f"{name}_shift", "norms", length))


def on_rank(
    weights: Iterable[Weight], tensor_ranks: int = 1, expert_ranks: int = 1, expert_tensor_ranks: int = 1
) -> tuple[int, int]:
    """Parameters of some weights on one rank: all but the experts, and the experts. Raises `ProfileError`."""
    sums = [0, 0]
    for weight in weights:
        sums[weight.part == "experts"] += weight.on_rank(tensor_ranks, expert_ranks, expert_tensor_ranks)
    return sums[0], sums[1]


def by_part(weights: Iterable[Weight], amount: Callable[[Weight], int]) -> dict[Part, int]:
    """The amount of each part that has any, in the order of `PARTS`."""
    sums = dict.fromkeys(PARTS, 0)
    for weight in weights:
        sums[weight.part] += amount(weight)
    return {part: total for part, total in sums.items() if total}


def _uneven(field: str, name: str, whole: int, ways: int) -> ProfileError:
    return ProfileError(f"expected {field} to divide the {whole} of {name}, got {ways}", code="out_of_range")
