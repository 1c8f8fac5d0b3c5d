"""Device bytes that no tensor of the model names: communicators' buffers and what the allocator cannot use (3.6)."""

from __future__ import annotations

from collections.abc import Iterable

from planner.memory.amounts import Amount

CONTEXT_BYTES = 1.5e9
"""What the driver keeps of the card, the context, libraries' workspaces, where nobody measured it."""
COMMUNICATOR_BYTES = 5e8
"""Of each group of more than one rank, where nobody measured it."""


def fragmentation_bytes(share: Amount, activations: Amount, transient: Amount) -> Amount:
    """Bytes lost between tensors that come and go: ``share`` of activations and of what lives while one layer runs."""
    return share * (activations + transient)


def communicator_bytes(each: Amount, group_ranks: Iterable[Amount]) -> Amount:
    """Buffers of communicators: ``each`` bytes for every group of more than one rank.

    The groups of a layout are tensor, context, pipeline, dense data, expert and expert-tensor.
    """
    return each * sum(1 * (ranks > 1) for ranks in group_ranks)
