"""What the check reads from a problem: each pair of devices with everything that holds for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.papers.janus.costs import (
    ActivatedBound,
    ActivatedByRouting,
    ActivatedTable,
    Attention,
    Exchange,
    Experts,
    Limits,
    Memory,
    Prices,
)
from planner.papers.janus.problem import Device, SizingProblem

TOLERANCE = 1e-9
"""Relative difference below which two figures agree, and by which a limit may be exceeded."""


@dataclass(frozen=True)
class Offer:
    """One pair of devices; ``device`` is None where the problem lists none."""

    device: str | None
    problem: SizingProblem
    slots: int
    attention: Attention
    moe: Experts
    comm: Exchange
    a_max: ActivatedTable | ActivatedBound
    memory: Memory | None
    limits: Limits
    prices: Prices | None

    @property
    def fewest_experts(self) -> int:
        """Expert instances that hold every expert once."""
        return -(-self.problem.num_experts // self.slots)

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """Batches of a_max [G]."""
        return np.array(self.a_max.batch_grid, dtype=np.float64)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Of a table [R, G]."""
        return np.array(self.a_max.values if isinstance(self.a_max, ActivatedTable) else (), dtype=np.float64)

    @cached_property
    def curves(self) -> dict[tuple[int, int], tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Where TPOT may bend, and TPOT there, of pairs that were looked at: intervals of a series share pools."""
        return {}

    @property
    def largest_batch(self) -> int:
        """The last point of the batch grid."""
        return self.a_max.batch_grid[-1]

    def objective(self, n_a: int, n_e: int) -> float:
        """GPUs, or their price for an hour."""
        if self.prices is None:
            return n_a + n_e
        return n_a * self.prices.attention_per_hour + n_e * self.prices.expert_per_hour

    def started(self, n_a: int, n_e: int) -> bool:
        """Whether the launcher starts these pools."""
        return self.problem.launcher_rules == "none" or (n_a >= n_e and n_a % n_e == 0)

    @property
    def fixed_bytes(self) -> float:
        """W_a."""
        if self.memory is None:
            return 0.0
        amount = self.memory.attention_fixed_bytes
        return math.fsum(amount.values()) if isinstance(amount, dict) else amount

    @property
    def slots_fit(self) -> bool:
        """Whether an expert instance has the memory of its slots, where bytes of one are stated."""
        memory = self.memory
        if memory is None or memory.expert_bytes_per_slot is None:
            return True
        amount = memory.expert_fixed_bytes or 0.0
        beside = math.fsum(amount.values()) if isinstance(amount, dict) else amount
        capacity = memory.capacity_bytes if memory.expert_capacity_bytes is None else memory.expert_capacity_bytes
        return self.slots * memory.expert_bytes_per_slot + beside <= capacity * (1 + TOLERANCE)

    @property
    def request_bytes(self) -> float:
        """What one request in flight holds."""
        if self.memory is None:
            return 0.0
        kv = self.problem.context_tokens * self.memory.kv_bytes_per_token
        return kv + self.memory.activation_bytes_per_request

    def bytes_of(self, requests: int) -> float:
        """Bytes of an attention instance with so many requests."""
        return self.fixed_bytes + requests * self.request_bytes


def offers(problem: SizingProblem) -> dict[str | None, Offer]:
    """The offers by device; with devices these alone, else the problem's own fields.

    One whose a_max is still to be read off routing offers nothing that can be computed, and is left out.
    """
    devices: list[Device | None] = list(problem.devices) or [None]
    found = (_offer(problem, device) for device in devices)
    return {offer.device: offer for offer in found if offer is not None}


def _offer(problem: SizingProblem, device: Device | None) -> Offer | None:
    a_max = (device and device.a_max) or problem.a_max
    if isinstance(a_max, ActivatedByRouting):
        return None
    return Offer(
        device=None if device is None else device.id,
        problem=problem,
        slots=(device and device.slots_per_instance) or problem.slots_per_instance,
        attention=(device and device.attention) or problem.attention,
        moe=(device and device.moe) or problem.moe,
        comm=(device and device.comm) or problem.comm,
        a_max=a_max,
        memory=(device and device.memory) or problem.memory,
        limits=(device and device.limits) or problem.limits,
        prices=(device and device.prices) or problem.prices,
    )


def agree(first: float, second: float) -> bool:
    """Equal within the tolerance."""
    return math.isclose(first, second, rel_tol=TOLERANCE)
