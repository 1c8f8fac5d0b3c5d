"""The solution document (page, "Solution"): per layer the dimension and who sits where, and what follows from both."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.validation import Document, Many

HopKind = Literal["flat", "inter", "intra"]

RoutingDetail = Literal["tokens", "loads", "uniform"]
"""What is known of the routing: every token's experts, loads alone (no co-selection), or an expectation."""

FRONT_SLOTS = 4096
"""Slots of all layers up to which the points of a front have their tables: a plan is to be read by people too."""

SwapOptimal = bool | Literal["class-summed"]
"""No swap lowers the objective: true, screened by counts summed over holders only, or not claimed."""


class HopUse(Document):
    """One hop of the exchange as priced (eqs 1, 2): ``participants`` times the largest count times the token's bytes.

    ``level`` is 0 for the flat exchange; ``peak_tokens`` is a whole number unless counts are expected values.
    """

    kind: HopKind
    level: int = Field(ge=0)
    participants: int = Field(ge=1)
    peak_tokens: float
    bytes: float
    time_s: float


class Move(Document):
    """An expert's weights to write into a slot: from where it is now, or null if no slot of the machine has it."""

    expert: int = Field(ge=0)
    to_slot: int = Field(ge=0)
    from_slot: int | None = Field(default=None, ge=0)
    bytes: float | None = Field(default=None, description="null where the problem states no bytes of an expert")


class Point(Document):
    """One placement that nothing met beats on both: largest rank load and exchange time (replicas only)."""

    dimension: int = Field(ge=1)
    peak_load: float
    a2a_s: float
    objective_s: float
    physical_to_logical: Many[int] | None = None


class LayerPlacement(Document):
    """The decision for one layer. Slot s sits on rank s // (slots per rank); a rank lists its experts ascending.

    ``swaps`` are pairs of experts in order: from the current placement they reach the table, up to the order of slots
    within a rank. ``routing_sha256`` is the digest of drawn or read routing.
    """

    layer_id: int = Field(ge=0)
    dimension: int = Field(ge=1)
    physical_to_logical: Many[int]
    objective_s: float
    a2a_s: float
    peak_assignments: float
    hops: Many[HopUse] = ()
    moved_experts: int = Field(ge=0, description="slots that take another expert")
    moved_bytes: float | None = None
    moves: Many[Move] = ()
    swaps: Many[Many[int]] | None = None
    swap_optimal: SwapOptimal = False
    routing_detail: RoutingDetail = "tokens"
    routing_sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    front: Many[Point] | None = None


class HiermoeSolution(Document):
    """One placement a layer, in the problem's order, and the sum of their objectives (eq. 6)."""

    layers: Many[LayerPlacement]
    objective_s: float
