"""A problem compiled to arrays, in the page's letters: what the search, the bounds and the check compute on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.problem import HiermoeProblem, Layer
from planner.routing.compiled import routed_of
from planner.routing.routed import Loads, Routed, Tokens, Uniform, routing_digest

Table = NDArray[np.int64]
"""physical_to_logical: the expert of each slot; slot s sits on rank s // (P/G)."""


@dataclass(frozen=True, eq=False)
class LayerCase:
    """One layer: its routing, and the placement it has now (int64 [P])."""

    layer_id: int
    routed: Routed
    current: Table


@dataclass(frozen=True, eq=False)
class Case:
    """G ranks, E experts, K of them a token, P slots, U[0..D-1] groups by level; layers by ascending id."""

    problem: HiermoeProblem
    G: int
    E: int
    K: int
    P: int
    U: tuple[int, ...]
    layers: tuple[LayerCase, ...]

    @property
    def D(self) -> int:  # noqa: N802
        """Levels an exchange may use."""
        return len(self.U)

    @property
    def slots(self) -> int:
        """P/G: slots of one rank."""
        return self.P // self.G

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The allowed d, ascending."""
        return self.problem.allowed_dimensions

    def link(self, kind: str, level: int) -> tuple[float, float]:
        """alpha in s and beta in s/B of a collective: ``flat`` (any level), ``inter`` or ``intra`` of level 1..D-1."""
        links = self.problem.costs.links
        cost = links.flat if kind == "flat" else (links.inter if kind == "inter" else links.intra)[level - 1]
        return cost.latency_s, 1.0 / cost.bandwidth_bytes_per_s


def compile_case(problem: HiermoeProblem) -> Case:
    """The case of a problem. Raises BadInputError if the arrays that it names are not held beside it."""
    G, E, R = problem.topology.gpus, problem.num_experts, problem.redundant_slots
    layers = sorted(problem.layers, key=lambda layer: layer.layer_id)
    return Case(
        problem=problem,
        G=G,
        E=E,
        K=problem.top_k,
        P=E + R,
        U=problem.topology.level_groups,
        layers=tuple(_layer(problem, layer, index) for index, layer in enumerate(layers)),
    )


def contiguous(E: int, P: int) -> Table:
    """Experts in order over the slots, and from the first one again for redundant slots, as SGLang starts."""
    return np.arange(P, dtype=np.int64) % E


def _layer(problem: HiermoeProblem, layer: Layer, index: int) -> LayerCase:
    given = layer.initial_physical_to_logical
    E = problem.num_experts
    current = contiguous(E, E + problem.redundant_slots) if given is None else np.array(given, np.int64)
    routed = routed_of(layer.routing, problem.kept, problem.topology.gpus, E, problem.top_k, f"layers.{index}.routing")
    return LayerCase(layer.layer_id, routed, current)


__all__ = [
    "Case",
    "LayerCase",
    "Loads",
    "Routed",
    "Table",
    "Tokens",
    "Uniform",
    "compile_case",
    "contiguous",
    "routing_digest",
]
