"""Assignments by expert from a file of counts.

Read are, in JSON (where it applies, arrays of the same names in .npz):

    [{"0": 15352, "41": 78768, ...}, ...]     OLMoE and Mixtral lists: one object a layer, absent experts got nothing
    [{"0|37": 129, ...}, ...]                 their lists of pairs of neighbouring layers, whose sums are the loads
    {"logical_count": [L][E]}                 SGLang's recorder, or [steps][L][E], which is summed over the steps
    {"physical_count": [L][P] or [steps][L][P], "physical_to_logical_map": [L][P]}    the same by slot, with the map
    [L][E]                                    plain counts

SGLang writes its recordings with torch, as .pt, which is a pickle and is not read: save the array as JSON or .npz.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planner.documents import read_document
from planner.errors import BadInputError
from planner.json_text import Json
from planner.routing.array_files import ARRAY_ERRORS, Origin, read_array
from planner.routing.pair_counts import Counts, is_pair, loads_of_pairs, parse_expert, parse_pair

MAX_NUMBERS = 2**26
"""Counts of one file."""
MAX_COUNT = 2.0**53

PICKLED = (".pt", ".pth", ".pkl", ".pickle")

_KEYS = ("logical_count", "physical_count", "physical_to_logical_map")


def read_counts(path: Path, experts: int, where: str) -> list[NDArray[np.float64]]:
    """The loads [E] of every layer of a file, in its order. Raises BadInputError."""
    name = path.name
    if path.suffix in PICKLED:
        raise _wrong(f"{name}: pickles are never read; save logical_count as JSON or .npz", "wrong_type", where)
    if _starts_with(path, b"\x93NUMPY"):
        raise _wrong(f"{name}: counts are read as JSON or .npz; save the array so", "wrong_type", where)
    document = _npz(path, where) if _starts_with(path, b"PK") else _json(path, where)
    if isinstance(document, list) and document and all(isinstance(layer, dict) for layer in document):
        return [counts.astype(np.float64) for counts in _lists(document, experts, name, where)]
    if isinstance(document, list):
        return _layers(_matrix(document, "the counts", name, where), experts, "the counts", name, where)
    if not isinstance(document, Mapping):
        raise _wrong(f"{name} holds no counts: expected a list of layers or an object", "wrong_type", where)
    if "logical_count" in document:
        key = "logical_count"
        return _layers(_matrix(document[key], key, name, where), experts, key, name, where)
    if "physical_count" in document:
        return _physical(document, experts, name, where)
    message = f"{name} holds no counts: expected logical_count, or physical_count with physical_to_logical_map"
    raise _wrong(message, "missing_field", where)


def _lists(document: list[dict[str, Json]], experts: int, name: str, where: str) -> list[Counts]:
    if not any(is_pair(key) for key in document[0]):
        return [_loads(layer, index, experts, name, where) for index, layer in enumerate(document)]
    if len(document) * experts * experts > MAX_NUMBERS:
        raise _wrong(f"{name}: more than {MAX_NUMBERS:,} pairs", "too_large", where)
    pairs = []
    for index, layer in enumerate(document):
        counts = np.zeros((experts, experts), np.int64)
        for key, value in layer.items():
            pair = parse_pair(key)
            if pair is None or max(pair) >= experts:
                message = f'{name}, layer {index}: expected pairs "a|b" of experts 0 to {experts - 1}, got "{key[:40]}"'
                raise _wrong(message, "expert_out_of_range", where)
            counts[pair] = _whole(value, index, key, name, where)
        pairs.append(counts)
    return loads_of_pairs(pairs, name, where)


def _loads(layer: dict[str, Json], index: int, experts: int, name: str, where: str) -> Counts:
    counts = np.zeros(experts, np.int64)
    for key, value in layer.items():
        expert = parse_expert(key)
        if expert is None or expert >= experts:
            message = f'{name}, layer {index}: expected experts 0 to {experts - 1}, got "{key[:40]}"'
            raise _wrong(message, "expert_out_of_range", where)
        counts[expert] = _whole(value, index, key, name, where)
    return counts


def _whole(value: Json, index: int, key: str, name: str, where: str) -> int:
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        message = f'{name}, layer {index}: expected a count from 0 on for "{key[:40]}", got {str(value)[:40]}'
        raise _wrong(message, "out_of_range", where)
    return value


def _layers(counts: NDArray[np.float64], experts: int, key: str, name: str, where: str) -> list[NDArray[np.float64]]:
    """Counts [L, E] or [steps, L, E] as loads by layer."""
    if counts.shape[-1] != experts:
        message = f"expected {key} of {experts} experts in {name}, got {counts.shape[-1]}"
        raise _wrong(message, "out_of_range", where)
    return list(counts.sum(axis=0) if counts.ndim == 3 else counts)


def _physical(document: Mapping[str, Json], experts: int, name: str, where: str) -> list[NDArray[np.float64]]:
    if "physical_to_logical_map" not in document:
        message = f"{name}: physical_count counts slots; expected physical_to_logical_map beside it"
        raise _wrong(message, "missing_field", where)
    counts = _matrix(document["physical_count"], "physical_count", name, where)
    table = _matrix(document["physical_to_logical_map"], "physical_to_logical_map", name, where)
    counts = counts.sum(axis=0) if counts.ndim == 3 else counts
    if table.shape != counts.shape:
        message = f"{name}: expected physical_to_logical_map of shape {list(counts.shape)}, got {list(table.shape)}"
        raise _wrong(message, "out_of_range", where)
    if (table != np.floor(table)).any() or (table >= experts).any():
        raise _wrong(
            f"{name}: expected physical_to_logical_map of experts 0 to {experts - 1}", "expert_out_of_range", where
        )
    return [
        np.bincount(slots.astype(np.int64), weights=row, minlength=experts).astype(np.float64)
        for slots, row in zip(table, counts, strict=True)
    ]


def _matrix(value: Json, key: str, name: str, where: str) -> NDArray[np.float64]:
    """A list of lists of counts as an array of 2 or 3 axes, no number below 0."""
    _refuse_other_than_numbers(value, key, name, where)
    try:
        array = np.array(value, np.float64)
    except ValueError:
        raise _wrong(f"{name}: the rows of {key} differ in length", "out_of_range", where) from None
    if array.ndim not in (2, 3) or 0 in array.shape:
        message = f"expected {key} of shape [layers, experts] in {name}, got {list(array.shape)}"
        raise _wrong(message, "out_of_range", where)
    outside = ~((array >= 0) & (array <= MAX_COUNT))
    if outside.any():
        place = [int(index) for index in np.argwhere(outside)[0]]
        message = f"expected counts from 0 on in {key} of {name}, got {array[tuple(place)]:g} at {place}"
        raise _wrong(message, "out_of_range", where)
    return array


def _refuse_other_than_numbers(value: Json, key: str, name: str, where: str) -> None:
    if isinstance(value, np.ndarray):
        return
    parts = value if isinstance(value, list) else [value]
    for part in parts:
        if isinstance(part, list):
            _refuse_other_than_numbers(part, key, name, where)
        elif isinstance(part, bool) or not isinstance(part, int | float):
            raise _wrong(f"expected numbers in {key} of {name}, got {str(part)[:40]}", "wrong_type", where)


def _json(path: Path, where: str) -> Json:
    try:
        return read_document(str(path))
    except BadInputError as error:
        raise BadInputError(error.message, code=error.code, where=where) from None


def _npz(path: Path, where: str) -> dict[str, Json]:
    """The arrays of counts in an archive, each no larger than its header may say."""
    arrays: dict[str, Json] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for key in _KEYS:
                if f"{key}.npy" in archive.namelist():
                    with archive.open(f"{key}.npy") as member:
                        arrays[key] = read_array(member, "iuf", MAX_NUMBERS, Origin(key, path.name, where))
    except ARRAY_ERRORS as error:
        raise _wrong(f"{path.name} is no .npz file: {error}", "wrong_type", where) from None
    return arrays


def _starts_with(path: Path, magic: bytes) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(magic)) == magic


def _wrong(message: str, code: str, where: str) -> BadInputError:
    return BadInputError(message, code=code, where=where)
