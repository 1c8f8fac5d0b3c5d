"""What the routing of a problem's layers names by file: counts are read into it, tokens into arrays beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from planner.beside import Beside, Found, add_digest, find
from planner.errors import BadInputError
from planner.routing.counts_files import read_counts
from planner.routing.document import FileRouting, LoadsRouting, Routing
from planner.routing.faults import Wrong
from planner.routing.routed import TokenArrays, TokenFiles
from planner.routing.token_arrays import read_token_arrays
from planner.routing.token_lines import read_token_lines
from planner.validation import shown_value

Fault = Callable[[TokenArrays], Wrong | None]
"""What is wrong with the tokens of a file in a problem."""


def with_files(
    routings: Sequence[Routing],
    places: Sequence[str],
    experts: int,
    fault: Fault,
    beside: Beside,
    files: dict[str, str],
) -> tuple[list[Routing], TokenFiles]:
    """Routings without paths: counts written out, token files named by base name and digest; and their arrays.

    ``places`` are the paths of the routings in the problem; the digests of the files read are added to ``files``.
    Raises BadInputError: a file that is missing or another, is not what it should be, or does not fit the problem.
    """
    counted = [
        _with_loads(routing, experts, beside, files, place) for routing, place in zip(routings, places, strict=True)
    ]
    return _with_tokens(counted, places, fault, beside, files)


def _with_loads(routing: Routing, experts: int, beside: Beside, files: dict[str, str], place: str) -> Routing:
    if not isinstance(routing, LoadsRouting) or routing.path is None:
        return routing
    where = f"{place}.path"
    found = find(beside, routing.path, None, where)
    add_digest(files, found.name, found.sha256, where)
    counts = beside.kept.get(("counts", found.sha256, experts))
    if not isinstance(counts, list):
        counts = read_counts(found.path, experts, where)
        beside.kept["counts", found.sha256, experts] = counts
    wanted = 0 if routing.layer is None and len(counts) == 1 else routing.layer
    if wanted is None or wanted >= len(counts):
        got = "none" if wanted is None else wanted
        held = f"{len(counts)} layer{'s' if len(counts) > 1 else ''}"
        message = f'{found.name} holds {held}: expected "layer" of 0 to {len(counts) - 1}, got {got}'
        raise BadInputError(message, code="out_of_range", where=f"{place}.layer")
    load = tuple(float(count) for count in counts[wanted])
    return routing.model_copy(update={"expert_load": load, "path": None, "layer": None})


def _with_tokens(
    routings: list[Routing], places: Sequence[str], fault: Fault, beside: Beside, files: dict[str, str]
) -> tuple[list[Routing], TokenFiles]:
    """A file is read once for all the routings that name it."""
    named = list(routings)
    kept: TokenFiles = {}
    for path, of_file in _by_file(routings).items():
        wheres = {index: f"{places[index]}.path" for index in of_file}
        if beside.base_names:
            _refuse_unnamed(path, [routing.sha256 for routing in of_file.values()], next(iter(wheres.values())))
        digests = {index: routing.sha256 for index, routing in of_file.items()}
        if not all(("tokens", digest, of_file[index].layer) in beside.kept for index, digest in digests.items()):
            for index, digest in digests.items():
                found = find(beside, path, digest, wheres[index])
                digests[index] = found.sha256
            _read(found, of_file, wheres, beside)
        for index, digest in digests.items():
            routing = of_file[index]
            key = (str(digest), routing.layer)
            arrays = beside.kept["tokens", *key]
            if not isinstance(arrays, TokenArrays):
                raise TypeError("only tokens are kept under a digest and a layer")
            if (wrong := fault(arrays)) is not None:
                raise BadInputError(f"{Path(path).name}: {wrong.message}", code=wrong.code, where=wheres[index])
            add_digest(files, Path(path).name, key[0], wheres[index])
            kept[key] = arrays
            named[index] = routing.model_copy(update={"path": Path(path).name, "sha256": key[0]})
    return named, kept


def _refuse_unnamed(path: str, digests: list[str | None], where: str) -> None:
    """A plan names its files by base name and digest: one that does not was changed by hand."""
    if Path(path).name != path or None in digests:
        raise BadInputError(
            f"a plan names its files by base name and sha256, got {shown_value(path)}",
            code="array_mismatch",
            where=where,
        )


def _by_file(routings: Sequence[Routing]) -> dict[str, dict[int, FileRouting]]:
    """The routings that name a token file, by its path and then by their index."""
    paths: dict[str, dict[int, FileRouting]] = {}
    for index, routing in enumerate(routings):
        if isinstance(routing, FileRouting):
            paths.setdefault(routing.path, {})[index] = routing
    return paths


def _read(found: Found, of_file: dict[int, FileRouting], wheres: dict[int, str], beside: Beside) -> None:
    for kind, read in (("npz", read_token_arrays), ("jsonl", read_token_lines)):
        of_kind = {index: routing for index, routing in of_file.items() if routing.kind == kind}
        if of_kind:
            wanted = {routing.layer for routing in of_kind.values()}
            for layer, arrays in read(found.path, wanted, wheres[next(iter(of_kind))]).items():
                beside.kept["tokens", found.sha256, layer] = arrays
