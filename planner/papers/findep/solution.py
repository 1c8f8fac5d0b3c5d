"""The solution document (page, "Solution"): the decision, the start of every task, and what follows from both."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.papers.findep.problem import Order
from planner.validation import Document, Many


class LayerStarts(Document):
    """Start times [s] of one layer: ``attention[r1]``, ``shared[r1]`` or empty, the others ``[r1][r2]``."""

    attention: Many[float]
    shared: Many[float]
    a2e: Many[Many[float]]
    expert: Many[Many[float]]
    e2a: Many[Many[float]]


class Steady(Document):
    """Layers that repeat: one ``cycle_layers`` after another is the same but ``period_s`` later."""

    cycle_layers: Literal[1, 2]
    period_s: float
    layers: Many[LayerStarts]


class Timeline(Document):
    """Layers 0..p-1, then what repeats, then the last ones.

    Layer t in [p, T - len(epilogue)) starts at steady.layers[(t - p) mod c] + floor((t - p) / c) period_s;
    ``steady`` is null where every layer is listed.
    """

    prologue: Many[LayerStarts]
    steady: Steady | None = None
    epilogue: Many[LayerStarts]


class Utilisation(Document):
    """Busy time of each resource over the makespan: attention GPU, A2E link, expert GPU, E2A link."""

    AG: float
    A2E: float
    EG: float
    E2A: float


class FindepSolution(Document):
    """One schedule. Memory is that of the fullest GPU of each pool, null where the problem states none.

    ``free_order_bound`` is what no order of the tasks, in these two or any other, can exceed within the search box, in
    the objective's unit.
    """

    attention_gpus: int
    expert_gpus: int
    m_a: int = Field(description="samples of a micro-batch on each attention GPU")
    r1: int = Field(description="micro-batches")
    r2: int = Field(description="chunks of each micro-batch")
    order: Order
    tokens_per_expert_chunk: float
    timeline: Timeline
    makespan_s: float
    objective: float
    attention_memory_bytes: float | None = None
    expert_memory_bytes: float | None = None
    utilisation: Utilisation
    free_order_bound: float
