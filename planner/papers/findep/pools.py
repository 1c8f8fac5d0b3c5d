"""The splits of a cluster's GPUs that a derived problem offers."""

from __future__ import annotations

from planner.derivation.moe.model import MoeModel
from planner.errors import BadInputError
from planner.papers.findep.derived import Derive, Pools
from profiles.cluster import Link


def pools_of(given: Derive, model: MoeModel) -> tuple[Pools, ...]:
    """The listed splits if they fit, else all of the cluster's ranks cut in two, in ascending order.

    Raises BadInputError for more GPUs than there are, more expert GPUs than experts, or a cluster of one rank.
    """
    ranks, experts = given.ranks.num_ranks, model.experts.count
    if given.splits is None:
        if ranks < 2:
            raise BadInputError(
                f"expected at least two ranks, one for each pool, got {ranks}",
                code="out_of_range",
                where="derive.cluster",
            )
        fewest = max(1, ranks - experts)
        return tuple(Pools(attention_gpus=ag, expert_gpus=ranks - ag) for ag in range(fewest, ranks))
    for index, split in enumerate(given.splits):
        where = f"derive.splits.{index}"
        gpus = split.attention_gpus + split.expert_gpus
        if gpus > ranks:
            raise BadInputError(
                f"expected attention_gpus + expert_gpus <= num_ranks = {ranks}, got {gpus}",
                code="out_of_range",
                where=where,
            )
        if split.expert_gpus > experts:
            raise BadInputError(
                f"expected expert_gpus <= the {experts} experts of {model.name}, got {split.expert_gpus}",
                code="out_of_range",
                where=f"{where}.expert_gpus",
            )
    return tuple(sorted(given.splits, key=lambda split: (split.attention_gpus, split.expert_gpus)))


def refuse_unlinked(splits: tuple[Pools, ...], given: Derive, link: Link | None) -> None:
    """A split wider than a node needs to know what leaving the node costs."""
    node = given.ranks.gpus_per_node
    wide = [split for split in splits if split.attention_gpus + split.expert_gpus > node]
    if wide and link is None:
        raise BadInputError(
            f"{wide[0].attention_gpus} attention and {wide[0].expert_gpus} expert GPUs are more than a node of {node}: "
            "state the link between nodes (bandwidth_bytes_per_s and latency_s, or an imported log), or list only "
            "splits that fit a node",
            code="missing_field",
            where="derive.cluster.inter_node",
        )
