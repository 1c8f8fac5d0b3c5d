"""The routing of a layer as arrays, whatever way its document states it."""

from __future__ import annotations

import numpy as np

from planner.beside import unread
from planner.routing.document import FileRouting, LoadsRouting, MaskRouting, Routing, UniformRouting
from planner.routing.routed import Kept, Loads, Routed, Tokens, Uniform
from planner.routing.zipf import draw


def routed_of(routing: Routing, kept: Kept, ranks: int, experts: int, top_k: int, place: str) -> Routed:
    """The routing in memory; what is made from the document alone is made once and kept.

    ``place`` is the routing's path in the problem. Raises BadInputError if a file that it names was not read.
    """
    if isinstance(routing, UniformRouting):
        return Uniform(routing.tokens_per_rank)
    if isinstance(routing, LoadsRouting):
        if routing.path is not None:
            raise unread(routing.path, None, f"{place}.path")
        load = np.array(routing.expert_load, np.float64)
        return Loads(load, float(load.sum()) / top_k)
    if isinstance(routing, MaskRouting):
        written = (routing.source_rank, routing.expert_ids, top_k)
        if written not in kept.made:
            ids = np.array(routing.expert_ids, np.int32).reshape(len(routing.source_rank), top_k)
            kept.made[written] = Tokens(np.sort(ids, axis=1), np.array(routing.source_rank, np.int32))
        return kept.made[written]
    if isinstance(routing, FileRouting):
        arrays = kept.files.get((routing.sha256 or "", routing.layer))
        if arrays is None:
            raise unread(routing.path, routing.sha256, f"{place}.path")
        return arrays.tokens(ranks)
    recipe = (ranks, routing.tokens_per_rank, experts, top_k, routing.exponent, routing.seed)
    if recipe not in kept.made:
        kept.made[recipe] = draw(*recipe)
    return kept.made[recipe]
