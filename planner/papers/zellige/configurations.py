"""Which configurations a derived problem prices, and what stands against one."""

from __future__ import annotations

import numpy as np

from planner.errors import BadInputError
from planner.papers.zellige.derived import Derive, ZelligeDerivedProblem
from planner.papers.zellige.prices import Splits
from planner.papers.zellige.problem import Config
from profiles.cluster import Link
from profiles.geometry import DiTGeometry

MAX_DEFAULT_DEGREE = 64


def configs_of(document: ZelligeDerivedProblem, geometry: DiTGeometry) -> tuple[Config, ...]:
    """The listed configurations if heads allow them, else the default ones that heads and nodes allow."""
    if document.configs is not None:
        for config in document.configs:
            if geometry.heads % config.h:
                raise BadInputError(
                    f"{geometry.name} has {geometry.heads} heads, which h={config.h} does not divide",
                    code="out_of_range",
                    where=f"configs.{config.id}.h",
                )
        return document.configs
    cluster = document.derive.ranks
    node = min(cluster.gpus_per_node, cluster.num_ranks)
    configs = [Config(id="whole", q=1, h=1, k=1)]
    degree = 2
    while degree <= min(cluster.num_ranks, MAX_DEFAULT_DEGREE):
        if degree <= node or degree % node == 0:
            configs.append(Config(id=f"q{degree}", q=degree, h=1, k=1))
            if geometry.heads % degree == 0:
                configs.append(Config(id=f"h{degree}", q=1, h=degree, k=1))
            configs.append(Config(id=f"k{degree}", q=1, h=1, k=degree))
            heads = _widest_heads(geometry.heads, min(degree, node))
            if 1 < heads < degree:
                configs.append(Config(id=f"h{heads}k{degree // heads}", q=1, h=heads, k=degree // heads))
        degree *= 2
    return tuple(configs)


def _widest_heads(heads: int, limit: int) -> int:
    """The largest power of two up to a limit that divides the heads."""
    return min(heads & -heads, 1 << (limit.bit_length() - 1))


def splits_of(configs: tuple[Config, ...], gpus_per_node: int) -> Splits:
    """Split factors as arrays, and which configurations leave a node."""
    factors = np.array([(config.q, config.h, config.k) for config in configs], dtype=np.float64)
    degrees = np.array([config.degree for config in configs])
    return Splits(factors[:, 0], factors[:, 1], factors[:, 2], degrees > gpus_per_node)


def refuse_unlinked(configs: tuple[Config, ...], given: Derive, link: Link | None) -> None:
    """A configuration wider than a node needs to know what leaving the node costs."""
    wide = [config for config in configs if config.degree > given.ranks.gpus_per_node]
    if wide and link is None:
        raise BadInputError(
            f'config "{wide[0].id}" spans {wide[0].degree} ranks, more than a node of {given.ranks.gpus_per_node}: '
            "state the link between nodes (bandwidth_bytes_per_s and latency_s, or an imported log), "
            "or list only configs that fit a node",
            code="missing_field",
            where="derive.cluster.inter_node",
        )


def refuse_scattered(document: ZelligeDerivedProblem, configs: tuple[Config, ...]) -> None:
    """One price a configuration: a listed set must lie in as few nodes as can hold it."""
    node = document.derive.ranks.gpus_per_node
    degrees = {config.id: config.degree for config in configs}
    for name, sets in (document.rank_sets.sets or {}).items():
        for index, ranks in enumerate(sets):
            nodes = len({rank // node for rank in ranks})
            if nodes > -(-degrees.get(name, node) // node):
                raise BadInputError(
                    f"ranks {list(ranks)} lie in {nodes} nodes; derived prices assume as few nodes as can hold them",
                    code="out_of_range",
                    where=f"rank_sets.sets.{name}.{index}",
                )
