"""Warnings of what is possible, but looks like a slip of who wrote the problem: another unit, or another model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from planner.paper import Warned
from planner.papers.janus.experts.layers import tokens_of
from planner.papers.janus.model import Option
from planner.papers.janus.problem import Layer, SizingProblem
from planner.papers.janus.shown.words import many
from planner.routing.document import FileRouting, LoadsRouting, MaskRouting
from planner.units import in_bytes, seconds

SLOWEST_S = 5.0
"""Nobody waits so long for every token."""
FEWEST_FIXED_BYTES = 1e6
"""No attention layer has fewer weights."""
FEWEST_CACHED_BYTES = 64.0
"""Of a token and layer: a single head of 64 numbers in 8 bits, keys alone."""


def suspicious_units(options: Iterable[Option]) -> Iterator[Warned]:
    """An SLO or bytes that are none in the unit they are read in, once for all options."""
    said: dict[str, None] = {}
    for option in options:
        if option.slo_s > SLOWEST_S:
            said[f"slo_tpot_s is read as {seconds(option.slo_s)} for every token: it is in seconds"] = None
        memory = option.memory
        if memory is None:
            continue
        place, fixed, cached = option.memory_place, option.fixed_bytes, memory.kv_bytes_per_token
        if 0 < fixed < FEWEST_FIXED_BYTES:
            text = f"{place}.attention_fixed_bytes is read as {in_bytes(fixed)}"
            said[f"{text} of all attention weights: it is in bytes"] = None
        if 0 < cached < FEWEST_CACHED_BYTES * option.num_layers:
            text = f"{place}.kv_bytes_per_token is read as {in_bytes(cached)} over {many(option.num_layers, 'layer')}"
            said[f"{text}: it is in bytes, of all layers"] = None
    if said:
        yield Warned("suspicious_units", "; ".join(said))


def experts_without_load(problem: SizingProblem) -> Iterator[Warned]:
    """Traced layers whose tokens or counts leave out half of the experts or more."""
    E = problem.num_experts
    fewest = {layer.layer_id: loaded for layer in problem.layers if 2 * (loaded := _loaded(problem, layer)) <= E}
    if not fewest:
        return
    layer_id = min(fewest, key=lambda layer: fewest[layer])
    others = f", and of {many(len(fewest) - 1, 'other layer')} as well half or more" if len(fewest) > 1 else ""
    yield Warned(
        "experts_without_load",
        f"{E - fewest[layer_id]:,} of the {E:,} experts of layer {layer_id} have no load{others}: where these are "
        "counts of another model, or of few tokens, a_max, copies and placement are none of yours",
    )


def _loaded(problem: SizingProblem, layer: Layer) -> int:
    """Experts that a layer's routing asks for; all of them where it is drawn by a rule."""
    routing = layer.routing
    if isinstance(routing, LoadsRouting) and routing.expert_load is not None:
        return sum(load > 0 for load in routing.expert_load)
    if isinstance(routing, MaskRouting | FileRouting):
        return len(np.unique(tokens_of(problem, layer).ids))
    return problem.num_experts
