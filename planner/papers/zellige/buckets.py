"""Bucket tables of Open-Sora: which resolutions and clip lengths a training recipe mixes, and in which batch sizes.

A table is {resolution: {frames: [p, batch]}}. p is a probability, or [p_use, p_keep] whose product counts, or null (no
filter, 1). ``batch`` may be null where p is 0. ``_delete_`` tells a config system to forget an older table.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from planner.documents import read_document
from planner.errors import BadInputError
from planner.fields import nearest
from planner.json_text import Json

ASPECT_MULTIPLE = 16


@dataclass(frozen=True)
class Bucket:
    """Clips of one resolution name and length; ``batch`` of them make one step's micro-batch."""

    resolution: str
    frames: int
    probability: float
    batch: int


def table_names() -> list[str]:
    """The bucket tables that come with the planner, sorted."""
    folder = resources.files("planner.papers.zellige") / "buckets"
    names = (entry.name for entry in folder.iterdir())
    return sorted(n.removesuffix(".json") for n in names if n.startswith("opensora-") and n.endswith(".json"))


def load_buckets(name_or_path: str, base_folder: Path) -> tuple[Bucket, ...]:
    """A built-in table by name, or a file (a name with a slash or ending in .json) relative to ``base_folder``."""
    if "/" in name_or_path or name_or_path.endswith(".json"):
        path = base_folder / name_or_path
        return read_buckets(read_document(str(path)), path.name)
    if name_or_path not in table_names():
        hint = nearest(name_or_path, table_names())
        known = ", ".join(table_names())
        raise BadInputError(f'unknown bucket table "{name_or_path[:80]}"{hint}; known: {known}', code="out_of_range")
    text = (resources.files("planner.papers.zellige") / "buckets" / f"{name_or_path}.json").read_text("utf-8")
    return read_buckets(json.loads(text), name_or_path)


def read_buckets(document: Json, name: str) -> tuple[Bucket, ...]:
    """The buckets that can be drawn, in the table's order. Raises BadInputError naming the cell."""
    if not isinstance(document, dict):
        raise BadInputError(f"{name}: expected an object of resolutions", code="wrong_type")
    buckets = []
    for resolution, row in document.items():
        if resolution == "_delete_":
            continue
        if not isinstance(row, dict):
            raise BadInputError(f"{name}: expected an object of frames at {resolution}", code="wrong_type")
        for frames, cell in row.items():
            bucket = _read_cell(resolution, frames, cell, f"{name} at {resolution}, {frames} frames")
            if bucket is not None:
                buckets.append(bucket)
    if not buckets:
        raise BadInputError(f"{name}: no bucket has a probability above 0", code="out_of_range")
    return tuple(buckets)


def _read_cell(resolution: str, frames: str, cell: Json, place: str) -> Bucket | None:
    if not frames.isascii() or not frames.isdigit() or not 1 <= int(frames) <= 2**20:
        raise BadInputError(f"{place}: expected frames as an integer 1..{2**20}", code="wrong_type")
    if not isinstance(cell, list) or len(cell) != 2:
        raise BadInputError(f"{place}: expected [probability, batch]", code="wrong_type")
    chance, batch = cell
    parts = [1.0] if chance is None else chance if isinstance(chance, list) else [chance]
    if not parts or not all(isinstance(p, int | float) and not isinstance(p, bool) and 0 <= p <= 1 for p in parts):
        raise BadInputError(
            f"{place}: expected a probability 0..1, [p_use, p_keep] or null, got {json.dumps(chance)[:60]} "
            "(a batch-size search table is no recipe)",
            code="out_of_range",
        )
    probability = math.prod(parts)
    if probability == 0:
        return None
    if not isinstance(batch, int) or isinstance(batch, bool) or not 1 <= batch <= 10_000_000:
        raise BadInputError(f"{place}: expected a batch >= 1, got {json.dumps(batch)[:60]}", code="out_of_range")
    return Bucket(resolution, int(frames), float(probability), batch)


def pixel_size(resolution: str, aspect: str) -> tuple[int, int]:
    """Width and height in pixels of a resolution name at an aspect ratio "width:height".

    ``720p`` and ``512``: Open-Sora 1.2's size table, at the tabulated ratio nearest in logarithm. ``256px``: an area
    of 256 x 256 at the ratio, both sides cut to multiples of 16; ``256px_ar1:1`` fixes the ratio itself.
    """
    name, _, fixed = resolution.partition("_ar")
    ratio = _aspect_ratio(fixed or aspect)
    if name.endswith("px") and name[:-2].isascii() and name[:-2].isdigit() and 16 <= int(name[:-2]) <= 2**16:
        area = int(name[:-2]) ** 2
        width = _cut(math.sqrt(area * ratio))
        return width, _cut(area / width)
    sizes = _size_tables().get(f"ASPECT_RATIO_{name.upper()}")
    if sizes is None:
        known = ", ".join(key.removeprefix("ASPECT_RATIO_").lower() for key in _size_tables())
        raise BadInputError(f'unknown resolution "{resolution[:40]}"; known: <n>px, {known}', code="out_of_range")
    height, width = min(sizes, key=lambda size: abs(math.log(size[1] / size[0] / ratio)))
    return width, height


def _cut(side: float) -> int:
    return max(ASPECT_MULTIPLE, int(side + 1e-9) // ASPECT_MULTIPLE * ASPECT_MULTIPLE)


def _aspect_ratio(aspect: str) -> float:
    width, colon, height = aspect.partition(":")
    try:
        ratio = float(width) / float(height) if colon else math.nan
    except (ValueError, ZeroDivisionError):
        ratio = math.nan
    if not 1 / 16 <= ratio <= 16:
        message = f'expected an aspect ratio like "16:9" (1:16 to 16:1), got "{aspect[:40]}"'
        raise BadInputError(message, code="out_of_range")
    return ratio


@cache
def _size_tables() -> dict[str, tuple[tuple[int, int], ...]]:
    text = (resources.files("planner.papers.zellige") / "buckets" / "sizes.json").read_text("utf-8")
    return {key: tuple((h, w) for h, w in table.values()) for key, table in json.loads(text).items()}
