"""Curves that do what measured curves do when something went wrong: fall, spike, jump, or cannot be predicted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profiles.checks.finding import Finding, count, row_place, row_words, title
from profiles.document import Table
from profiles.families import FAMILIES
from profiles.making.monotone import lines

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NOISE = 1.001
SPIKE = 1.5
JUMP = 8.0
SPREAD = 0.25
UNSURE = 0.3
_POWER = {"encoder_attention": 2, "prefill_attention": 2}
"""How work grows along a curve, where that is not in proportion."""


def doubtful_curves(number: int, table: Table) -> list[Finding]:
    """Steps that fall, spikes, jumps, repeats that disagree, and prices that a left-out row proves far off."""
    along = FAMILIES[table.family].along
    seconds = np.asarray(table.latency_s)
    columns = {axis: np.asarray(column, dtype=np.int64) for axis, column in table.columns.items()}
    curves = lines(columns, along)
    # Steps of all curves at once: the row below, the row above, and how the seconds and the size change.
    low = np.concatenate([curve[:-1] for curve in curves])
    high = np.concatenate([curve[1:] for curve in curves])
    grows = seconds[high] / seconds[low]
    found = [
        *_falls(number, table, low, high, grows),
        *_spikes(number, table, seconds, curves),
        *_jumps(
            number, table, high, grows / (columns[along][high] / columns[along][low]) ** _POWER.get(table.family, 1)
        ),
    ]
    if table.repeat_spread is not None and table.repeat_spread.p90 > SPREAD:
        what = f"repeats lie {table.repeat_spread.p90:.0%} (p90) from their median"
        place = f"tables.{number}.repeat_spread"
        found.append(_odd("repeats_disagree", table, place, what, f"p90 up to {SPREAD:.0%}", "measure more repeats"))
    worst = max((error for error in table.errors if error.rows), key=lambda error: error.median, default=None)
    if worst is not None and worst.median > UNSURE:
        words = ", ".join(text for text in worst.model_dump().values() if isinstance(text, str) and text)
        what = f"with {words} left out, prices are {worst.median:.0%} off in the median"
        place, fix = f"tables.{number}.errors.{table.errors.index(worst)}", "measure more values of that axis"
        found.append(_odd("unsure_prices", table, place, what, f"a median up to {UNSURE:.0%}", fix))
    return found


def _falls(number: int, table: Table, low: Ints, high: Ints, grows: Floats) -> list[Finding]:
    falls = np.flatnonzero(grows < 1.0 / NOISE)
    if not len(falls):
        return []
    worst = int(falls[np.argmin(grows[falls])])
    before, after = int(low[worst]), int(high[worst])
    what = (
        f"{len(falls)} of {count(len(grows), 'step')} get faster with size, the worst by {1 / grows[worst]:.3g}: "
        f"from {table.latency_s[before]:.4g} s to {row_words(table, after)}"
    )
    fix = "measure again, or let an importer drop such rows; as it is, a plan may gain from adding work"
    place = row_place(number, after)
    return [_odd("faster_with_size", table, place, what, "seconds that do not fall along a curve", fix)]


def _spikes(number: int, table: Table, seconds: Floats, curves: list[Ints]) -> list[Finding]:
    """Rows off both neighbours, which themselves agree with each other's order."""
    inner = [curve for curve in curves if len(curve) >= 3]
    if not inner:
        return []
    row = np.concatenate([curve[1:-1] for curve in inner])
    before = seconds[np.concatenate([curve[:-2] for curve in inner])]
    after = seconds[np.concatenate([curve[2:] for curve in inner])]
    size = np.maximum(seconds[row] / np.maximum(before, after), np.minimum(before, after) / seconds[row])
    spikes = np.flatnonzero((size > SPIKE) & (before <= after * NOISE))
    if not len(spikes):
        return []
    worst = int(spikes[np.argmax(size[spikes])])
    what = f"{count(len(spikes), 'spike')}, the worst {size[worst]:.3g} off both neighbours: "
    what += row_words(table, row[worst])
    fix = "leave the row out or measure it again"
    return [_odd("spike", table, row_place(number, row[worst]), what, f"within {SPIKE} of a neighbour", fix)]


def _jumps(number: int, table: Table, high: Ints, steepness: Floats) -> list[Finding]:
    jumps = np.flatnonzero(steepness > JUMP)
    if not len(jumps):
        return []
    worst = int(jumps[np.argmax(steepness[jumps])])
    what = f"{count(len(jumps), 'step')} cost more than the work they add, the worst {steepness[worst]:.3g} times: "
    what += f"up to {row_words(table, high[worst])}"
    fix = "part of a curve in another unit looks like this; else measure both sides again"
    return [
        _odd("jump", table, row_place(number, high[worst]), what, f"at most {JUMP:g} times what the work grows by", fix)
    ]


def _odd(code: str, table: Table, where: str, what: str, expected: str, fix: str) -> Finding:
    return Finding(code, "warning", title(table), where, what, expected, fix)
