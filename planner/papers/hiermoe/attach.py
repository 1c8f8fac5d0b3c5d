"""What a problem names by file, read into it: maps and counts into the document, tokens as arrays beside it."""

from __future__ import annotations

from functools import partial

from planner.beside import Beside, add_digest, find
from planner.errors import BadInputError
from planner.paper import Attached
from planner.papers.hiermoe.problem import HiermoeProblem, Layer
from planner.routing.faults import Wrong, wrong_table, wrong_tokens
from planner.routing.map_files import read_map
from planner.routing.reading import with_files
from planner.routing.routed import TokenArrays
from planner.validation import validate

MAP_PLACE = "initial_map.path"


def attach(problem: HiermoeProblem, beside: Beside) -> Attached[HiermoeProblem]:
    """The problem without paths: base names and digests of token files, everything else written out.

    Raises BadInputError: a file that is missing or another, is not what it should be, or does not fit the problem.
    """
    files: dict[str, str] = {}
    layers = _with_tables(problem, beside, files)
    routings, kept = with_files(
        [layer.routing for layer in layers],
        [f"layers.{index}.routing" for index in range(len(layers))],
        problem.num_experts,
        partial(_wrong, problem),
        beside,
        files,
    )
    if not files:
        return Attached(problem, files)
    layers = [layer.model_copy(update={"routing": routing}) for layer, routing in zip(layers, routings, strict=True)]
    written = {name: getattr(problem, name) for name in problem.model_fields_set - {"initial_map"}}
    attached = validate(HiermoeProblem, written | {"layers": tuple(layers)})
    attached.kept.files.update(kept)
    return Attached(attached, files)


def _with_tables(problem: HiermoeProblem, beside: Beside, files: dict[str, str]) -> list[Layer]:
    given, layers = problem.initial_map, list(problem.layers)
    if given is None:
        return layers
    found = find(beside, given.path, None, MAP_PLACE)
    add_digest(files, found.name, found.sha256, MAP_PLACE)
    tables = read_map(found.path, given.format, MAP_PLACE)
    least = min(layer.layer_id for layer in layers)
    if least < given.first_layer:
        message = f"expected at most {least}, the least layer_id of the problem, got {given.first_layer}"
        raise BadInputError(message, code="out_of_range", where="initial_map.first_layer")
    for index, layer in enumerate(layers):
        number = layer.layer_id - given.first_layer
        if number not in tables:
            message = f"{found.name} has no layer {number} for layer_id {layer.layer_id}"
            raise BadInputError(message, code="missing_field", where=f"layers.{index}.layer_id")
        _refuse_table(problem, tables[number], f"{found.name}, layer {number}")
    return [
        layer.model_copy(update={"initial_physical_to_logical": tables[layer.layer_id - given.first_layer]})
        for layer in layers
    ]


def _refuse_table(problem: HiermoeProblem, table: tuple[int, ...], name: str) -> None:
    """Raise what is wrong with a table of the file, naming the file: it stands in no field of the problem."""
    G, E = problem.topology.gpus, problem.num_experts
    wrong = wrong_table(table, G, E, problem.slots, problem.forbid_same_rank_replicas)
    if wrong is not None:
        raise BadInputError(f"{name}: {wrong.message}", code=wrong.code, where=MAP_PLACE)


def _wrong(problem: HiermoeProblem, arrays: TokenArrays) -> Wrong | None:
    K = arrays.expert_ids.shape[1]
    if problem.top_k != K:
        return Wrong(f"expected top_k = {problem.top_k} experts a token, got {K}", "top_k_mismatch", "expert_ids")
    return wrong_tokens(arrays.expert_ids, arrays.source, problem.topology.gpus, problem.num_experts)
