"""The derived-cost form of the problem file: a profile, a model, a cluster and a phase instead of costs.

``cost.py`` turns it into the explicit form. Every bound is here.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from planner.derivation.memory_budget import MemoryBudget
from planner.derivation.moe.dtypes import MoeHardware, Stored
from planner.json_text import Json
from planner.papers.findep.problem import OF_LIMIT, OF_OBJECTIVE, OF_RULES, Objective, Rules, Search
from planner.validation import Document, Many, fault, refuse_duplicates
from profiles.families import DTYPE_BYTES
from profiles.geometry.spec import ModelSpec

MAX_TOKENS = 1 << 24


class Pools(Document):
    """GPUs of the two pools."""

    attention_gpus: int = Field(ge=1, le=65536, description="GPUs that run attention and the shared experts")
    expert_gpus: int = Field(ge=1, le=65536, description="GPUs that hold the routed experts")


class Derive(MoeHardware):
    """Where the costs come from."""

    model: str | ModelSpec = Field(description="a built-in model's name, a config.json, or its sizes")
    phase: Literal["prefill", "decode"] = Field(description="a sample is a prompt, or one new token")
    prompt_tokens: int | None = Field(default=None, ge=1, le=MAX_TOKENS, description="prefill: tokens of a sample")
    context_tokens: int | None = Field(
        default=None, ge=1, le=MAX_TOKENS, description="decode: tokens a sample attends to, the new one included"
    )
    splits: Many[Pools] | None = Field(
        default=None, description="null: every way to cut all ranks into two pools, expert_gpus <= experts"
    )
    dispatch_dtype: Stored | None = Field(default=None, description="of copies sent to experts; null: as activations")
    combine_dtype: Stored | None = Field(default=None, description="of results sent back; null: as activations")
    copies: Literal["expert", "gpu"] = Field(
        default="expert", description="a token is sent once to each of its experts, or once to each of their GPUs"
    )
    workload: str = Field(
        default="balanced", min_length=1, max_length=100, description="how tokens were routed in the rows of experts"
    )
    expert_rows: Literal["whole", "split"] | None = Field(
        default=None,
        description="rows of all experts on one GPU, of which a GPU does its share; or rows split over expert_gpus, "
        "which saw every token of the group; null: whole where workload is balanced",
    )
    fit: Literal["table", "line"] = Field(
        default="table", description="costs as priced, linear between points; or the line fitted to them (eq. 1, 3, 4)"
    )
    memory: MemoryBudget | None = Field(default=MemoryBudget(), description="null: unlimited")

    @model_validator(mode="after")
    def _phase_has_its_length(self) -> Self:
        needed, other = ("prompt_tokens", "context_tokens")[:: 1 if self.phase == "prefill" else -1]
        if getattr(self, needed) is None:
            raise fault(f'missing field "{needed}": phase {self.phase} needs it', code="missing_field", where=needed)
        if getattr(self, other) is not None:
            raise fault(f"{other} goes with the other phase, not with {self.phase}", where=other)
        return self

    @model_validator(mode="after")
    def _splits_differ(self) -> Self:
        if self.splits is None:
            return self
        if not self.splits:
            raise fault("expected at least one split, got none", where="splits")
        pools = [(split.attention_gpus, split.expert_gpus) for split in self.splits]
        refuse_duplicates(pools, "split (attention_gpus, expert_gpus)", "splits")
        return self

    @property
    def tokens_per_sample(self) -> int:
        """S: the prompt in prefill, 1 in decode."""
        return self.prompt_tokens or 1

    @property
    def context(self) -> int:
        """S_ctx: tokens of a sample in the cache, new ones included."""
        return self.prompt_tokens or self.context_tokens or 1

    @property
    def whole_rows(self) -> bool:
        """Whether experts are priced from rows of all of them on one GPU."""
        return self.expert_rows == "whole" or (self.expert_rows is None and self.workload == "balanced")

    @property
    def dispatch_bytes(self) -> float:
        """Bytes of one number sent to experts."""
        return float(DTYPE_BYTES[self.dispatch_dtype or self.activation_dtype])

    @property
    def combine_bytes(self) -> float:
        """Bytes of one number sent back."""
        return float(DTYPE_BYTES[self.combine_dtype or self.activation_dtype])


class FindepDerivedProblem(Document):
    """The derived-cost form."""

    paper: Literal["findep"] = "findep"
    format_version: str = Field(default="1.0", description="any 1.x is read")
    derive: Derive
    search: Search = Search()
    objective: Objective = Field(default="tokens_per_s", description=OF_OBJECTIVE)
    makespan_limit_s: float | None = Field(default=None, gt=0, le=1e15, description=OF_LIMIT)
    launcher_rules: Rules = Field(default="none", description=OF_RULES)
    notes: Json = Field(default=None, description="kept, never read")
