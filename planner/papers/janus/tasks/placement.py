"""Copies and placement of one layer."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.papers.janus.tasks.shared import MAX_EXPERTS, JanusProblem, refuse_routing
from planner.routing.document import (
    FileRouting,
    MaskRouting,
    Routing,
)
from planner.validation import Many, fault

Load = Annotated[float, Field(ge=0, le=1e15)]
Expert = Annotated[int, Field(ge=0, lt=MAX_EXPERTS)]
Pair = tuple[Expert, Expert, Load]
"""[i, j, w]: experts i < j were activated together w times."""


class PlacementProblem(JanusProblem):
    """Copies and placement of one layer's experts: from its statistics written out, or from its routing.

    ``batches`` are tokens with their experts; each is balanced by AEBS on the placement found.
    """

    task: Literal["placement"]
    expert_instances: int = Field(ge=1, le=4096, description="n_e")
    expert_load: Many[Load] = Field(default=(), description="c(e): tokens of each expert")
    coactivation: Many[Annotated[Pair, Field(strict=False)]] = Field(
        default=(), description="[i, j, w] with i < j, ascending; a pair that is missing has 0"
    )
    routing: Routing | None = Field(default=None, description="read into expert_load and coactivation")
    top_k: int | None = Field(
        default=None, ge=1, le=MAX_EXPERTS, description="K of a routing that does not write its tokens out"
    )
    batches: Many[Many[Many[Expert]]] = ()

    @model_validator(mode="after")
    def _statistics_fit(self) -> Self:
        E = self.num_experts
        if self.routing is None and len(self.expert_load) != E:
            code = "out_of_range" if self.expert_load else "missing_field"
            raise fault(
                f"expected one load for each of the {E} experts, got {len(self.expert_load)}",
                code=code,
                where="expert_load",
            )
        if self.routing is not None and (self.expert_load or self.coactivation):
            raise fault("routing is read into expert_load and coactivation: state one of them", where="routing")
        self._refuse_routing()
        before = (-1, -1)
        for index, (one, other, _) in enumerate(self.coactivation):
            if not one < other < E:
                message = f"expected experts i < j < {E}, got [{one}, {other}]"
                raise fault(message, where=f"coactivation.{index}")
            if (one, other) <= before:
                message = f"expected pairs in ascending order, each once, got [{one}, {other}] after {list(before)}"
                raise fault(message, where=f"coactivation.{index}")
            before = (one, other)
        for index, batch in enumerate(self.batches):
            for token, experts in enumerate(batch):
                if len(set(experts)) != len(experts) or any(expert >= E for expert in experts):
                    message = f"expected distinct experts below {E}, got {list(experts)[:10]}"
                    raise fault(message, where=f"batches.{index}.{token}")
        return self

    def _refuse_routing(self) -> None:
        routing, K = self.routing, self.top_k
        if K is not None and self.num_experts < K:
            raise fault(f"expected top_k <= num_experts = {self.num_experts}, got {K}", where="top_k")
        if isinstance(routing, MaskRouting) and K is None:
            K = len(routing.expert_ids[0]) if routing.expert_ids else 1
        if routing is None or (isinstance(routing, FileRouting) and K is None):
            return
        if K is None:
            message = 'missing field "top_k": how many experts each drawn token goes to'
            raise fault(message, code="missing_field", where="top_k")
        refuse_routing(routing, self.num_experts, K, "routing")
