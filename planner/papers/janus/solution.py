"""The solution documents (page, "Solution"), one form a task."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from planner.validation import Document, Forms, Many


class JanusSolution(Forms):
    """The answer to a task; ``objective`` is the one number that was minimised."""

    told_by: ClassVar[str] = "task"

    objective: float


class LayerTimes(Document):
    """Seconds of one layer. ``comm_case``: 1 direct, 2 one-to-one and multicast, 0 a constant."""

    attention_s: float
    moe_s: float
    comm_s: float
    comm_case: Literal[0, 1, 2]


class Alternative(Document):
    """Pools that carry the demand too, at their operating point."""

    attention_instances: int
    expert_instances: int
    device: str | None = None
    objective: float
    batch: float
    tpot_s: float


class LayerMap(Document):
    """Copies of each expert [E], and the experts of each instance, ascending; max over instances of I(g)."""

    layer_id: int
    replicas: Many[int]
    placement: Many[Many[int]]
    max_coactivation: float


class ExpertMap(Document):
    """Where the experts of every traced layer sit for a number of expert instances (of a device)."""

    expert_instances: int
    device: str | None = None
    layers: Many[LayerMap]


class ScalingSolution(JanusSolution):
    """The cheapest pools for one demand; alternatives start with the plan itself."""

    task: Literal["scaling"] = "scaling"
    attention_instances: int
    expert_instances: int
    total_instances: int
    device: str | None = None
    batch: float
    batch_per_attention_instance: float
    tpot_s: float
    a_max: float
    attention_memory_bytes: float | None = Field(default=None, description="null: the problem states no memory")
    tokens_per_s_per_gpu: float
    layer: LayerTimes
    alternatives: Many[Alternative]
    cheapest: bool = Field(default=True, description="claims that no cheaper pools will do; a baseline claims nothing")
    expert_maps: Many[ExpertMap] = ()


class IntervalPools(Document):
    """The pools of one interval of the series, in its order."""

    attention_instances: int
    expert_instances: int
    device: str | None = None
    batch: float
    tpot_s: float


class SeriesSolution(JanusSolution):
    """The pools of every interval; GPU-hours (or their price) are the objective.

    Of the baselines null where the problem does not describe one, or no number of its GPUs carries some interval.
    """

    task: Literal["series"] = "series"
    intervals: Many[IntervalPools]
    gpu_hours: float
    gpu_hours_monolithic: float | None = None
    gpu_hours_peak: float
    cheapest: bool = Field(default=True, description="claims that no cheaper pools will do; a baseline claims nothing")
    expert_maps: Many[ExpertMap] = ()


class PlacementSolution(JanusSolution):
    """Copies, placement, and the largest load by AEBS of each batch."""

    task: Literal["placement"] = "placement"
    replicas: Many[int]
    placement: Many[Many[int]]
    a_max_per_batch: Many[int] = ()
