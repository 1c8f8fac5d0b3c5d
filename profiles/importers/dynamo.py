"""What Dynamo's profiler leaves for its planner: time to first token by prompt, time between tokens by load.

`raw_data.npz` or `*_raw_data.json` of ai-dynamo/dynamo (docs of the SLA planner, components/planner): `prefill_isl` and
`prefill_ttft` (ms) of one prompt alone on the engine; `x_kv_usage` (fraction of `max_kv_tokens`), `y_context_length`
(prompt + half the output) and `z_itl` (ms) under load. Engines are of one model, precision and number of GPUs, which
the files do not name. `*_thpt_per_gpu` only checks the unit: it must give a number of GPUs that exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from profiles.document import Device, Provenance
from profiles.errors import ProfileError, shown
from profiles.importers.assembly import Found, Imported, Options, assemble, known_families
from profiles.importers.foreign import as_text, read_file, refuse_other
from profiles.importers.npz import read_npz
from profiles.making.building import RawRows
from profiles.strict_json import parse
from profiles.table import LARGEST_AXIS_VALUE

Floats = npt.NDArray[np.float64]
Arrays = Mapping[str, Floats]

FAMILIES = ("engine_prefill", "engine_decode")
PREFILL = ("prefill_isl", "prefill_ttft", "prefill_thpt_per_gpu")
DECODE = ("x_kv_usage", "y_context_length", "z_itl", "z_thpt_per_gpu", "max_kv_tokens")
_MOCKER = ("prefill_ttft_ms", "decode_active_kv_tokens")
_FEWEST_GPUS, _MOST_GPUS = 0.5, 512
"""Of one engine: three orders of magnitude, so that no engine passes in a unit a thousand times off."""
_WHOLE = ("files of one engine; dtype only names the table: the engine's own precision is not stated",)
_INSIDE = (
    "selected_prefill_interpolation/raw_data.npz",
    "selected_decode_interpolation/raw_data.npz",
    "prefill_raw_data.json",
    "decode_raw_data.json",
)


def import_results(files: Sequence[str], options: Options) -> Imported:
    """One profile from the results of one engine: `.npz` or JSON files, or the folder that holds them.

    Raises `ProfileError` if a file is something else, its times are not milliseconds, or no row is left.
    """
    known_families(options.families, FAMILIES)
    rows: list[RawRows] = []
    refused: list[str] = []
    names: list[str] = []
    for path in (path for given in files for path in _inside(given)):
        data, name = read_file(path), Path(path).name
        arrays = _arrays(data, name)
        names.append(name)
        if any(key in arrays for key in PREFILL):
            rows.append(_prefill(arrays, name, refused))
        if any(key in arrays for key in DECODE):
            rows.append(_decode(arrays, name, refused))
        if any(key in arrays for key in _MOCKER):
            raise ProfileError(
                f"{shown(name)} is in the format of Dynamo's mocker, fitted curves and not measurements: give the "
                "profiler's raw_data.npz",
                code="unknown_field",
            )
        if not any(key in arrays for key in (*PREFILL, *DECODE)):
            _refuse_keys(list(arrays), name)
    twice = [family for family in FAMILIES if sum(raw.family == family for raw in rows) > 1]
    if twice:
        raise ProfileError(
            f"two of the files hold {twice[0]}: one profile is of one engine", code="duplicate_id", where="files"
        )
    found = Found(
        rows=rows,
        device=Device(name="unknown device"),
        provenance=Provenance(
            id="dynamo",
            title="Dynamo profiler results (ai-dynamo/dynamo, raw_data)",
            licence="as given by their owner",
            files=names,
            note=f"{len(refused)} points refused",
        ),
        notes=[*_WHOLE, "throughput per GPU is not stored: it only checks the times' unit"],
        refused=refused,
    )
    return assemble(found, "dynamo-engine", options)


def _refuse_keys(keys: Sequence[str], name: str) -> NoReturn:
    held = ", ".join(map(shown, keys[:6])) or "nothing"
    raise ProfileError(f"{shown(name)} holds {held}; expected {', '.join((*PREFILL, *DECODE))}", code="missing_field")


def _inside(given: str) -> list[str]:
    folder = Path(given)
    if not folder.is_dir():
        return [given]
    found = [str(folder / name) for name in _INSIDE if (folder / name).is_file()]
    if not found:
        raise ProfileError(
            f"the folder {shown(folder.name)} holds none of {', '.join(_INSIDE)}", code="missing_field", where=given
        )
    return found


def _arrays(data: bytes, name: str) -> Arrays:
    if data[:4] == b"PK\x03\x04":
        arrays: Arrays = read_npz(data, name)
    else:
        refuse_other(data, name, "dynamo")
        as_text(data, name, "dynamo")
        value = parse(data, name)
        if not isinstance(value, dict):
            raise ProfileError(f"{shown(name)}: expected an object of arrays", code="wrong_type")
        known = (*PREFILL, *DECODE, *_MOCKER)
        if not any(key in value for key in known):
            _refuse_keys(list(value), name)
        arrays = {key: _numbers(value[key], f"{name}: {key}") for key in known if key in value}
    return {key: array.reshape(-1) for key, array in arrays.items()}


def _numbers(value: object, place: str) -> Floats:
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, int | float) and not isinstance(item, bool) for item in items):
        raise ProfileError(f"{shown(place)}: expected a list of numbers", code="wrong_type", where=place)
    return np.array(items, dtype=np.float64)


def _columns(arrays: Arrays, names: Sequence[str], name: str) -> list[Floats]:
    missing = [key for key in names if key not in arrays]
    if missing:
        raise ProfileError(f"{shown(name)} lacks {', '.join(missing)}", code="missing_field", where=missing[0])
    columns = [arrays[key] for key in names]
    if len({len(column) for column in columns}) > 1:
        sizes = ", ".join(f"{key} {len(column)}" for key, column in zip(names, columns, strict=True))
        raise ProfileError(f"{shown(name)}: arrays of different lengths: {sizes}", code="wrong_type")
    return columns


def _prefill(arrays: Arrays, name: str, refused: list[str]) -> RawRows:
    length, first, rate = _columns(arrays, PREFILL, name)
    seconds = first * 1e-3
    _check_unit(length, seconds, rate, f"{name}: prefill_ttft")
    usable = _usable({"prefill_isl": length, "prefill_ttft": first}, name, refused)
    return RawRows(
        "engine_prefill", "bf16", {"length": _whole(length[usable])}, seconds[usable], "dynamo", policy=_WHOLE
    )


def _decode(arrays: Arrays, name: str, refused: list[str]) -> RawRows:
    usage, context, between, rate = _columns(arrays, DECODE[:4], name)
    (capacity,) = _columns(arrays, DECODE[4:], name)
    if len(capacity) != 1 or not 1 <= capacity[0] < LARGEST_AXIS_VALUE:
        raise ProfileError(f"{shown(name)}: expected max_kv_tokens as one number >= 1", code="out_of_range")
    seconds, tokens = between * 1e-3, usage * capacity[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        _check_unit(tokens / context, seconds, rate, f"{name}: z_itl")
    usable = _usable({"x_kv_usage": usage, "y_context_length": context, "z_itl": between}, name, refused)
    above = usable & (usage > 1)
    refused += [f"{name}:{at}: x_kv_usage {usage[at]:g} is above 1" for at in np.flatnonzero(above)]
    usable &= ~above
    policy = (
        *_WHOLE,
        f"kv_tokens is x_kv_usage x max_kv_tokens ({capacity[0]:g}) and kv_length the mean context, as whole tokens",
    )
    columns = {"kv_length": _whole(context[usable]), "kv_tokens": _whole(tokens[usable])}
    return RawRows("engine_decode", "bf16", columns, seconds[usable], "dynamo", policy=policy)


def _usable(columns: Mapping[str, Floats], name: str, refused: list[str]) -> npt.NDArray[np.bool_]:
    """Points with every number positive and within an axis; the others are refused by place (from 0)."""
    good = np.ones(len(next(iter(columns.values()))), dtype=bool)
    for key, column in columns.items():
        right = np.isfinite(column) & (column > 0) & (column < LARGEST_AXIS_VALUE)
        refused += [f"{name}:{at}: expected {key} > 0, got {column[at]:g}" for at in np.flatnonzero(good & ~right)]
        good &= right
    return good


def _whole(values: Floats) -> npt.NDArray[np.int64]:
    return np.maximum(np.rint(values), 1).astype(np.int64)


def _check_unit(work: Floats, seconds: Floats, rate: Floats, place: str) -> None:
    """work / seconds / (throughput a GPU) is the number of GPUs: one that no engine has means another unit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gpus = work / seconds / rate
    gpus = gpus[np.isfinite(gpus) & (gpus > 0)]
    if not len(gpus):
        raise ProfileError(
            f"{shown(place)} cannot be checked to be milliseconds: the throughput beside it is nowhere > 0",
            code="out_of_range",
        )
    number = float(np.median(gpus))
    if not _FEWEST_GPUS <= number <= _MOST_GPUS:
        raise ProfileError(
            f"{shown(place)} would mean {number:.4g} GPUs by the throughput beside it, an engine has "
            f"{_FEWEST_GPUS:g}..{_MOST_GPUS}: expected milliseconds, these look like "
            f"{'seconds' if number > _MOST_GPUS else 'microseconds'}",
            code="out_of_range",
        )
