"""Ranks in nodes of equal size."""

from __future__ import annotations

from planner.validation import fault


def check_nodes(num_ranks: int, gpus_per_node: int) -> None:
    """Refuse ranks that do not fill their nodes (a cluster smaller than one node is a node)."""
    if num_ranks > gpus_per_node and num_ranks % gpus_per_node:
        raise fault(
            f"expected num_ranks to fill nodes of {gpus_per_node} GPUs, got {num_ranks} ranks "
            f"({num_ranks % gpus_per_node} left over)",
            where="num_ranks",
        )
