"""Where the experts are now, from the expert maps of runtimes: one table of slots a layer of the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from planner.documents import read_document
from planner.errors import BadInputError
from planner.json_text import Json

MapFormat = Literal["sglang", "vllm_ascend"]
Tables = Mapping[int, tuple[int, ...]]
"""physical_to_logical by layer, as the file numbers them."""


def read_map(path: Path, form: MapFormat, where: str) -> Tables:
    """The tables of a file. Raises BadInputError for anything but integers in the form named.

    ``sglang``: {"physical_to_logical_map": [[...] a layer]}, layers from 0 with the dense ones. ``vllm_ascend``:
    {"layer_list": [{"layer_id", "device_list": [{"device_id", "device_expert": [...]}]}]}, layers with experts from 0.
    """
    try:
        document = read_document(str(path))
    except BadInputError as error:
        raise BadInputError(error.message, code=error.code, where=where) from None
    read = _sglang if form == "sglang" else _vllm_ascend
    try:
        return read(document)
    except _OddError as error:
        message = f"{path.name} is no expert map of {form}: {error}"
        raise BadInputError(message, code="wrong_type", where=where) from None


class _OddError(Exception):
    """What is odd about a document."""


def _sglang(document: Json) -> Tables:
    layers = _list(_field(document, "physical_to_logical_map", "the file"), "physical_to_logical_map")
    return {index: _experts(layer, f"layer {index}") for index, layer in enumerate(layers)}


def _vllm_ascend(document: Json) -> Tables:
    tables: dict[int, tuple[int, ...]] = {}
    for layer in _list(_field(document, "layer_list", "the file"), "layer_list"):
        number = _integer(_field(layer, "layer_id", "a layer"), "layer_id")
        place = f"layer {number}"
        if number in tables:
            raise _OddError(f"{place} occurs twice")
        tables[number] = _by_device(_list(_field(layer, "device_list", place), f"device_list of {place}"), place)
    return tables


def _by_device(devices: list[Json], place: str) -> tuple[int, ...]:
    held: dict[int, tuple[int, ...]] = {}
    for device in devices:
        number = _integer(_field(device, "device_id", place), "device_id")
        if number in held:
            raise _OddError(f"device {number} of {place} occurs twice")
        held[number] = _experts(_field(device, "device_expert", place), f"device {number} of {place}")
    if sorted(held) != list(range(len(held))):
        raise _OddError(f"expected the devices of {place} to be 0 to {len(held) - 1}")
    if len({len(experts) for experts in held.values()}) > 1:
        raise _OddError(f"expected as many slots on every device of {place}")
    return tuple(expert for number in sorted(held) for expert in held[number])


def _field(document: Json, name: str, place: str) -> Json:
    if not isinstance(document, dict) or name not in document:
        raise _OddError(f'expected "{name}" in {place}')
    return document[name]


def _list(value: Json, name: str) -> list[Json]:
    if not isinstance(value, list):
        raise _OddError(f"expected {name} to be a list")
    return value


def _integer(value: Json, name: str) -> int:
    if type(value) is not int or not 0 <= value <= 1_000_000:
        raise _OddError(f"expected {name} to be an integer from 0 on")
    return value


def _experts(value: Json, place: str) -> tuple[int, ...]:
    return tuple(_integer(expert, f"every slot of {place}") for expert in _list(value, place))
