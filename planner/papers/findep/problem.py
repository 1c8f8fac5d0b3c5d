"""The problem file of FinDEP in explicit costs (page section 6), validated once at the door."""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from planner.json_text import Json
from planner.papers.findep.amounts import Bytes, PerSample, PerToken, SampleCost, SampleTable, TokenCost
from planner.validation import Document, Many, fault, refuse_duplicates

Order = Literal["AASS", "ASAS"]
Rules = Literal["none", "vllm_afd"]

MAX_CANDIDATES = 100_000_000
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

    attention_gpus: int = Field(ge=1, le=65536)
    expert_gpus: int = Field(ge=1, le=65536)
    a2e: PerToken
    e2a: PerToken | None = None
    expert: PerToken | None = None
    attention_bytes_per_sample: Bytes | None = None

    @property
    def gpus(self) -> int:
        """GPUs of both pools."""
        return self.attention_gpus + self.expert_gpus


class Memory(Document):
    """What fills a GPU of each pool (eq. 10); every amount is a number of bytes, or bytes by cause."""

    attention_capacity_bytes: float = Field(ge=0, le=1e24)
    attention_fixed_bytes: Bytes = Field(description="A0: weights and reserve")
    attention_bytes_per_sample: Bytes = Field(description="A1: a resident sample")
    attention_workspace_bytes_per_sample: Bytes = Field(description="A2: a sample of the micro-batch that runs")
    expert_capacity_bytes: float = Field(ge=0, le=1e24)
    expert_fixed_bytes: Bytes = Field(description="B0: reserve")
    expert_bytes_per_expert: Bytes = Field(description="B1: one expert's weights over all layers")
    expert_buffer_bytes_per_token: Bytes = Field(description="B2: a token copy in flight")


class Search(Document):
    """The box: samples of a micro-batch per attention GPU, micro-batches, chunks, orders of the attention GPU.

    ``token_rounding`` ceil gives every expert whole tokens, as kernels see them; real is the paper's.
    """

    max_m_a: int = Field(default=64, ge=1, le=65536)
    max_r1: int = Field(default=8, ge=1, le=1024)
    max_r2: int = Field(default=64, ge=1, le=65536)
    orders: Many[Order] = ("AASS", "ASAS")
    token_rounding: Literal["real", "ceil"] = "real"

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
    format_version: str = "1.0"
    num_layers: int = Field(ge=1, le=10_000, description="MoE layers, all alike")
    num_experts: int = Field(ge=1, le=1_000_000)
    top_k: int = Field(ge=1, le=1_000_000)
    tokens_per_sample: int = Field(ge=1, le=2**30, description="prompt length in prefill, 1 in decode")
    attention: PerSample
    shared_expert: PerSample | None = None
    expert: PerToken = Field(description="one expert, by the tokens it gets from one chunk")
    splits: Many[Split]
    memory: Memory | None = None
    search: Search = Search()
    objective: Literal["tokens_per_s", "tokens_per_s_per_gpu"] = "tokens_per_s"
    makespan_limit_s: float | None = Field(default=None, gt=0, le=1e15)
    launcher_rules: Rules = "none"
    notes: Json = None

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
        self._refuse_large()
        self._tables_cover_the_search()
        return self

    def sorted(self) -> Self:
        """The canonical order: splits by attention and expert GPUs, orders by name."""
        splits = tuple(sorted(self.splits, key=lambda split: (split.attention_gpus, split.expert_gpus)))
        search = self.search.model_copy(update={"orders": tuple(sorted(self.search.orders))})
        return self.model_copy(update={"splits": splits, "search": search})

    def hosted_experts(self, split: Split) -> int:
        """h: experts of the busiest expert GPU (eq. 3)."""
        return -(-self.num_experts // split.expert_gpus)

    def most_chunks(self, m_a: int) -> int:
        """The largest r2 for a micro-batch: a chunk needs at least one token of it."""
        return min(self.search.max_r2, m_a * self.tokens_per_sample)

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
            _cover(expert, "tokens", split.expert or self.expert, (low, high), "the search box")
            h = self.hosted_experts(split)
            for name, link in (("a2e", split.a2e), ("e2a", split.e2a)):
                _cover(f"splits.{index}.{name}", "tokens", link, (low * h, high * h), "the search box")

    def _tokens_per_expert(self, split: Split) -> tuple[float, float]:
        """The fewest and the most tokens an expert gets from a chunk anywhere in the box (eq. 2)."""
        copies = split.attention_gpus * self.top_k
        least = copies * max(1.0, self.tokens_per_sample / self.search.max_r2) / self.num_experts
        most = copies * self.tokens_per_sample * self.search.max_m_a / self.num_experts
        return (math.ceil(least), math.ceil(most)) if self.search.token_rounding == "ceil" else (least, most)


def _cover(place: str, axis: str, cost: PerSample | PerToken | None, needed: tuple[float, float], because: str) -> None:
    if cost is None or isinstance(cost, SampleCost | TokenCost):
        return
    amounts = cost.samples if isinstance(cost, SampleTable) else cost.tokens
    low, high = needed
    if amounts[0] > low * (1 + 1e-12) or amounts[-1] < high * (1 - 1e-12):
        raise fault(
            f"expected {axis} from {low:.9g} to {high:.9g}, as {because} asks for, got a table from "
            f"{amounts[0]:.9g} to {amounts[-1]:.9g}",
            code="outside_measured_range",
            where=f"{place}.{axis}",
        )
