"""What a derived problem refers to: files beside it, the link between nodes, the batch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from planner.errors import BadInputError
from planner.json_text import Json
from planner.papers.zellige.batch import Batch, Gatherer
from planner.papers.zellige.capacity import Capacity
from planner.papers.zellige.derived import Derive, DerivedBatch, DerivedCluster, InterNode
from planner.papers.zellige.recipe import draw
from profiles.cluster import Cluster, Link, fit_link
from profiles.clusters.library import is_cluster_file
from profiles.errors import ProfileError
from profiles.geometry import DiTGeometry
from profiles.library import load


@contextmanager
def input_errors(where: str) -> Iterator[None]:
    """A profile's complaint becomes the planner's, with a place in the problem file."""
    try:
        yield
    except ProfileError as error:
        inside = f" (in its {error.where})" if error.where else ""
        raise BadInputError(f"{error.message}{inside}", code=error.code, where=where) from None


def located(name: str, folder: Path) -> str:
    """A file is relative to the problem's folder; a built-in name is left alone."""
    return str(folder / name) if is_file(name) else name


def is_file(name: str) -> bool:
    """Whether a name means a file rather than something built in."""
    return "/" in name or name.endswith(".json")


def link_of(inter_node: InterNode | None, folder: Path) -> Link | None:
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


def file_digests(given: Derive, batch: Batch, folder: Path) -> dict[str, str]:
    """sha256 of the files beside the problem, by base name."""
    inter_node = None if isinstance(given.cluster, str) else given.cluster.inter_node
    paths = []
    if inter_node is not None and inter_node.log is not None:
        paths.append(folder / inter_node.log.rpartition("=")[2])
    if isinstance(given.cluster, str) and is_cluster_file(given.cluster):
        paths.append(folder / given.cluster)
    if isinstance(given.model, str) and is_file(given.model):
        paths.append(folder / given.model)
    return {**batch.digests, **{path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}}


def account_of_inputs(given: Derive, cluster: Cluster, capacity: Capacity) -> Json:
    """The derive object after defaults and overrides, files by base name, and under ``resolved`` what it led to."""
    document = given.model_dump(exclude_none=True)
    resolved: dict[str, Json] = {
        "inter_node": None if cluster.link is None else vars(cluster.link),
        "memory": vars(capacity),
    }
    if not isinstance(given.cluster, DerivedCluster):
        if isinstance(given.cluster, str):
            document["cluster"] = Path(given.cluster).name
        else:
            document["cluster"] = given.cluster.model_dump(exclude_unset=True)
        resolved["cluster"] = {"num_ranks": cluster.num_ranks, "gpus_per_node": cluster.gpus_per_node}
    inter_node = {} if isinstance(document["cluster"], str) else document["cluster"].get("inter_node", {})
    files = ((document, "profile"), (document, "model"), (document["batch"], "jsonl"), (inter_node, "log"))
    for holder, name in files:
        if isinstance(holder.get(name), str):
            holder[name] = Path(holder[name]).name
    for part in document["batch"].get("recipe", {}).get("parts", ()):
        if "table" in part:
            part["table"] = Path(part["table"]).name
    return {**document, "resolved": resolved}


def batch_of(given: DerivedBatch, geometry: DiTGeometry, folder: Path) -> Batch:
    """The sequences from whichever source the problem names. Raises BadInputError with the place in the problem."""
    gatherer = Gatherer(geometry)
    place = "derive.batch"
    try:
        with input_errors(place):
            if given.recipe is not None:
                draw(given.recipe, gatherer, folder)
            elif given.jsonl is not None:
                place = "derive.batch.jsonl"
                gatherer.add_file(folder / given.jsonl)
            else:
                for record in given.records or ():
                    gatherer.add(record)
            return gatherer.batch()
    except BadInputError as error:
        where = error.where if (error.where or "").startswith("derive") else place
        raise BadInputError(error.message, code=error.code, where=where) from None
