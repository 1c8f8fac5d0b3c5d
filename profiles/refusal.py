"""The message of a refused lookup: family, axis, asked value, measured range, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from profiles.families import COLLECTIVES
from profiles.roofline import MODELS
from profiles.table import CostTable

Floats = npt.NDArray[np.float64]
Key = tuple[str, str, str, str]


def outside_message(
    profile: str, key: Key, table: CostTable, query: Mapping[str, Floats], q_len: Floats | None = None
) -> str:
    """One line about the first query that lies outside `table`; `q_len` where it is not the length of the keys."""
    outside = table.look_up(query).outside
    first = int(np.flatnonzero(outside)[0])
    point = {axis: float(query[axis][first]) for axis in table.family.axes}
    more = int(outside.sum()) - 1
    tail = f"; {more} more lookups like it" if more else ""
    reason = _reason(table, point)
    if q_len is not None:
        asked = f"q_len {q_len[first]:g} with kv_len {point['length']:g}"
        reason = f"{asked} counts as heads x q_len / kv_len heads of length kv_len, and {reason}"
    return f"{_spell(key)} of profile {profile}: {reason}{tail}. {_advice(table)}"


def _reason(table: CostTable, point: Mapping[str, float]) -> str:
    family = table.family
    group = tuple(point[axis] for axis in family.exact)
    grid = table.grids.get(tuple(int(v) for v in group)) if all(v == int(v) for v in group) else None
    if grid is None:
        for axis in family.exact:
            values = sorted({int(g[family.exact.index(axis)]) for g in table.grids})
            if point[axis] not in values:
                shown = ", ".join(map(str, values[:12])) + (", ..." if len(values) > 12 else "")
                return f"{axis} {point[axis]:g} was not measured (measured: {shown})"
        together = ", ".join(f"{axis} {point[axis]:g}" for axis in family.exact)
        return f"{together} were not measured together"
    for position, axis in enumerate(family.outer):
        low, high = grid.bounds(position)
        if not low <= point[axis] <= high:
            return f"{axis} {point[axis]:g} is outside the measured {low}..{high}"
    low, high = grid.along_bounds
    where = ", ".join(f"{axis} {point[axis]:g}" for axis in (*family.exact, *family.outer))
    if not low <= point[family.along] <= high:
        return f"{family.along} {point[family.along]:g} is outside the measured {low}..{high}"
    return f"{family.along} {point[family.along]:g} has no measured neighbours at {where}"


def _advice(table: CostTable) -> str:
    if table.family.name not in MODELS:
        return f"Import or measure such rows: {table.family.name} has no formula to extrapolate with"
    if table.family.name in COLLECTIVES:
        return "Describe the link between nodes in the cluster, or import a log measured at this size"
    return "Say `extrapolate: roofline` to price it from a fitted model, or import or measure such rows"


def absent_message(profile: str, key: Key, known: list[Key]) -> str:
    """One line about a table that the profile does not have, and what it has instead."""
    same = sorted(_spell(other) for other in known if other[0] == key[0])
    has = f"it has {', '.join(same)}" if same else f"its families are {', '.join(sorted({k[0] for k in known}))}"
    advice = "import or measure them"
    if key[0] == "encoder_attention" and ("prefill_attention", key[1], "", "") in known:
        advice += ", or say `extrapolate: roofline` to compose them from causal rows"
    if key[0] in ("mla_prefill", "mla_decode", "mla_bmm"):
        advice += ", or say `extrapolate: roofline` to model them from rows of grouped heads and of products"
    return f"profile {profile} has no {_spell(key)} rows ({has}): {advice}"


def _spell(key: Key) -> str:
    return "/".join(part for part in key if part)
