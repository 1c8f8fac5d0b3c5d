"""Token-level routing from JSON Lines: a token a line, {"expert_ids": [...], "source_rank": r, "layer": l}."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import orjson

from planner.beside import lines_of
from planner.errors import BadInputError
from planner.json_text import Json, parse_json
from planner.routing.document import MAX_ASSIGNMENTS, MAX_TOKENS
from planner.routing.routed import TokenArrays
from planner.routing.token_arrays import Layers

_FIELDS = {"expert_ids", "source_rank", "layer"}


@dataclass
class _Read:
    """One layer's tokens so far: ids row after row, and K."""

    top_k: int
    ids: array[int] = field(default_factory=lambda: array("i"))
    source: array[int] = field(default_factory=lambda: array("i"))
    tokens: int = 0


def read_token_lines(path: Path, layers: Layers, where: str) -> dict[int | None, TokenArrays]:
    """The wanted layers of a file; None is the whole of a file that names none. Raises BadInputError naming the line.

    A file that names layers names one in every line, and the same holds for source ranks.
    """
    read: dict[int | None, _Read] = {}
    for name, line in lines_of(path, where):
        document = _document(line, name, where)
        layer = _integer(document, "layer", name, where)
        source = _integer(document, "source_rank", name, where)
        ids = document.get("expert_ids")
        if not isinstance(ids, list) or not all(type(value) is int for value in ids):
            raise _wrong(name, 'expected "expert_ids", a list of integers', "wrong_type", where)
        if None in layers and layer is not None:
            raise _wrong(
                name, f'the file names layers ({layer} here): expected "layer" to name one', "out_of_range", where
            )
        if layer not in layers:
            continue
        so_far = read.setdefault(layer, _Read(len(ids)))
        if len(ids) != so_far.top_k:
            message = f"expected {so_far.top_k} experts, as the tokens before, got {len(ids)}"
            raise _wrong(name, message, "top_k_mismatch", where)
        if (source is None) != (len(so_far.source) == 0) and so_far.tokens:
            raise _wrong(name, 'expected "source_rank" in all lines or in none', "missing_field", where)
        _add(so_far, ids, source, name, where)
    for layer in layers:
        if layer not in read:
            what = "no token" if layer is None else f"no token of layer {layer}"
            raise BadInputError(f"{path.name} holds {what}", code="out_of_range", where=where)
    return {layer: _arrays(so_far) for layer, so_far in read.items()}


def _document(line: bytes, name: str, where: str) -> dict[str, Json]:
    document = _quick(line) or _strict(line, name, where)
    if not isinstance(document, dict):
        raise _wrong(name, "expected an object", "wrong_type", where)
    unknown = sorted(document.keys() - _FIELDS)
    if unknown:
        message = f'unknown field "{unknown[0][:80]}"; known: expert_ids, layer, source_rank'
        raise _wrong(name, message, "unknown_field", where)
    return document


def _quick(line: bytes) -> dict[str, Json] | None:
    """The object of a plain line; None where the strict reader has to say what it is, a key that occurs twice as well.

    Only keys are quoted in a token's line, so it has two quotes a key.
    """
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) and line.count(b'"') == 2 * len(document) else None


def _strict(line: bytes, name: str, where: str) -> Json:
    try:
        return parse_json(line.decode(), name)
    except UnicodeDecodeError:
        raise _wrong(name, "no UTF-8 text", "not_json", where) from None
    except RecursionError:
        raise _wrong(name, "nested too deeply", "not_json", where) from None
    except BadInputError as error:
        raise BadInputError(error.message, code=error.code, where=where) from None


def _integer(document: dict[str, Json], field_name: str, name: str, where: str) -> int | None:
    value = document.get(field_name)
    if value is None or (type(value) is int and 0 <= value < 2**31):
        return value
    code = "source_rank_out_of_range" if field_name == "source_rank" and type(value) is int else "wrong_type"
    raise _wrong(name, f'expected "{field_name}", an integer from 0 on', code, where)


def _add(so_far: _Read, ids: list[int], source: int | None, name: str, where: str) -> None:
    so_far.tokens += 1
    if so_far.tokens > MAX_TOKENS or so_far.tokens * so_far.top_k > MAX_ASSIGNMENTS:
        raise _wrong(name, f"more than {MAX_TOKENS:,} tokens or {MAX_ASSIGNMENTS:,} ids in a layer", "too_large", where)
    try:
        so_far.ids.extend(ids)
    except OverflowError:
        raise _wrong(name, "an expert id that no 32-bit integer holds", "expert_out_of_range", where) from None
    if source is not None:
        so_far.source.append(source)


def _arrays(so_far: _Read) -> TokenArrays:
    ids = np.array(so_far.ids, np.int32).reshape(so_far.tokens, so_far.top_k)
    source = np.array(so_far.source, np.int32) if len(so_far.source) else None
    return TokenArrays(np.sort(ids, axis=1), source)


def _wrong(name: str, reason: str, code: str, where: str) -> BadInputError:
    return BadInputError(f"{name}: {reason}", code=code, where=where)
