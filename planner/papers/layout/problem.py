"""The problem file of Layout in explicit costs (page, section 6), validated once at the door."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from planner.json_text import Json
from planner.papers.layout.table import MAX_DEGREE, Bytes, Costs, Degree
from planner.validation import Document, Many, fault

Rules = Literal["none", "megatron", "deepspeed", "torchtitan"]
Recompute = Literal["none", "selective", "full"]
PartitionKind = Literal["even", "ends"]
LayerKind = Literal["dense", "moe"]

RECOMPUTE: tuple[Recompute, ...] = ("none", "selective", "full")
PARTITIONS: tuple[PartitionKind, ...] = ("even", "ends")

MAX_COMBINATIONS = 50_000_000
MAX_LAYERS = 10_000
MAX_TASKS = 2_000_000
"""Forwards of one replay, over all virtual stages and micro-batches."""

Code = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,59}$")]
Text = Annotated[str, Field(min_length=1, max_length=400)]


class Cluster(Document):
    """The GPUs."""

    num_gpus: int = Field(ge=1, le=MAX_DEGREE, description="N")
    gpus_per_node: int = Field(ge=1, le=MAX_DEGREE, description="g")
    gpu_memory_bytes: Bytes = Field(description="of each GPU")
    reserve_bytes: Bytes = Field(description="of each GPU, for the context and all else that no cause names")

    @property
    def capacity_bytes(self) -> float:
        """What a layout may fill of one GPU."""
        return self.gpu_memory_bytes - self.reserve_bytes

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        if self.gpu_memory_bytes <= self.reserve_bytes:
            raise fault(
                f"expected more than reserve_bytes {self.reserve_bytes:g}, got {self.gpu_memory_bytes:g}",
                where="gpu_memory_bytes",
            )
        return self


class Batch(Document):
    """What one step trains on."""

    global_batch_size: int = Field(ge=1, le=MAX_DEGREE, description="B, sequences")
    sequence_length: int = Field(ge=1, le=10**9, description="s, tokens")


class LayerRun(Document):
    """Layers of one kind in a row."""

    kind: LayerKind
    count: int = Field(ge=1, le=MAX_LAYERS)


class Model(Document):
    """What the rules need to know of the model."""

    layers: Many[LayerRun] = Field(description="in order")
    num_heads: Degree = Field(description="a")
    num_kv_heads: Degree = Field(description="k")
    num_experts: int = Field(ge=0, le=MAX_DEGREE, description="E; 0 for none")
    tied_embeddings: bool = Field(default=False, description="one matrix for embedding and head where pp is 1")

    @property
    def num_layers(self) -> int:
        """L."""
        return sum(run.count for run in self.layers)

    @property
    def kinds(self) -> tuple[LayerKind, ...]:
        """Of each layer, in order."""
        return tuple(run.kind for run in self.layers for _ in range(run.count))

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if not self.layers:
            raise fault("expected at least one run of layers, got none", where="layers")
        if self.num_layers > MAX_LAYERS:
            message = f"expected at most {MAX_LAYERS:,} layers, got {self.num_layers:,}"
            raise fault(message, code="too_large", where="layers")
        if self.num_kv_heads > self.num_heads:
            message = f"expected at most num_heads {self.num_heads}, got {self.num_kv_heads}"
            raise fault(message, where="num_kv_heads")
        if (self.num_experts > 0) != any(run.kind == "moe" for run in self.layers):
            told = "layers of kind moe" if self.num_experts == 0 else "no layers of kind moe"
            message = f"expected experts where layers are moe, got {self.num_experts} with {told}"
            raise fault(message, where="num_experts")
        return self


class Search(Document):
    """What each decision may be; the product of all lists is searched."""

    ORDER: ClassVar[tuple[str, ...]] = (
        "tp", "cp", "pp", "vpp", "ep", "etp", "zero_stage", "recompute", "micro_batch", "sequence_parallel",
    )  # fmt: skip
    """The lists that multiply, in the order of ties."""

    tp: Many[Degree] = Field(default=(1,), description="tensor-parallel degree, t")
    cp: Many[Degree] = Field(default=(1,), description="context-parallel degree, c")
    pp: Many[Degree] = Field(default=(1,), description="pipeline stages, p")
    vpp: Many[Degree] = Field(default=(1,), description="chunks of layers on each rank, v")
    ep: Many[Degree] = Field(default=(1,), description="expert-parallel degree, e")
    etp: Many[Degree] = Field(default=(1,), description="tensor-parallel degree of experts, u")
    zero_stage: Many[Annotated[int, Field(ge=0, le=3)]] = Field(default=(0,), description="z")
    recompute: Many[Recompute] = Field(default=("none",), description="activations that the backward makes again")
    micro_batch: Many[Degree] = Field(default=(1,), description="b, sequences")
    sequence_parallel: Many[bool] = Field(default=(False,), description="norms split over the tensor ranks")
    partitions: Many[PartitionKind] = Field(default=("even",), description="how layers are cut into stages")
    keep: int = Field(default=20, ge=0, le=1000, description="alternatives that are listed")

    @field_validator("tp", "cp", "pp", "vpp", "ep", "etp", "zero_stage", "micro_batch", "sequence_parallel")
    @classmethod
    def _ascend(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        _refuse_order(value, value)
        return value

    @field_validator("recompute")
    @classmethod
    def _recompute_ascends(cls, value: tuple[Recompute, ...]) -> tuple[Recompute, ...]:
        _refuse_order(value, [RECOMPUTE.index(one) for one in value])
        return value

    @field_validator("partitions")
    @classmethod
    def _partitions_ascend(cls, value: tuple[PartitionKind, ...]) -> tuple[PartitionKind, ...]:
        _refuse_order(value, [PARTITIONS.index(one) for one in value])
        return value

    @property
    def lists(self) -> dict[str, tuple[int | str, ...]]:
        """The lists that multiply, in the order of ties."""
        return {name: getattr(self, name) for name in self.ORDER}

    @property
    def combinations(self) -> int:
        """Product of the lists, without partitions."""
        return prod(len(each) for each in self.lists.values())

    @model_validator(mode="after")
    def _refuse_large(self) -> Self:
        if self.combinations > MAX_COMBINATIONS:
            longest = max(self.lists, key=lambda name: len(self.lists[name]))
            raise fault(
                f"expected a product of at most {MAX_COMBINATIONS:,} combinations, got {self.combinations:,}; "
                f"the longest list, {longest}, has {len(self.lists[longest]):,}",
                code="too_large",
                where=longest,
            )
        return self


def _refuse_order(shown: tuple[object, ...], places: tuple[int, ...] | list[int]) -> None:
    if not places:
        raise fault("expected at least one value, got none")
    for place, (one, other) in enumerate(pairwise(places)):
        if one == other:
            raise fault(f"{str(shown[place]).lower()} occurs twice", code="duplicate_id")
        if one > other:
            got = f"{str(shown[place]).lower()} before {str(shown[place + 1]).lower()}"
            raise fault(f"expected an ascending list, got {got}")


@dataclass
class Kept:
    """What one part of a plan works out of a problem's very parts and others need too; it never tells two apart."""

    parts: tuple[object, ...] = ()
    least_step_s: float | None = None
    """Of the best layout, as the search found it; None where it has not run, or found none."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept)

    __hash__ = None  # type: ignore[assignment]


class LayoutProblem(Document):
    """The explicit-cost form."""

    paper: Literal["layout"] = "layout"
    format_version: str = Field(default="1.0", description="any 1.x is read")
    launcher_rules: Rules = Field(default="none", description="whose rules a layout must keep")
    objective: Literal["step_time"] = Field(default="step_time", description="what is least")
    cluster: Cluster
    batch: Batch
    model: Model
    search: Search = Search()
    costs: Costs
    cautions: dict[Code, Text] | None = Field(
        default=None, description="what the reader of a plan should know of these prices: warnings by code"
    )
    notes: Json = Field(default=None, description="kept, never read")

    _kept: Kept = PrivateAttr(default_factory=Kept)

    @property
    def kept(self) -> Kept:
        """What was worked out of these very parts and may be asked for again."""
        parts = (self.launcher_rules, self.cluster, self.batch, self.model, self.search, self.costs)
        kept = self._kept.parts
        # The very objects: a copy with another part shares what its original kept.
        if len(kept) != len(parts) or any(mine is not its for mine, its in zip(parts, kept, strict=True)):
            self._kept = Kept(parts)
        return self._kept

    @property
    def most_tasks(self) -> int:
        """No layout of the search that keeps the rules has more virtual stages times micro-batches.

        Asked are rules that bind the pipeline and the batch; where no product comes near the limit, none.
        """
        search, batch = self.search, self.batch
        stages = min(self.model.num_layers, search.pp[-1] * search.vpp[-1])
        ranks_of_a_sample = search.tp[-1] * search.cp[-1] * search.pp[-1]
        least_dp = max(1, self.cluster.num_gpus // ranks_of_a_sample)
        most = stages * (batch.global_batch_size // (search.micro_batch[0] * least_dp))
        return most if most <= MAX_TASKS else self._most_tasks_by_rule()

    def _most_tasks_by_rule(self) -> int:
        search, num_gpus, node = self.search, self.cluster.num_gpus, self.cluster.gpus_per_node
        heads, tokens, whole = self.model.num_heads, self.batch.sequence_length, self.batch.global_batch_size
        degrees = [t for t in search.tp if num_gpus % t == node % t == heads % t == 0]
        contexts = [c for c in search.cp if num_gpus % c == 0 and (c == 1 or tokens % (2 * c) == 0)]
        samples = [b for b in search.micro_batch if whole % b == 0]
        most = 0
        for p, v in product(search.pp, search.vpp):
            if num_gpus % p or not self._may_cut(p, v):
                continue
            for ranks in sorted({t * c * p for t, c in product(degrees, contexts)}):
                dp, rest = divmod(num_gpus, ranks)
                if rest:
                    continue
                counts = (whole // (b * dp) for b in samples if whole % (b * dp) == 0)
                # The least micro-batch has most; interleaved ones go in whole groups of p.
                most = max(most, p * v * next((m for m in counts if v == 1 or m % p == 0), 0))
        return most

    def _may_cut(self, pp: int, vpp: int) -> bool:
        """Whether layers can be cut into so many stages at all, and the launcher interleaves."""
        layers, kinds = self.model.num_layers, self.search.partitions
        if vpp > 1 and (pp == 1 or self.launcher_rules == "deepspeed"):
            return False
        return ("even" in kinds and layers % (pp * vpp) == 0) or ("ends" in kinds and vpp == 1 and pp <= layers)

    @model_validator(mode="after")
    def _refuse_long_steps(self) -> Self:
        if self.most_tasks > MAX_TASKS:
            raise fault(
                f"expected at most {MAX_TASKS:,} virtual stages times micro-batches, got up to {self.most_tasks:,}: "
                "a smaller batch, or a larger least micro_batch, leaves fewer",
                code="too_large",
                where="batch.global_batch_size",
            )
        return self

    def sorted(self) -> Self:
        """The canonical form: rows of the cost table by kind and degrees."""
        costs = self.costs.sorted()
        return self if costs is self.costs else self.model_copy(update={"costs": costs})
