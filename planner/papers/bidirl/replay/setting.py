"""What a replay is given: both roles as fluids, switch costs, staleness and the work of every step."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """One role on its own pool: a share that no replica count shortens, and work that all replicas divide.

    Of the rollout the fixed seconds come first and the tail last; the trainer ends with both.
    """

    replicas: int
    """d, of the pool's own."""
    fixed_s: float
    """alpha."""
    bulk_replica_s: float
    """beta: replica-seconds of a step whose work factor is 1."""
    tail_s_per_token: float = 0.0
    """gamma, times the longest response of the step."""
    helpers: int = 0
    """d_a: replicas that the other pool holds while it is lent; 0 where it may not be."""


@dataclass(frozen=True)
class Switch:
    """Seconds to lend a pool, to take it back, and to merge the gradients of its helpers."""

    in_s: float = 0.0
    out_s: float = 0.0
    grad_s: float = 0.0


@dataclass(frozen=True)
class Setting:
    """One training run on one split. Step k takes element k of both lists, which are cycled."""

    rollout: Stage
    train: Stage
    rollout_on_train: Switch
    """Pool T lent to the rollout."""
    train_on_rollout: Switch
    """Pool R lent to the training."""
    colocated_rollout: Stage
    """The rollout on all GPUs, for the policy without pools."""
    colocated_train: Stage
    colocated_switch_s: float
    weight_sync_s: float
    staleness: float
    steps: int
    work_factor: tuple[float, ...] = (1.0,)
    max_response_tokens: tuple[float, ...] = (0.0,)

    @property
    def lead(self) -> int:
        """How many versions a batch may start before its own."""
        return 1 if self.is_partial else math.floor(min(self.staleness, self.steps))

    @property
    def is_partial(self) -> bool:
        """Whether only a share of a batch, the staleness, may be generated before its own version."""
        return 0 < self.staleness < 1
