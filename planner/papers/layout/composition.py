"""Which layers every virtual stage and every pipeline rank holds: the same for all layouts of one partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from planner.papers.layout.partitions import layers_by_stage
from planner.papers.layout.problem import LayerRun
from planner.papers.layout.table import Kind

Counts = Mapping[Kind, int]
"""Layers of each kind; the embedding and the head are layers of their own kinds."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Pipeline ranks that hold the same, chunk by chunk: ranks, virtual stages of the first of them, and its layers."""

    places: tuple[int, ...]
    """Ascending: none has more in flight than the first."""
    stages: range
    counts: tuple[tuple[Kind, int], ...]


@dataclass(frozen=True, slots=True)
class Composition:
    """Layers of virtual stages, chunk * pp + rank, and of ranks, in the order of the first of those that are alike."""

    layers: tuple[Counts, ...]
    different: tuple[Counts, ...]
    """Of the stages, each once."""
    which: tuple[int, ...]
    """Of each stage its place in ``different``."""
    kinds: tuple[Kind, ...]
    ranks: tuple[Alike, ...]


@lru_cache(maxsize=256)
def composition(runs: tuple[LayerRun, ...], partition: tuple[int, ...], pp: int) -> Composition:
    """Of a model's layers; the embedding joins the first stage, the head the last."""
    layers = layers_by_stage(runs, partition)
    layers[0]["embedding"] = 1
    layers[-1]["head"] = 1
    seen: dict[tuple[tuple[Kind, int], ...], int] = {}
    which = tuple([seen.setdefault(tuple(held.items()), len(seen)) for held in layers])
    different = tuple([dict(held) for held in seen])
    groups: dict[tuple[int, ...], list[int]] = {}
    for rank in range(pp):
        groups.setdefault(which[rank::pp], []).append(rank)
    return Composition(
        layers=tuple([different[place] for place in which]),
        different=different,
        which=which,
        kinds=tuple(sorted({kind for held in different for kind in held})),
        ranks=tuple([_alike(places, different, which, pp) for places in groups.values()]),
    )


def _alike(places: list[int], different: tuple[Counts, ...], which: tuple[int, ...], pp: int) -> Alike:
    stages = range(places[0], len(which), pp)
    counts: dict[Kind, int] = {}
    for stage in stages:
        for kind, count in different[which[stage]].items():
            counts[kind] = counts.get(kind, 0) + count
    return Alike(tuple(places), stages, tuple(sorted(counts.items())))
