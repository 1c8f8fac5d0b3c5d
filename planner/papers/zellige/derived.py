"""The derived-cost form of the problem file: a profile, a model, a cluster and a batch instead of prices.

``cost.py`` turns it into the explicit form. Field names are the contract's; every bound is here.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from planner.derivation.hardware import Hardware
from planner.json_text import Json
from planner.papers.zellige.batch import Record
from planner.papers.zellige.problem import Config, RankSets, Search, check_configs
from planner.papers.zellige.recipe import Recipe
from planner.validation import Document, Identity, Many, fault
from profiles.geometry import GeometrySpec


class MemoryBudget(Document):
    """What a rank's memory holds beside the step: M_cap = capacity - reserve - sharded model states."""

    capacity_bytes: float | None = Field(
        default=None, gt=0, le=1e18, description="null: the device memory of the cluster, else of the profile"
    )
    reserve_bytes: float = Field(
        default=4e9, ge=0, le=1e18, description="context, communication buffers, workspace, fragmentation"
    )
    state_bytes_per_parameter: float = Field(
        default=18.0, ge=0, le=1000, description="weights 2, gradients 4, fp32 copy and Adam moments 12"
    )
    shard_ranks: int | None = Field(default=None, ge=1, le=65536, description="null: all ranks (ZeRO-3, FSDP)")


class DerivedBatch(Document):
    """The sequences of the step: written here, in a JSONL file of records, or drawn by a recipe."""

    records: Many[Record] | None = None
    jsonl: str | None = Field(default=None, min_length=1, max_length=1000, description="relative to the problem file")
    recipe: Recipe | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [n for n in ("records", "jsonl", "recipe") if getattr(self, n) is not None]
        if len(given) != 1:
            shown = " and ".join(given) or "none"
            raise fault(f'expected exactly one of "records", "jsonl" and "recipe", got {shown}')
        if self.records is not None and not self.records:
            raise fault("an empty batch has no makespan: expected at least one record, got none", where="records")
        return self


class MeasuredPrice(Document):
    """A measured time of one length in one configuration; replaces the derived one (page equation 21)."""

    tokens: int = Field(ge=1, le=2**40)
    config: Identity
    time_s: float = Field(gt=0, le=1e6)


class Derive(Hardware):
    """Where the prices come from."""

    model: str | GeometrySpec = Field(description="a built-in geometry's name, a config.json, or its sizes")
    dtype: Literal["bf16", "fp16", "fp32", "tf32"] = "bf16"
    batch: DerivedBatch
    checkpointing: Literal["full", "none"] = "full"
    overlap: float = Field(
        default=0.0, ge=0, le=1, description="share of all-gather and all-to-all time hidden behind compute"
    )
    launch_s: float = Field(default=0.0, ge=0, le=10, description="host time a sequence adds to each of its ranks")
    memory: MemoryBudget = MemoryBudget()
    measured: Many[MeasuredPrice] = ()

    @model_validator(mode="after")
    def _shards_are_ranks(self) -> Self:
        shards = self.memory.shard_ranks
        if shards is not None and self.placed and shards > self.ranks.num_ranks:
            place = "memory.shard_ranks"
            raise fault(f"expected shard_ranks <= num_ranks = {self.ranks.num_ranks}, got {shards}", where=place)
        return self


class ZelligeDerivedProblem(Document):
    """The derived-cost form."""

    paper: Literal["zellige"] = "zellige"
    format_version: str = "1.0"
    derive: Derive
    rank_sets: RankSets = RankSets()
    configs: Many[Config] | None = Field(
        default=None,
        description="null: whole; q, h, k, and heads in a ring, in powers of two up to min(ranks, 64)",
    )
    search: Search = Search()
    notes: Json = None

    @model_validator(mode="after")
    def _configs_fit(self) -> Self:
        if self.configs is not None and self.derive.placed:
            check_configs(self.configs, self.derive.ranks.num_ranks)
        return self
