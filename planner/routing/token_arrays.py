"""Token-level routing from NumPy files: .npz with ``expert_ids`` and ``source_rank``, or .npy with ``expert_ids``."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from planner.errors import BadInputError
from planner.routing.array_files import (
    ARRAY_ERRORS,
    Header,
    Origin,
    is_array,
    read_array,
    read_header,
    read_numbers,
)
from planner.routing.document import MAX_ASSIGNMENTS, MAX_TOKENS
from planner.routing.routed import TokenArrays

MAX_NUMBERS = 2**30
"""Ids of all layers of a file, of which those of the wanted layers are kept."""
INTEGERS = "iu"

Layers = Collection[int | None]


def read_token_arrays(path: Path, layers: Layers, where: str) -> dict[int | None, TokenArrays]:
    """The wanted layers of a file; None is the whole of a file that holds one layer. Raises BadInputError."""
    ids, ranks = Origin("expert_ids", path.name, where), Origin("source_rank", path.name, where)
    try:
        with path.open("rb") as stream:
            plain = is_array(stream.read(6))
            stream.seek(0)
            if plain:
                return _read(stream, None, layers, ids)
            with zipfile.ZipFile(stream) as archive:
                names = archive.namelist()
                if "expert_ids.npy" not in names:
                    listed = ", ".join(sorted(name.removesuffix(".npy") for name in names)[:5]) or "nothing"
                    raise ids.wrong(f"missing; the file holds {listed[:200]}", "missing_field")
                source = None
                if "source_rank.npy" in names:
                    with archive.open("source_rank.npy") as member:
                        source = _sources(read_array(member, INTEGERS, MAX_TOKENS, ranks), ranks)
                with archive.open("expert_ids.npy") as member:
                    return _read(member, source, layers, ids)
    except ARRAY_ERRORS as error:
        message = f"{path.name} is no .npz or .npy file that can be read: {error}"
        raise BadInputError(message, code="wrong_type", where=where) from None


def _sources(numbers: NDArray[Any], origin: Origin) -> NDArray[np.int32]:
    if numbers.ndim != 1:
        raise origin.wrong(f"expected shape [tokens], got {list(numbers.shape)}", "out_of_range")
    return _narrow(numbers, origin, "source_rank_out_of_range")


def _read(
    stream: IO[bytes], source: NDArray[np.int32] | None, layers: Layers, origin: Origin
) -> dict[int | None, TokenArrays]:
    header = read_header(stream, INTEGERS, MAX_NUMBERS, origin)
    _refuse_shape(header, source, origin)
    _refuse_layers(layers, header.shape[0] if len(header.shape) == 3 else None, origin)
    T, K = header.shape[-2:]
    found: dict[int | None, TokenArrays] = {}
    passed = 0
    for layer in sorted({given or 0 for given in layers}):
        read_numbers(stream, (layer - passed) * T * K, header.dtype, keep=False)
        passed = layer + 1
        ids = read_numbers(stream, T * K, header.dtype).reshape(T, K, order="F" if header.fortran else "C")
        narrow = np.sort(_narrow(ids, origin, "expert_out_of_range"), axis=1)
        found |= dict.fromkeys([given for given in layers if (given or 0) == layer], TokenArrays(narrow, source))
    return found


def _refuse_shape(header: Header, source: NDArray[np.int32] | None, origin: Origin) -> None:
    shape = header.shape
    if len(shape) not in (2, 3):
        raise origin.wrong(f"expected shape [tokens, K] or [layers, tokens, K], got {list(shape)}", "out_of_range")
    if len(shape) == 3 and header.fortran:
        raise origin.wrong("expected C order (numpy.ascontiguousarray), got Fortran order", "out_of_range")
    if shape[-2] > MAX_TOKENS or math.prod(shape[-2:]) > MAX_ASSIGNMENTS:
        limits = f"{MAX_TOKENS:,} tokens and {MAX_ASSIGNMENTS:,} ids"
        raise origin.wrong(f"expected at most {limits} a layer, got {list(shape)}", "too_large")
    if source is not None and len(source) != shape[-2]:
        message = f"expected as many tokens as source_rank has, {len(source)}, got {list(shape)}"
        raise origin.wrong(message, "out_of_range")


def _refuse_layers(layers: Layers, count: int | None, origin: Origin) -> None:
    for layer in layers:
        if count is None and layer is not None:
            raise origin.wrong(f'it holds one layer: leave "layer" out, got {layer}', "out_of_range")
        if count is not None and layer is None:
            raise origin.wrong(f'it holds {count} layers: expected "layer" to name one', "missing_field")
        if count is not None and layer is not None and layer >= count:
            raise origin.wrong(f'expected "layer" below {count}, got {layer}', "out_of_range")


def _narrow(numbers: NDArray[Any], origin: Origin, code: str) -> NDArray[np.int32]:
    outside = (numbers < 0) | (numbers >= 2**31)
    if outside.any():
        place = [int(index) for index in np.argwhere(outside)[0]]
        raise origin.wrong(f"expected numbers from 0 on, got {numbers[tuple(place)]} at {place}", code)
    return numbers.astype(np.int32)
