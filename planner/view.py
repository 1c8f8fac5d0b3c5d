"""What there is to see in a plan, free of any rendering: the terminal and the web page draw the same views."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Segment:
    """One coloured part of a bar; ``kind`` names the legend entry."""

    kind: str
    amount: float


@dataclass(frozen=True)
class Bar:
    """One labelled bar made of segments, with a note printed behind it."""

    label: str
    segments: tuple[Segment, ...]
    note: str = ""


@dataclass(frozen=True)
class Bars:
    """Bars on one scale; ``limit`` draws a mark (a capacity or a bound), ``unit`` names the amounts.

    ``kinds`` are the legend's entries in its order.
    """

    title: str
    bars: tuple[Bar, ...]
    unit: str
    kinds: tuple[str, ...]
    limit: float | None = None


@dataclass(frozen=True)
class Table:
    """Rows of ready-made cells under column headings."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Span:
    """What a track does from ``start`` to ``end``; ``kind`` names the legend entry.

    A terminal has one character for it, the label's last. Kinds that share a track have labels that differ.
    """

    start: float
    end: float
    kind: str
    label: str


@dataclass(frozen=True)
class Track:
    """One line of a timeline: spans that do not overlap, in order, with a note printed behind them."""

    name: str
    spans: tuple[Span, ...]
    note: str = ""


@dataclass(frozen=True)
class Timeline:
    """Tracks over one stretch of time, ``start`` to ``end`` in ``unit``; what lies outside of it is cut off.

    ``kinds`` are the legend's entries in its order.
    """

    title: str
    tracks: tuple[Track, ...]
    unit: str
    kinds: tuple[str, ...]
    start: float
    end: float


@dataclass(frozen=True)
class View:
    """Sections from top to bottom."""

    sections: tuple[Bars | Table | Timeline, ...]
