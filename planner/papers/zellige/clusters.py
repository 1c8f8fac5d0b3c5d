"""The cluster of a derived problem: ranks and nodes written out, or looked up by preset, file or tiers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from planner.errors import BadInputError
from planner.papers.zellige.derived import DerivedCluster, TieredCluster, ZelligeDerivedProblem
from planner.papers.zellige.references import input_errors, link_of
from planner.validation import validate
from profiles.cluster import Cluster
from profiles.clusters.library import cluster_of, is_cluster_file, load_cluster
from profiles.errors import ProfileError

PLACE = "derive.cluster"


def placed(document: ZelligeDerivedProblem, folder: Path) -> tuple[ZelligeDerivedProblem, Cluster]:
    """The document with its ranks and nodes written out, and the cluster with the link between its nodes.

    Raises BadInputError: an unknown preset, a broken file, several device classes, ranks that do not fit.
    """
    given = document.derive.cluster
    if isinstance(given, DerivedCluster):
        return document, Cluster(given.num_ranks, given.gpus_per_node, link_of(given.inter_node, folder))
    found = _found(given, folder)
    if len(found.device_classes) > 1:
        names = ", ".join(device.name for device in found.device_classes)
        raise BadInputError(
            f"expected a cluster of one device class, got {names}: one cost table prices all ranks",
            code="out_of_range",
            where=PLACE,
        )
    inter_node = given.inter_node if isinstance(given, TieredCluster) else None
    if inter_node is not None:
        found = replace(found, link=link_of(inter_node, folder))
    ranks: dict[str, object] = {"num_ranks": found.num_ranks, "gpus_per_node": found.gpus_per_node}
    if inter_node is not None:
        ranks["inter_node"] = inter_node.model_dump(exclude_unset=True)
    written = document.model_dump(exclude_unset=True)
    return validate(ZelligeDerivedProblem, {**written, "derive": {**written["derive"], "cluster": ranks}}), found


def _found(given: TieredCluster | str, folder: Path) -> Cluster:
    if isinstance(given, str):
        with input_errors(PLACE):
            return load_cluster(folder / given if is_cluster_file(given) else given)
    try:
        return cluster_of(given.model_dump(exclude_unset=True, exclude={"inter_node"}), "cluster")
    except ProfileError as error:
        where = f"{PLACE}.{error.where}" if error.where else PLACE
        raise BadInputError(error.message, code=error.code, where=where) from None


def refuse_unstated(cluster: Cluster) -> None:
    """Raise BadInputError naming the tier whose bandwidth or latency nobody stated, if that is why no link is known."""
    if not cluster.name or cluster.link is not None or cluster.num_ranks == cluster.gpus_per_node:
        return
    try:
        cluster.between_nodes().require()
    except ProfileError as error:
        raise BadInputError(error.message, code=error.code, where=f"{PLACE}.{error.where}") from None
