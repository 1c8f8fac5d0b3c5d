"""What a replay gives: when each step is complete, and how long each pool had nothing to do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Pool = Literal["rollout", "train"]
Doing = Literal["fixed", "bulk", "tail", "sync", "lent", "switch"]


@dataclass(frozen=True)
class Span:
    """What one pool does from one second to another, for which step.

    ``lent``: it serves the other role, switching there and back included. ``fixed``, ``bulk`` and ``tail`` are of its
    own role.
    """

    pool: Pool
    doing: Doing
    step: int
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Outcome:
    """One policy over all steps.

    A pool is idle while it neither works, is lent or switched, nor takes part in a weight sync.
    """

    completions_s: tuple[float, ...]
    step_period_s: float
    rollout_idle_s: float
    train_idle_s: float
    train_pool_lent: int = 0
    """Times that pool T was lent to the rollout."""
    rollout_pool_lent: int = 0
    """Times that pool R was lent to the training."""

    @property
    def makespan_s(self) -> float:
        """The end of the last step."""
        return self.completions_s[-1]

    @property
    def rollout_idle_share(self) -> float:
        """Idle seconds of pool R by those of the run; 0 for a run of no time."""
        return self.rollout_idle_s / self.makespan_s if self.makespan_s else 0.0

    @property
    def train_idle_share(self) -> float:
        """Idle seconds of pool T by those of the run; 0 for a run of no time."""
        return self.train_idle_s / self.makespan_s if self.makespan_s else 0.0


def step_period_s(completions_s: Sequence[float], staleness: float) -> float:
    """Mean seconds between steps without those that fill and drain the pipeline; of all where none is left."""
    steps = len(completions_s)
    drained = math.ceil(min(staleness, steps))
    filled = max(1, drained)
    kept = steps - filled - drained
    if kept < 1:
        return completions_s[-1] / steps
    return (completions_s[steps - drained - 1] - completions_s[filled - 1]) / kept
