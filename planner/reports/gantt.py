"""A timeline in a terminal: one line of characters a track, ticks of time, a legend."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from planner import console
from planner.printable import printable
from planner.reports.palette import style
from planner.units import scale
from planner.view import Span, Timeline, Track

_NAME_WIDTH = 16
_NOTE_WIDTH = 24
_TICK_CELLS = 10
"""Ticks are at least so far apart: a label fits between."""
_COUNTS_SHOWN = 4


@dataclass(frozen=True)
class Shown:
    """What a cell shows: the kind, and the character that stands for the label."""

    kind: str
    mark: str


def print_timeline(timeline: Timeline, tracks_shown: int) -> None:
    """Title, tracks, ticks, legend, and how many spans no cell shows."""
    console.draw(*timeline_lines(timeline, tracks_shown, ascii_only=not console.unicode_ok()))


def timeline_lines(timeline: Timeline, tracks_shown: int, *, ascii_only: bool) -> list[Text]:
    """The lines of a timeline, made for 80 columns."""
    tracks = timeline.tracks[:tracks_shown]
    names = _column([track.name for track in tracks], _NAME_WIDTH)
    notes = _column([track.note for track in tracks], _NOTE_WIDTH)
    idle = "." if ascii_only else "·"
    indent = max((cell_len(name) + 1 for name in names), default=0)
    width = console.WIDTH - indent - max((cell_len(note) + 1 for note in notes if note), default=0)
    lines = [Text(printable(timeline.title), style="bold")]
    unseen = []
    for track, name, note in zip(tracks, names, notes, strict=True):
        cells, missed = track_cells(track, timeline.start, timeline.end, width, ascii_only=ascii_only)
        lines.append(Text.assemble(f"{name} ", _coloured(cells, timeline.kinds, idle), f" {note}".rstrip()))
        if missed:
            unseen.append(f"{missed:,} on {name.strip()}")
    lines.append(Text(" " * indent + ticks(timeline, width)))
    lines += [Text(" " * indent) + line for line in _legend(timeline, tracks, idle, console.WIDTH - indent, ascii_only)]
    if unseen:
        more = f" and on {len(unseen) - _COUNTS_SHOWN} more" if len(unseen) > _COUNTS_SHOWN else ""
        lines.append(Text(f"{'':{indent}}too short to draw: {', '.join(unseen[:_COUNTS_SHOWN])}{more}"))
    if len(timeline.tracks) > len(tracks):
        lines.append(Text(f"{'':{indent}}and {len(timeline.tracks) - len(tracks)} more (--all)"))
    return lines


def track_cells(
    track: Track, start: float, end: float, width: int, *, ascii_only: bool = False
) -> tuple[list[Shown | None], int]:
    """What each of ``width`` cells from ``start`` to ``end`` shows (None is idle), and how many spans none shows.

    A cell is busy if half of it is, and then belongs to the kind and mark that fill most of it. A span that gets no
    cell this way takes the idle one that it lies in; where that is not idle it is counted.
    """
    cell = (end - start) / width
    if not cell > 0:
        return [None] * width, len(track.spans)
    filled: list[dict[Shown, float]] = [{} for _ in range(width)]
    inside: list[tuple[Shown, int, int]] = []
    for span in track.spans:
        low, high = max(span.start, start), min(span.end, end)
        if low > high or (low == high and span.end > span.start):
            continue
        shown = Shown(span.kind, mark(span, ascii_only=ascii_only))
        first = min(int((low - start) / cell), width - 1)
        last = max(first, min(math.ceil((high - start) / cell) - 1, width - 1))
        inside.append((shown, first, last))
        for place in range(first, last + 1):
            overlap = min(high, start + (place + 1) * cell) - max(low, start + place * cell)
            filled[place][shown] = filled[place].get(shown, 0.0) + overlap
    owners = [_owner(parts, cell) for parts in filled]
    unseen = 0
    for shown, first, last in inside:
        middle = (first + last) // 2
        if shown in owners[first : last + 1]:
            continue
        if owners[middle] is None:
            owners[middle] = shown
        else:
            unseen += 1
    return owners, unseen


def _owner(parts: dict[Shown, float], cell: float) -> Shown | None:
    # Sums of overlaps round; a cell that is half busy to within rounding is.
    if sum(parts.values()) < 0.5 * cell * (1 - 1e-9):
        return None
    return max(parts, key=lambda shown: parts[shown])


def mark(span: Span, *, ascii_only: bool = False) -> str:
    """The one character that stands for a span: its label's last, or ``?`` where that cannot be drawn in one cell."""
    last = printable(span.label)[-1:]
    drawable = cell_len(last) == 1 and last not in " .·" and (last.isascii() or not ascii_only)
    return last if drawable else "?"


def ticks(timeline: Timeline, width: int) -> str:
    """Marks under the cells with the time behind them, at round numbers, and the unit behind the last one."""
    length = timeline.end - timeline.start
    if not length > 0:
        return ""
    size, unit = scale(max(abs(timeline.start), abs(timeline.end)), timeline.unit)
    step = _round_up(length / size / max(1, width // _TICK_CELLS))
    first, last = math.ceil(timeline.start / size / step - 1e-9), math.floor(timeline.end / size / step + 1e-9)
    decimals = max(0, -math.floor(math.log10(step)))
    line = ""
    for number in range(first, last + 1):
        place = round((number * step - timeline.start / size) / (length / size) * width)
        if not line or place > len(line):
            line = f"{line:<{place}}|{number * step:.{decimals}f}"
            line = line.rstrip("0").rstrip(".") if decimals else line
    return f"{line} {printable(unit)}" if line else ""


def _round_up(value: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is not below."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= value * (1 - 1e-9))


def _column(texts: list[str], most: int) -> list[str]:
    """The texts, safe to print, made as wide as the widest, or cut."""
    safe = [printable(text) for text in texts]
    width = min(max(map(cell_len, safe), default=0), most)
    return [set_cell_size(text, width) for text in safe]


def _coloured(cells: list[Shown | None], kinds: tuple[str, ...], idle: str) -> Text:
    text = Text()
    for shown, alike in groupby(cells):
        count = len(list(alike))
        if shown is None:
            text.append(idle * count, style="dim")
        else:
            text.append(shown.mark * count, style=style(kinds.index(shown.kind)))
    return text


def _legend(timeline: Timeline, tracks: tuple[Track, ...], idle: str, width: int, ascii_only: bool) -> Iterator[Text]:
    """Lines that say what the marks of every kind are, in the order of the kinds, and what an idle cell looks like."""
    marks: dict[str, set[str]] = {}
    for track in tracks:
        for span in track.spans:
            marks.setdefault(span.kind, set()).add(mark(span, ascii_only=ascii_only))
    entries = []
    for position, kind in enumerate(timeline.kinds):
        if kind in marks:
            first, last = min(marks[kind]), max(marks[kind])
            shown = first if first == last else f"{first}-{last}"
            entries.append(Text.assemble((shown, style(position)), f" {printable(kind)}"))
    line = Text()
    for entry in [*entries, Text.assemble((idle, "dim"), " idle")]:
        if line and line.cell_len + 2 + entry.cell_len > width:
            yield line
            line = Text()
        line = line + "  " + entry if line else entry
    yield line
