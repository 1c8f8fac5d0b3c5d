"""How a problem states the routing of a layer: token by token, by loads, or by a rule."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from planner.validation import Document, Many, fault

MAX_TOKENS = 2**24
"""Tokens of one layer."""
MAX_ASSIGNMENTS = 2**27
"""Tokens x K of one layer."""
MAX_KEYS = 2**30
"""Random keys of one drawn layer, tokens x experts."""

Path = Annotated[str, Field(min_length=1, max_length=1000)]
Count = Annotated[int, Field(ge=0, le=MAX_TOKENS)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Index = Annotated[int, Field(ge=-(2**62), le=2**62)]
"""An integer of an array, looked at with the others."""


class MaskRouting(Document):
    """Every token's source rank and its experts, written out."""

    kind: Literal["mask"] = "mask"
    source_rank: Many[Index]
    expert_ids: Many[Many[Index]]

    @model_validator(mode="after")
    def _one_source_each(self) -> Self:
        if len(self.source_rank) != len(self.expert_ids):
            raise fault(
                f"expected one source rank for each of the {len(self.expert_ids)} tokens, got {len(self.source_rank)}",
                where="source_rank",
            )
        if len(self.expert_ids) > MAX_TOKENS:
            raise fault(f"expected at most {MAX_TOKENS:,} tokens", code="too_large", where="expert_ids")
        return self


class FileRouting(Document):
    """The same in a file beside the problem: .npz or .npy arrays, or JSON Lines; kept by digest, never in the plan.

    ``expert_ids`` int [T, K], or [L, T, K] of which ``layer`` names one; ``source_rank`` int [T], where absent tokens
    come in contiguous blocks of near-equal size, one a rank. A line of JSON Lines is one token: {expert_ids [K],
    source_rank, layer}, the last two optional.
    """

    kind: Literal["npz", "jsonl"]
    path: Path
    layer: int | None = Field(default=None, ge=0, le=2**31, description="index of the first axis, or the lines' layer")
    sha256: Digest | None = Field(default=None, description="of the file; filled in, and checked where given")


class LoadsRouting(Document):
    """Assignments by expert only: no co-selection is known. Counts may come from a file, which is read into here."""

    kind: Literal["loads"] = "loads"
    tokens_per_rank: float | None = Field(default=None, ge=0, le=1e15, description="null: loads / (K G)")
    expert_load: Many[Annotated[float, Field(ge=0, le=1e15)]] | None = None
    path: Path | None = Field(default=None, description="a file of counts: OLMoE and Mixtral lists, SGLang dumps")
    layer: int | None = Field(default=None, ge=0, le=2**31, description="which layer of the file, by its place in it")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.expert_load is None) == (self.path is None):
            raise fault('expected exactly one of "expert_load" and "path"')
        if self.path is None and self.layer is not None:
            raise fault('"layer" goes with "path": it names a layer of the file', where="layer")
        return self


class UniformRouting(Document):
    """Each token picks K of E at random: the expectation (eq. 7)."""

    kind: Literal["uniform_expected"] = "uniform_expected"
    tokens_per_rank: Count


class ZipfRouting(Document):
    """Tokens drawn with weights (place + 1)^-exponent over a seeded permutation of the experts.

    A layer's draw depends on its own entry alone: layers that are to differ need seeds that differ.
    """

    kind: Literal["zipf"] = "zipf"
    tokens_per_rank: Count
    exponent: float = Field(ge=0, le=20)
    seed: int = Field(ge=0, le=2**63 - 1)


def _kind(value: object) -> str | None:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return {"npz": "file", "jsonl": "file"}.get(kind, kind) if isinstance(kind, str) else None


Routing = Annotated[
    Annotated[MaskRouting, Tag("mask")]
    | Annotated[FileRouting, Tag("file")]
    | Annotated[LoadsRouting, Tag("loads")]
    | Annotated[UniformRouting, Tag("uniform_expected")]
    | Annotated[ZipfRouting, Tag("zipf")],
    Discriminator(_kind),
]
"""One of the kinds above."""
