"""Where the seconds of a step come from: shares by source, for readers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from planner.attribution import Sources
from planner.derivation.shares import by_source
from planner.papers.layout.evaluate import Evaluated
from planner.papers.layout.presentation import evaluated
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.ranks import ranks
from planner.papers.layout.solution import LayoutSolution
from planner.papers.layout.stage_times import hop_s, layer_times_s, sharing_s
from planner.papers.layout.tail import update_s

Part = tuple[float, Sources | None]
"""Seconds, and whence; None: stated."""


def shares(problem: LayoutProblem, solution: LayoutSolution) -> dict[str, float]:
    """Fraction of the step's seconds by source: the pipeline's by all that runs in it, the tail's by what it sends."""
    found = evaluated(problem, solution)
    fixed_s = problem.costs.fixed_s
    pipeline = _scaled(_pipeline(problem, found), found.pipeline_s)
    return by_source([*pipeline, *_scaled(_tail(problem, found), found.tail_s), (fixed_s, None)])


def _scaled(parts: Iterable[Part], total_s: float) -> Iterator[Part]:
    """Parts of a whole in the same proportions; nothing of nothing."""
    listed = list(parts)
    amount = sum(part for part, _ in listed)
    for part, sources in listed:
        if amount > 0:
            yield total_s * (part / amount), sources


def _pipeline(problem: LayoutProblem, found: Evaluated) -> Iterator[Part]:
    """Of one micro-batch through all stages: each kind of layer, what of its shards' traffic shows, and the hops."""
    layout, sizes = found.layout, found.sizes
    for kind in sorted({kind for layers in found.stages.layers for kind in layers}):
        count = sum(layers.get(kind, 0) for layers in found.stages.layers)
        row = problem.costs.by_key[layout.row_key(kind)]
        unshared = sum(layer_times_s(problem, layout, sizes, row, shared=False))
        yield count * unshared, row.sources
        shown = sum(layer_times_s(problem, layout, sizes, row)) - unshared
        yield from _by_group(problem, found, row.params, row.expert_params, count * shown)
    hops = 2 * (len(found.stages.layers) - 1)
    yield hops * hop_s(problem, layout, sizes), problem.costs.p2p.link(crosses=sizes.hop_crosses).sources


def _tail(problem: LayoutProblem, found: Evaluated) -> Iterator[Part]:
    """Of the rank with the longest update: the update, and the rest by the groups that send."""
    held = ranks(problem, found.layout, found.stages)
    last = max(held, key=lambda rank: update_s(problem, found.layout, found.sizes, rank))
    update = min(found.tail_s, update_s(problem, found.layout, found.sizes, last))
    yield update, None
    yield from _by_group(problem, found, last.params, last.experts, found.tail_s - update)


def _by_group(
    problem: LayoutProblem, found: Evaluated, params: float, experts: float, seconds: float
) -> Iterator[Part]:
    """Seconds of data-parallel traffic, split between the dense and the expert group as their rings take."""
    sizes, collectives = found.sizes, problem.costs.collectives
    dense = sharing_s(problem, sizes, params, 0.0, 1.0)
    expert = sharing_s(problem, sizes, 0.0, experts, 1.0)
    part = dense / (dense + expert) if dense + expert > 0 else 1.0
    yield seconds * part, collectives.link(crosses=sizes.dense_crosses).sources
    yield seconds * (1 - part), collectives.link(crosses=sizes.expert_crosses).sources
