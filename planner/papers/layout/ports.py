"""Through how many ports the ring of a data-parallel group leaves a node.

NCCL builds a ring for each port and sends a part of the message through each, so r ranks of a group in every node give
it r ports. Where nodes hold unlike parts of a group, the one with the fewest ranks holds the others back.
"""

from __future__ import annotations

from functools import cache
from math import gcd


@cache
def least_shared(num_gpus: int, gpus_per_node: int, pp: int) -> int:
    """Ranks that a stage has in a node, the fewest over all stages and the nodes that they reach.

    For stages that are larger than a node: blocks of N/p ranks in order, as nodes are of g; the last may be partial.
    A group of every w-th of a stage's ranks has this / w there, rounded down, and 1 at least.
    """
    stage = num_gpus // pp
    period = gpus_per_node // gcd(stage, gpus_per_node)
    fewest = gpus_per_node
    for number in range(1, min(pp, period) + 1):
        end = number * stage % gpus_per_node
        if end:
            fewest = min(fewest, end, gpus_per_node - end if number < pp else end)
    return fewest
