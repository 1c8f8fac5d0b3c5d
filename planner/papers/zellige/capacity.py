"""M_cap: the bytes a rank has left for a step."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.derivation.clusters import device_memory
from planner.errors import InfeasibleError, Relaxation
from planner.memory.states import fully_sharded_bytes
from planner.papers.zellige.derived import Derive
from profiles.cluster import Cluster
from profiles.families import DTYPE_BYTES
from profiles.geometry import DiTGeometry
from profiles.profile import Profile


@dataclass(frozen=True)
class Capacity:
    """How M_cap came about."""

    capacity_bytes: float
    reserve_bytes: float
    model_parameters: int
    model_state_bytes: float
    memory_cap_bytes: float


def model_parameters(geometry: DiTGeometry) -> tuple[int, int]:
    """All parameters of a model, and those of its largest layer (the unit that sharding gathers)."""
    return geometry.parameters, max(run.kind.parameters for run in geometry.runs)


def capacity_of(given: Derive, geometry: DiTGeometry, profile: Profile, cluster: Cluster) -> Capacity:
    """M_cap: what a rank has left for the step after its reserve and its share of the model states.

    The device memory is what the problem states, else what the cluster does, else the profile's.
    """
    budget = given.memory
    capacity = device_memory(budget.capacity_bytes, cluster, profile)
    parameters, unit = model_parameters(geometry)
    states = float(
        fully_sharded_bytes(
            parameters,
            budget.state_bytes_per_parameter,
            shard_ranks=budget.shard_ranks or given.ranks.num_ranks,
            unit_bytes=unit * int(DTYPE_BYTES[given.dtype]),
        )
    )
    cap = capacity - budget.reserve_bytes - states
    if cap <= 0:
        raise InfeasibleError(
            f"model states of {geometry.name} ({states / 1e9:.4g} GB on each rank, over "
            f"{budget.shard_ranks or given.ranks.num_ranks} ranks) and the reserve "
            f"({budget.reserve_bytes / 1e9:.4g} GB) leave no memory of {capacity / 1e9:.4g} GB for the step",
            code="device_memory",
            where="derive.memory.capacity_bytes",
            required=states + budget.reserve_bytes,
            available=capacity,
            unit="bytes",
            relaxation=Relaxation(
                "derive.memory.capacity_bytes", math.ceil(states + budget.reserve_bytes) + 1, proven=False, enough=False
            ),
        )
    return Capacity(capacity, budget.reserve_bytes, parameters, states, cap)
