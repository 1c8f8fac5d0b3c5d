"""What all tasks have, and what no document of a routing may say."""

from __future__ import annotations

import math
from typing import ClassVar, Literal, Self

from pydantic import Field

from planner.json_text import Json
from planner.routing.document import (
    LoadsRouting,
    MaskRouting,
    Routing,
    UniformRouting,
    ZipfRouting,
)
from planner.routing.faults import SUM_RTOL, wrong_routing
from planner.validation import Forms, fault

MAX_EXPERTS = 4096


class JanusProblem(Forms):
    """What all tasks have; each is a form of its own."""

    told_by: ClassVar[str] = "task"

    paper: Literal["janus"] = "janus"
    format_version: str = Field(default="1.0", description="any 1.x is read")
    num_experts: int = Field(ge=1, le=MAX_EXPERTS, description="E: routed experts of a layer")
    slots_per_instance: int = Field(ge=1, le=MAX_EXPERTS, description="C: expert slots of one expert instance")
    notes: Json = Field(default=None, description="kept, never read")

    def sorted(self) -> Self:
        """The canonical form."""
        return self


def refuse_routing(routing: Routing, experts: int, top_k: int, place: str) -> None:
    """Refuse what the document tells of a routing; where a token came from does not matter here."""
    if isinstance(routing, UniformRouting):
        routing = ZipfRouting(tokens_per_rank=routing.tokens_per_rank, exponent=0.0, seed=0)
    anywhere = max(routing.source_rank, default=0) + 1 if isinstance(routing, MaskRouting) else 1
    wrong = wrong_routing(routing, anywhere, experts, top_k)
    if wrong is not None:
        raise fault(wrong.message, code=wrong.code, where=f"{place}.{wrong.where}")
    if isinstance(routing, LoadsRouting) and routing.expert_load is not None:
        _refuse_loads(routing.expert_load, top_k, f"{place}.expert_load")


def _refuse_loads(load: tuple[float, ...], top_k: int, place: str) -> None:
    """Refuse loads that no routing has: a token goes to K different experts, so to each at most once."""
    total, largest = math.fsum(load), max(load)
    if total == 0:
        raise fault("expected some load above 0: without tokens nothing tells what experts are asked for", where=place)
    if largest * top_k > total * (1 + SUM_RTOL):
        loaded = sum(each > 0 for each in load)
        message = (
            f"expert {load.index(largest)} has {largest:.10g} of {total:.10g}, more than one in {top_k}, while a token "
            f"goes to each of its {top_k} experts once ({loaded} of {len(load)} experts have any): are these counts of "
            "another model?"
        )
        raise fault(message, where=f"{place}.{load.index(largest)}")
