"""What tells one policy on two pools from another (page, section 3.5)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """Which pools may be lent, whether only where that costs less than it gains, and whether tails are streamed."""

    lend_train: bool = False
    """Pool T to the rollout."""
    lend_rollout: bool = False
    """Pool R to the training."""
    by_cost: bool = True
    streaming: bool = False
    """A batch starts when the bulk of the one before is done; nothing is lent."""
