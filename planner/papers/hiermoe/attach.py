"""What a problem names by file, read into it: maps and counts into the document, tokens as arrays beside it."""

from __future__ import annotations

from pathlib import Path

from planner.beside import Beside, Found, add_digest, find
from planner.errors import BadInputError
from planner.paper import Attached
from planner.papers.hiermoe.problem import HiermoeProblem, Layer
from planner.routing.counts_files import read_counts
from planner.routing.document import FileRouting, LoadsRouting
from planner.routing.faults import wrong_table, wrong_tokens
from planner.routing.map_files import read_map
from planner.routing.routed import TokenArrays, TokenFiles
from planner.routing.token_arrays import read_token_arrays
from planner.routing.token_lines import read_token_lines
from planner.validation import shown_value, validate

MAP_PLACE = "initial_map.path"


def attach(problem: HiermoeProblem, beside: Beside) -> Attached[HiermoeProblem]:
    """The problem without paths: base names and digests of token files, everything else written out.

    Raises BadInputError: a file that is missing or another, is not what it should be, or does not fit the problem.
    """
    files: dict[str, str] = {}
    layers = _with_tables(problem, beside, files)
    layers = [_with_loads(problem, layer, beside, files, _place(index)) for index, layer in enumerate(layers)]
    layers, kept = _with_tokens(problem, layers, beside, files)
    if not files:
        return Attached(problem, files)
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


def _with_loads(problem: HiermoeProblem, layer: Layer, beside: Beside, files: dict[str, str], where: str) -> Layer:
    routing = layer.routing
    if not isinstance(routing, LoadsRouting) or routing.path is None:
        return layer
    found = find(beside, routing.path, None, where)
    add_digest(files, found.name, found.sha256, where)
    counts = beside.kept.get(("counts", found.sha256, problem.num_experts))
    if not isinstance(counts, list):
        counts = read_counts(found.path, problem.num_experts, where)
        beside.kept["counts", found.sha256, problem.num_experts] = counts
    wanted = 0 if routing.layer is None and len(counts) == 1 else routing.layer
    if wanted is None or wanted >= len(counts):
        message = f'{found.name} holds {len(counts)} layers: expected "layer" of 0 to {len(counts) - 1}, got {wanted}'
        raise BadInputError(message, code="out_of_range", where=where.removesuffix("path") + "layer")
    load = tuple(float(count) for count in counts[wanted])
    read = routing.model_copy(update={"expert_load": load, "path": None, "layer": None})
    return layer.model_copy(update={"routing": read})


def _with_tokens(
    problem: HiermoeProblem, layers: list[Layer], beside: Beside, files: dict[str, str]
) -> tuple[list[Layer], TokenFiles]:
    """Layers whose token files are named by digest, and the arrays; a file is read once for all its layers."""
    named = list(layers)
    kept: TokenFiles = {}
    for path, indices in _token_files(layers).items():
        if beside.base_names:
            _refuse_unnamed(path, [_file(layers[index]).sha256 for index in indices], _place(indices[0]))
        digests = {index: _file(layers[index]).sha256 for index in indices}
        if not all(("tokens", digest, _file(layers[index]).layer) in beside.kept for index, digest in digests.items()):
            for index, digest in digests.items():
                found = find(beside, path, digest, _place(index))
                digests[index] = found.sha256
            _read(found, layers, indices, beside)
        for index, digest in digests.items():
            routing = _file(layers[index])
            key = (str(digest), routing.layer)
            arrays = beside.kept["tokens", *key]
            if not isinstance(arrays, TokenArrays):
                raise TypeError("only tokens are kept under a digest and a layer")
            _refuse(problem, arrays, Path(path).name, _place(index))
            add_digest(files, Path(path).name, key[0], _place(index))
            kept[key] = arrays
            changes = {"path": Path(path).name, "sha256": key[0]}
            named[index] = layers[index].model_copy(update={"routing": routing.model_copy(update=changes)})
    return named, kept


def _refuse_unnamed(path: str, digests: list[str | None], where: str) -> None:
    """A plan names its files by base name and digest: one that does not was changed by hand."""
    if Path(path).name != path or None in digests:
        raise BadInputError(
            f"a plan names its files by base name and sha256, got {shown_value(path)}",
            code="array_mismatch",
            where=where,
        )


def _token_files(layers: list[Layer]) -> dict[str, list[int]]:
    """Indices of the layers by the path of their token file."""
    paths: dict[str, list[int]] = {}
    for index, layer in enumerate(layers):
        if isinstance(layer.routing, FileRouting):
            paths.setdefault(layer.routing.path, []).append(index)
    return paths


def _read(found: Found, layers: list[Layer], indices: list[int], beside: Beside) -> None:
    for kind, read in (("npz", read_token_arrays), ("jsonl", read_token_lines)):
        of_kind = [index for index in indices if _file(layers[index]).kind == kind]
        if of_kind:
            wanted = {_file(layers[index]).layer for index in of_kind}
            for layer, arrays in read(found.path, wanted, _place(of_kind[0])).items():
                beside.kept["tokens", found.sha256, layer] = arrays


def _refuse(problem: HiermoeProblem, arrays: TokenArrays, name: str, where: str) -> None:
    K = arrays.expert_ids.shape[1]
    if problem.top_k != K:
        message = f"expected top_k = {problem.top_k} experts a token in {name}, got {K}"
        raise BadInputError(message, code="top_k_mismatch", where=where)
    wrong = wrong_tokens(arrays.expert_ids, arrays.source, problem.topology.gpus, problem.num_experts)
    if wrong is not None:
        raise BadInputError(f"{name}: {wrong.message}", code=wrong.code, where=where)


def _file(layer: Layer) -> FileRouting:
    if not isinstance(layer.routing, FileRouting):
        raise TypeError("the routing of this layer is in no file")
    return layer.routing


def _place(index: int) -> str:
    return f"layers.{index}.routing.path"
