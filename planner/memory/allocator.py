"""Device bytes that no tensor of the model names: communicators' buffers and what the allocator cannot use (3.6)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from planner.memory.amounts import Amount


def fragmentation_bytes(share: Amount, activations: Amount, transient: Amount) -> Amount:
    """Bytes lost between tensors that come and go: ``share`` of activations and of what lives while one layer runs."""
    return share * (activations + transient)


def communicator_bytes(each: Amount, group_ranks: Iterable[Amount]) -> Amount:
    """Buffers of communicators: ``each`` bytes for every group of more than one rank.

    The groups of a layout are tensor, context, pipeline, dense data, expert and expert-tensor.
    """
    return each * sum((np.asarray(ranks) > 1).astype(np.int64) for ranks in group_ranks)
