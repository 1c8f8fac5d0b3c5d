"""The cluster of a derived problem: ranks and nodes written out, or looked up by preset, file or tiers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from planner.derivation.hardware import AnyCluster, DerivedCluster, Hardware, InterNode, TieredCluster
from planner.derivation.references import input_errors, is_file, located
from planner.errors import BadInputError
from planner.json_text import Json
from planner.validation import validate
from profiles.cluster import Cluster, Link, fit_link
from profiles.clusters.library import cluster_of, is_cluster_file, load_cluster
from profiles.errors import ProfileError, shown
from profiles.library import load
from profiles.profile import Profile

PLACE = "derive.cluster"

M = TypeVar("M", bound=BaseModel)


def placed(document: M, given: AnyCluster, folder: Path) -> tuple[M, Cluster]:
    """The document with its ranks and nodes written out, and the cluster with the link between its nodes.

    `given` is the document's own ``derive.cluster``. Raises BadInputError: an unknown preset, a broken file, several
    device classes, ranks that do not fit.
    """
    if isinstance(given, DerivedCluster):
        return document, Cluster(given.num_ranks, given.gpus_per_node, _link(given.inter_node, folder))
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
        found = replace(found, link=_link(inter_node, folder))
    ranks: dict[str, object] = {"num_ranks": found.num_ranks, "gpus_per_node": found.gpus_per_node}
    if inter_node is not None:
        ranks["inter_node"] = inter_node.model_dump(exclude_unset=True)
    written = document.model_dump(exclude_unset=True)
    return validate(type(document), {**written, "derive": {**written["derive"], "cluster": ranks}}), found


def profile_of(given: Hardware, cluster: Cluster, folder: Path) -> tuple[str, Profile]:
    """The profile that prices a problem, by its name or path and loaded: the stated one, else the cluster's own.

    `given` still holds the cluster as it was written; a path in a cluster file is relative to that file.
    Raises BadInputError: none is stated, an unknown one, or two that differ.
    """
    own = cluster.device_classes[0].profile
    if own is not None and is_file(own) and isinstance(given.cluster, str):
        beside = str(Path(given.cluster).parent / own)
        own = beside if is_file(beside) else f"./{beside}"
    if given.profile is None:
        if own is None:
            raise BadInputError(
                'missing field "profile": the cluster names no cost table either',
                code="missing_field",
                where="derive.profile",
            )
        with input_errors(_profile_place(given)):
            return own, load(located(own, folder))
    with input_errors("derive.profile"):
        stated = load(located(given.profile, folder))
    if own is None or own == given.profile:
        return given.profile, stated
    with input_errors(_profile_place(given)):
        other = load(located(own, folder))
    if other.sha256 != stated.sha256:
        raise BadInputError(
            f"derive.profile is {shown(given.profile)}, but the cost table of the cluster {shown(cluster.name)} is "
            f"{shown(own)}: change derive.profile or leave it out, choose another cluster, or state the cluster's "
            f"profile as well, as in {_with_profile(given, own)}",
            code="out_of_range",
            where=PLACE,
        )
    return given.profile, stated


def device_memory(stated: float | None, cluster: Cluster, profile: Profile) -> float:
    """Bytes of one device: what the problem states, else the cluster, else the profile. Raises BadInputError."""
    found = stated or cluster.device_classes[0].memory_bytes or profile.device.memory_bytes
    if found is None:
        raise BadInputError(
            f"profile {profile.name} does not say how much memory its device has",
            code="missing_field",
            where="derive.memory.capacity_bytes",
        )
    return float(found)


def refuse_unstated(cluster: Cluster, given: AnyCluster) -> None:
    """Raise BadInputError naming the tier whose bandwidth or latency nobody stated, if that is why no link is known.

    `given` is the cluster as it was written.
    """
    if not cluster.name or cluster.link is not None or cluster.num_ranks == cluster.gpus_per_node:
        return
    try:
        cluster.between_nodes().require()
    except ProfileError as error:
        where = PLACE if isinstance(given, str) else f"{PLACE}.{error.where}"
        raise BadInputError(error.message, code=error.code, where=where) from None


def hardware_files(given: Hardware, folder: Path) -> list[Path]:
    """The files that a problem's cluster names: itself, and a log of the link between nodes."""
    if isinstance(given.cluster, str):
        return [folder / given.cluster] if is_cluster_file(given.cluster) else []
    inter_node = given.cluster.inter_node
    return [] if inter_node is None or inter_node.log is None else [folder / inter_node.log.rpartition("=")[2]]


def hardware_account(given: Hardware, cluster: Cluster) -> tuple[dict[str, Json], dict[str, Json]]:
    """The derive object after defaults and overrides, its hardware's files by base name; and what these led to."""
    document = given.model_dump(exclude_none=True)
    resolved: dict[str, Json] = {"inter_node": None if cluster.link is None else _account(cluster.link)}
    if not isinstance(given.cluster, DerivedCluster):
        if isinstance(given.cluster, str):
            document["cluster"] = Path(given.cluster).name
        else:
            document["cluster"] = given.cluster.model_dump(exclude_unset=True)
        resolved["cluster"] = {"num_ranks": cluster.num_ranks, "gpus_per_node": cluster.gpus_per_node}
    inter_node = {} if isinstance(document["cluster"], str) else document["cluster"].get("inter_node", {})
    name_only(document, "profile")
    name_only(inter_node, "log")
    return document, resolved


def name_only(holder: dict[str, Json], field: str) -> None:
    """Keep of a file's path its base name; a log may say before it what it is of (``all_gather=logs/x.log``)."""
    written = holder.get(field)
    if isinstance(written, str):
        before, equals, path = written.rpartition("=")
        holder[field] = f"{before}{equals}{Path(path).name}" if "/" not in before else Path(written).name


def _link(inter_node: InterNode | None, folder: Path) -> Link | None:
    """The link between nodes: stated, or fitted to an nccl-tests log or an imported one. None where not given."""
    if inter_node is None:
        return None
    if inter_node.log is None:
        return Link(inter_node.bandwidth_bytes_per_s or 0.0, inter_node.latency_s or 0.0)
    with input_errors("derive.cluster.inter_node.log"):
        if inter_node.log.endswith(".json"):
            return fit_link(load(folder / inter_node.log).document)
        from profiles.importers import run

        operation, equals, path = inter_node.log.rpartition("=")
        return fit_link(run("nccl-tests", [f"{operation}{equals}{folder / path}"])[0])


def _account(link: Link) -> dict[str, Json]:
    """All of it; how many ranks a node had only of a log that tells."""
    found = dict(vars(link))
    if link.ranks_per_node is None:
        del found["ranks_per_node"]
    return found


def _with_profile(given: Hardware, own: str) -> str:
    preset = given.cluster if isinstance(given.cluster, str) and not is_cluster_file(given.cluster) else None
    profile = shown(given.profile or own)
    return f'{{"preset": "{preset}", "profile": "{profile}"}}' if preset else f'"profile": "{profile}"'


def _profile_place(given: Hardware) -> str:
    return PLACE if isinstance(given.cluster, str) else f"{PLACE}.profile"


def _found(given: TieredCluster | str, folder: Path) -> Cluster:
    if isinstance(given, str):
        with input_errors(PLACE):
            return load_cluster(folder / given if is_cluster_file(given) else given)
    try:
        return cluster_of(given.model_dump(exclude_unset=True, exclude={"inter_node"}), "cluster")
    except ProfileError as error:
        where = f"{PLACE}.{error.where}" if error.where else PLACE
        raise BadInputError(error.message, code=error.code, where=where) from None
