"""What a derived problem of Zellige refers to beside its hardware: the model's file, the batch."""

from __future__ import annotations

from pathlib import Path

from planner.derivation.clusters import hardware_account, hardware_files, name_only
from planner.derivation.references import digests, input_errors, model_file
from planner.errors import BadInputError
from planner.json_text import Json
from planner.papers.zellige.batch import Batch, Gatherer
from planner.papers.zellige.capacity import Capacity
from planner.papers.zellige.derived import Derive, DerivedBatch
from planner.papers.zellige.recipe import draw
from profiles.cluster import Cluster
from profiles.geometry import DiTGeometry


def file_digests(given: Derive, batch: Batch, folder: Path) -> dict[str, str]:
    """sha256 of the files beside the problem, by base name."""
    return {**batch.digests, **digests([*hardware_files(given, folder), *model_file(given.model, folder)])}


def account_of_inputs(given: Derive, cluster: Cluster, capacity: Capacity) -> Json:
    """The derive object after defaults and overrides, files by base name, and under ``resolved`` what it led to."""
    document, resolved = hardware_account(given, cluster)
    name_only(document, "model")
    name_only(document["batch"], "jsonl")
    for part in document["batch"].get("recipe", {}).get("parts", ()):
        name_only(part, "table")
    return {**document, "resolved": {**resolved, "memory": vars(capacity)}}


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
