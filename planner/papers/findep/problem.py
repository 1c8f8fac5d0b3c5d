"""The problem file of FinDEP in explicit costs (page, "Problem file, explicit costs"), validated once at the door."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from planner.json_text import Json
from planner.papers.findep.amounts import Bytes, PerSample, PerToken, SampleCost, SampleTable, TokenCost
from planner.validation import Document, Many, fault, refuse_duplicates

Order = Literal["AASS", "ASAS"]
Rules = Literal["none", "vllm_afd"]
Objective = Literal["tokens_per_s", "tokens_per_s_per_gpu"]

OF_OBJECTIVE = "what is maximised; per GPU compares splits of different size"
OF_LIMIT = "most seconds of a pass through all layers; null: any"
OF_RULES = "what a launcher can start; vllm_afd: r1 = 2, r2 = 1, expert_gpus divides attention_gpus"
"""Of fields that both forms of the problem have."""

MAX_CANDIDATES = 20_000_000
"""Splits x m_a x r1 x r2 that a search may span."""
MAX_TOKENS = 2**53
"""Token copies that a float counts exactly."""
MAX_TASKS = 4_000_000
"""Tasks of the longest schedule the search may meet: it is written and checked task by task."""
MAX_MICRO_BATCHES = 50_000
"""Micro-batches that pass a layer, over all layers, in the longest schedule the search may replay."""


class Split(Document):
    """GPUs of the two pools, and what it costs to get from one to the other.

    Links are priced by token copies received by one expert GPU; ``e2a`` null is ``a2e``. ``expert`` and
    ``attention_bytes_per_sample`` stand in place of the problem's own where they depend on the split.
    """

    attention_gpus: int = Field(ge=1, le=65536, description="GPUs that run attention and the shared experts")
    expert_gpus: int = Field(ge=1, le=65536, description="GPUs that hold the routed experts")
    a2e: PerToken = Field(description="a chunk's way to the experts, by token copies that one expert GPU receives")
    e2a: PerToken | None = Field(default=None, description="its way back; null: as a2e")
    expert: PerToken | None = Field(default=None, description="null: the problem's own")
    attention_bytes_per_sample: Bytes | None = Field(default=None, description="null: the memory's own")

    @property
    def gpus(self) -> int:
        """GPUs of both pools."""
        return self.attention_gpus + self.expert_gpus


class Memory(Document):
    """What fills a GPU of each pool (eq. 10); every amount is a number of bytes, or bytes by cause."""

    attention_capacity_bytes: float = Field(ge=0, le=1e24, description="of one attention GPU")
    attention_fixed_bytes: Bytes = Field(description="A0: weights and reserve")
    attention_bytes_per_sample: Bytes | None = Field(
        default=None, description="A1: a resident sample; null: every split has its own"
    )
    attention_workspace_bytes_per_sample: Bytes = Field(description="A2: a sample of the micro-batch that runs")
    expert_capacity_bytes: float = Field(ge=0, le=1e24, description="of one expert GPU")
    expert_fixed_bytes: Bytes = Field(description="B0: reserve")
    expert_bytes_per_expert: Bytes = Field(description="B1: one expert's weights over all layers")
    expert_buffer_bytes_per_token: Bytes = Field(description="B2: a token copy in flight")


class Search(Document):
    """The box: samples of a micro-batch per attention GPU, micro-batches, chunks, orders of the attention GPU.

    ``token_rounding`` ceil gives every expert whole tokens, as kernels see them; real is the paper's.
    """

    max_m_a: int = Field(default=64, ge=1, le=65536, description="most samples of a micro-batch on each attention GPU")
    max_r1: int = Field(default=8, ge=1, le=1024, description="most micro-batches")
    max_r2: int = Field(default=64, ge=1, le=65536, description="most chunks of a micro-batch")
    orders: Many[Order] = Field(
        default=("AASS", "ASAS"),
        description="all attention of a layer and then its shared experts; or each of these right after its attention",
    )
    token_rounding: Literal["real", "ceil"] = Field(
        default="real", description="tokens of an expert in a chunk: as they divide, or rounded up to whole ones"
    )

    @field_validator("orders")
    @classmethod
    def _some_orders(cls, value: tuple[Order, ...]) -> tuple[Order, ...]:
        if not value:
            raise fault("expected at least one order, got none")
        refuse_duplicates(value, "order")
        return value


class FindepProblem(Document):
    """The explicit-cost form."""

    paper: Literal["findep"] = "findep"
    format_version: str = Field(default="1.0", description="any 1.x is read")
    num_layers: int = Field(ge=1, le=10_000, description="MoE layers, all alike")
    num_experts: int = Field(ge=1, le=1_000_000, description="routed experts of a layer")
    top_k: int = Field(ge=1, le=1_000_000, description="experts that each token goes to")
    tokens_per_sample: int = Field(ge=1, le=2**30, description="prompt length in prefill, 1 in decode")
    attention: PerSample = Field(description="one micro-batch on one attention GPU, by its samples")
    shared_expert: PerSample | None = Field(default=None, description="likewise; null: none")
    expert: PerToken | None = Field(
        default=None, description="one expert, by the tokens it gets from one chunk; null: every split has its own"
    )
    splits: Many[Split] = Field(description="the ways to divide the GPUs that are offered")
    memory: Memory | None = Field(default=None, description="null: unlimited")
    search: Search = Search()
    objective: Objective = Field(default="tokens_per_s", description=OF_OBJECTIVE)
    makespan_limit_s: float | None = Field(default=None, gt=0, le=1e15, description=OF_LIMIT)
    launcher_rules: Rules = Field(default="none", description=OF_RULES)
    notes: Json = Field(default=None, description="kept, never read")

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        if self.top_k > self.num_experts:
            raise fault(f"expected top_k <= num_experts = {self.num_experts}, got {self.top_k}", where="top_k")
        if not self.splits:
            raise fault("expected at least one split, got none", where="splits")
        pools = [(split.attention_gpus, split.expert_gpus) for split in self.splits]
        refuse_duplicates(pools, "split (attention_gpus, expert_gpus)", "splits")
        for index, split in enumerate(self.splits):
            if split.expert_gpus > self.num_experts:
                raise fault(
                    f"expected expert_gpus <= num_experts = {self.num_experts}, got {split.expert_gpus}: "
                    "a GPU without an expert has nothing to do",
                    where=f"splits.{index}.expert_gpus",
                )
        self._refuse_unpriced()
        self._refuse_large()
        self._tables_cover_the_search()
        return self

    def sorted(self) -> Self:
        """The canonical form: splits by attention and expert GPUs, orders by name, and nothing that no split uses."""
        splits = tuple(sorted(self.splits, key=lambda split: (split.attention_gpus, split.expert_gpus)))
        changes: dict[str, object] = {
            "splits": splits,
            "search": self.search.model_copy(update={"orders": tuple(sorted(self.search.orders))}),
        }
        if all(split.expert is not None for split in splits):
            changes["expert"] = None
        if self.memory is not None and all(split.attention_bytes_per_sample is not None for split in splits):
            changes["memory"] = self.memory.model_copy(update={"attention_bytes_per_sample": None})
        return self.model_copy(update=changes)

    def hosted_experts(self, split: Split) -> int:
        """h: experts of the busiest expert GPU (eq. 3)."""
        return -(-self.num_experts // split.expert_gpus)

    def most_chunks(self, m_a: int) -> int:
        """The largest r2 for a micro-batch: a chunk needs at least one token of it."""
        return min(self.search.max_r2, m_a * self.tokens_per_sample)

    def expert_cost(self, split: Split) -> PerToken:
        """One expert's cost on a split: its own, else the problem's."""
        own = split.expert or self.expert
        if own is None:
            raise TypeError("a validated problem has a cost of an expert for every split")
        return own

    def _refuse_unpriced(self) -> None:
        """What every split may have for itself must stand somewhere."""
        _refuse_missing("expert", self.expert, [split.expert for split in self.splits])
        if self.memory is not None:
            own = [split.attention_bytes_per_sample for split in self.splits]
            _refuse_missing("memory.attention_bytes_per_sample", self.memory.attention_bytes_per_sample, own)

    def _refuse_large(self) -> None:
        box = self.search
        candidates = len(self.splits) * box.max_m_a * box.max_r1 * box.max_r2
        if candidates > MAX_CANDIDATES:
            raise fault(
                f"expected splits x max_m_a x max_r1 x max_r2 <= {MAX_CANDIDATES:,}, got {candidates:,}",
                code="too_large",
                where="search",
            )
        tasks = self.num_layers * box.max_r1 * (2 + 3 * self.most_chunks(box.max_m_a))
        if tasks > MAX_TASKS:
            raise fault(
                f"expected a schedule of at most {MAX_TASKS:,} tasks (layers x r1 x (2 + 3 r2)), got {tasks:,}",
                code="too_large",
                where="search",
            )
        passes = self.num_layers * box.max_r1
        if passes > MAX_MICRO_BATCHES:
            raise fault(
                f"expected num_layers x max_r1 <= {MAX_MICRO_BATCHES:,}, got {passes:,}",
                code="too_large",
                where="search.max_r1",
            )
        most = max(split.attention_gpus for split in self.splits)
        copies = box.max_m_a * box.max_r1 * most * self.top_k * self.tokens_per_sample
        if copies > MAX_TOKENS:
            raise fault(f"expected at most 2^53 token copies in flight, got {copies:,}", code="too_large")

    def _tables_cover_the_search(self) -> None:
        """No cost is extrapolated: a table must reach over the whole box."""
        box = self.search
        samples = (1.0, float(box.max_m_a))
        _cover("attention", "samples", self.attention, samples, "search.max_m_a")
        _cover("shared_expert", "samples", self.shared_expert, samples, "search.max_m_a")
        for index, split in enumerate(self.splits):
            low, high = self._tokens_per_expert(split)
            expert = "expert" if split.expert is None else f"splits.{index}.expert"
            _cover(expert, "tokens", self.expert_cost(split), (low, high), "the search box")
            h = self.hosted_experts(split)
            for name, link in (("a2e", split.a2e), ("e2a", split.e2a)):
                _cover(f"splits.{index}.{name}", "tokens", link, (low * h, high * h), "the search box")

    def _tokens_per_expert(self, split: Split) -> tuple[float, float]:
        """The fewest and the most tokens an expert gets from a chunk anywhere in the box (eq. 2)."""
        copies = split.attention_gpus * self.top_k
        least = copies * max(1.0, self.tokens_per_sample / self.search.max_r2) / self.num_experts
        most = copies * self.tokens_per_sample * self.search.max_m_a / self.num_experts
        return (math.ceil(least), math.ceil(most)) if self.search.token_rounding == "ceil" else (least, most)


def _refuse_missing(place: str, common: object, own: Sequence[object]) -> None:
    """``common`` holds for the splits without their ``own``."""
    if common is None and None in own:
        name = place.rsplit(".", 1)[-1]
        some = any(value is not None for value in own)
        raise fault(
            f'missing field "{name}"',
            code="missing_field",
            where=f"splits.{own.index(None)}.{name}" if some else place,
        )


def _cover(place: str, axis: str, cost: PerSample | PerToken | None, needed: tuple[float, float], because: str) -> None:
    if cost is None or isinstance(cost, SampleCost | TokenCost):
        return
    amounts = cost.samples if isinstance(cost, SampleTable) else cost.tokens
    low, high = needed
    if amounts[0] > low * (1 + 1e-12) or amounts[-1] < high * (1 - 1e-12):
        ceil = f"; with search.token_rounding ceil from {math.ceil(low)}: whole tokens" if low != int(low) else ""
        raise fault(
            f"expected {axis} from {low:.9g} to {high:.9g}, as {because} asks for, got a table from "
            f"{amounts[0]:.9g} to {amounts[-1]:.9g}{ceil}",
            code="outside_measured_range",
            where=f"{place}.{axis}",
        )
