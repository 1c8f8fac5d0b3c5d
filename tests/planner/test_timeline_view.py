"""A timeline's picture: what a cell shows, that nothing short vanishes silently, ticks, legend, hostile text."""

from __future__ import annotations

import random
import sys
from itertools import pairwise

import pytest
from rich.cells import cell_len

from planner.console import WIDTH
from planner.reports.gantt import Shown, mark, ticks, timeline_lines, track_cells
from planner.reports.terminal import print_view
from planner.units import amount
from planner.view import Span, Timeline, Track, View

KINDS = ("work", "wait")


def cells(*spans: tuple[float, float, str], width: int = 10, start: float = 0.0, end: float = 10.0) -> str:
    """The cells of a track, a dot where it is idle, and behind them how many spans no cell shows."""
    track = Track("t", tuple(Span(low, high, "work", label) for low, high, label in spans))
    shown, unseen = track_cells(track, start, end, width)
    return "".join("." if cell is None else cell.mark for cell in shown) + (f" +{unseen}" if unseen else "")


def picture(timeline: Timeline, *, shown: int = 32, ascii_only: bool = False) -> list[str]:
    return [line.plain for line in timeline_lines(timeline, shown, ascii_only=ascii_only)]


def two_tracks() -> Timeline:
    """Two kinds on the first track, both of micro-batches 0 and 1."""
    first = (Span(0, 2, "work", "0"), Span(2, 4, "work", "1"), Span(4, 5, "wait", "A"), Span(5, 6, "wait", "B"))
    second = (Span(2, 3, "work", "0"), Span(4, 5, "work", "1"))
    return Timeline("cycle", (Track("GPU", first), Track("link", second, "idle 66.7 %")), "s", KINDS, 0.0, 6.0)


# --- cells ---


def test_a_span_fills_the_cells_of_its_time() -> None:
    assert cells((0, 3, "0"), (3, 5, "1"), (8, 10, "2")) == "00011...22"


def test_a_cell_belongs_to_what_fills_most_of_it() -> None:
    # The second cell, [1, 2), is 0.4 of span 0 and 0.6 of span 1.
    assert cells((0, 1.4, "0"), (1.4, 3, "1")) == "011......."
    # Idle for 0.6 of [1, 2): idle. For 0.5: busy.
    assert cells((0, 1.4, "0")) == "0........."
    assert cells((0, 1.5, "0")) == "00........"


def test_pieces_with_one_label_fill_a_cell_together() -> None:
    # Each piece of 1 has 0.3 of the first cell, that of 2 has 0.4.
    assert cells((0, 0.3, "1"), (0.3, 0.7, "2"), (0.7, 1, "1"), width=1, end=1) == "1 +1"


def test_a_short_span_gets_the_idle_cell_it_lies_in() -> None:
    assert cells((0, 2, "0"), (6.4, 6.41, "1")) == "00....1..."
    # It spreads over [3, 4) and [4, 5), and fills half of neither.
    assert cells((3.7, 4.3, "1")) == "...1......"


def test_a_short_span_without_an_idle_cell_is_counted() -> None:
    assert cells((0, 2, "0"), (2, 2.1, "1"), (2.1, 4, "2")) == "0022...... +1"
    # Forty spans of 0.01 in [5, 5.4): the first takes the cell, those with its label are seen in it.
    many = [(5 + i / 100, 5 + (i + 1) / 100, str(i % 4)) for i in range(40)]
    assert cells(*many) == ".....0.... +30"


def test_a_span_without_length_is_drawn_too() -> None:
    assert cells((4, 4, "0")) == "....0....."


def test_what_lies_outside_of_the_stretch_is_cut_off() -> None:
    assert cells((-3, 1, "0"), (9, 14, "1"), (20, 30, "2"), (-9, -3, "3")) == "0........1"
    assert cells((-1, 0, "0"), (10, 11, "1")) == ".........."
    assert cells((105, 107, "0"), start=100, end=110) == ".....00..."


def test_a_stretch_without_length_shows_nothing_and_says_so() -> None:
    assert cells((0, 1, "0"), start=3, end=3) == ".......... +1"


def test_ends_that_differ_by_rounding_do_not_spill() -> None:
    tenths = [(sum([0.1] * i), sum([0.1] * (i + 1)), str(i)) for i in range(10)]
    assert cells(*tenths, end=1.0) == "0123456789"


def test_every_span_is_seen_or_counted() -> None:
    # Random tracks: a label that no cell shows belongs to spans that are counted, and nothing idle has a mark.
    generator = random.Random(7)
    for _ in range(200):
        ends = sorted(generator.uniform(-2, 12) for _ in range(2 * generator.randint(1, 36)))
        spans = [
            (low, high, "0123456789abcdefghijklmnopqrstuvwxyz"[i])
            for i, (low, high) in enumerate(zip(ends[::2], ends[1::2], strict=True))
        ]
        drawn, _, count = cells(*spans, width=12).partition(" +")
        inside = {label for low, high, label in spans if low < 10 and high > 0}
        assert set(drawn) - {"."} <= inside
        assert len(inside - set(drawn)) == int(count or 0)


def test_kinds_that_share_a_label_are_drawn_apart_by_kind() -> None:
    track = Track("t", (Span(0, 1, "work", "0"), Span(1, 2, "wait", "0")))
    assert track_cells(track, 0, 2, 2)[0] == [Shown("work", "0"), Shown("wait", "0")]


# --- marks ---


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("7", "7"),
        ("micro-batch 12", "2"),
        ("", "?"),
        ("a ", "?"),
        ("end.", "?"),
        ("\ud800", "\N{REPLACEMENT CHARACTER}"),
        ("\N{CJK UNIFIED IDEOGRAPH-6570}", "?"),
        ("\N{LATIN SMALL LETTER E WITH ACUTE}", "\N{LATIN SMALL LETTER E WITH ACUTE}"),
        ("e\N{COMBINING ACUTE ACCENT}", "?"),
    ],
)
def test_a_label_is_drawn_as_its_last_character_if_that_takes_one_cell(label: str, expected: str) -> None:
    assert mark(Span(0, 1, "work", label)) == expected


def test_an_ascii_terminal_gets_ascii_marks() -> None:
    assert mark(Span(0, 1, "work", "\N{LATIN SMALL LETTER E WITH ACUTE}"), ascii_only=True) == "?"
    assert "".join(picture(two_tracks(), ascii_only=True)).isascii()


def test_control_characters_do_not_reach_the_terminal() -> None:
    spans = (Span(0, 1, "work\n\x1b[2J", "0\x1b"), Span(1, 2, "wait", "\n"))
    hostile = Timeline("a\x1b[31m\nb", (Track("t\r\x07", spans, "n\x1b"),), "s\x1b", ("work\n\x1b[2J", "wait"), 0, 2)
    lines = picture(hostile)
    assert len(lines) == 4  # title, track, ticks, legend
    assert all(line.isprintable() for line in lines)


# --- lines ---


def test_the_picture_fits_eighty_columns_and_reads_without_colour() -> None:
    # 80 columns less "link " and " idle 66.7 %": 63 cells for 6 s, so 10.5 a second.
    assert picture(two_tracks()) == [
        "cycle",
        "GPU  " + "0" * 21 + "1" * 21 + "A" * 11 + "B" * 10,
        "link " + "·" * 21 + "0" * 11 + "·" * 10 + "1" * 11 + "·" * 10 + " idle 66.7 %",
        "     |0        |1         |2         |3        |4        |5         |6 s",
        "     0-1 work  A-B wait  · idle",
    ]


def test_names_and_notes_of_any_width_leave_room() -> None:
    wide = Timeline(
        "t",
        (
            Track(
                "\N{CJK UNIFIED IDEOGRAPH-6570}" * 40,
                (Span(0, 1, "work", "0"),),
                "\N{LATIN SMALL LETTER E WITH ACUTE}" * 200,
            ),
            Track("b", ()),
        ),
        "s",
        KINDS,
        0,
        1,
    )
    lines = picture(wide)
    assert max(map(cell_len, lines)) <= WIDTH
    assert "0" * 30 in lines[1]


def test_many_kinds_go_to_more_legend_lines() -> None:
    kinds = tuple(f"a kind of task that has the number {i}" for i in range(6))
    track = Track("t", tuple(Span(i, i + 1, kind, str(i)) for i, kind in enumerate(kinds)))
    lines = picture(Timeline("t", (track,), "s", kinds, 0, 6))[3:]
    assert len(lines) == 4
    assert max(map(len, lines)) <= WIDTH
    assert " ".join(" ".join(lines).split()) == " ".join(f"{i} {kind}" for i, kind in enumerate(kinds)) + " · idle"


def test_a_kind_that_no_track_has_is_no_legend_entry() -> None:
    timeline = Timeline("t", (Track("t", (Span(0, 1, "wait", "0"),)),), "s", KINDS, 0, 1)
    assert picture(timeline)[-1] == "  0 wait  · idle"


def test_the_picture_says_how_many_spans_it_does_not_show() -> None:
    crowded = Track("EG", tuple(Span(i * 1e-3, (i + 1) * 1e-3, "work", str(i % 10)) for i in range(20)))
    timeline = Timeline("t", (crowded, Track("AG", (Span(0, 9, "work", "0"),))), "s", KINDS, 0, 9)
    # All twenty lie in the first cell, which the two with label 0 share: 18 are not seen.
    assert picture(timeline)[-1] == "   too short to draw: 18 on EG"
    several = Timeline("t", tuple(Track(f"r{i}", crowded.spans) for i in range(7)), "s", KINDS, 0, 9)
    shown = ", ".join(f"18 on r{i}" for i in range(4))
    assert picture(several)[-1] == f"   too short to draw: {shown} and on 3 more"


def test_of_many_tracks_the_first_are_drawn() -> None:
    many = Timeline("t", tuple(Track(f"rank {i}", ()) for i in range(40)), "s", KINDS, 0, 1)
    assert len(picture(many, shown=32)) == 1 + 32 + 3
    assert picture(many, shown=32)[-1].strip() == "and 8 more (--all)"
    assert len(picture(many, shown=40)) == 1 + 40 + 2


@pytest.mark.parametrize(("encoding", "idle"), [("utf-8", "·"), ("ascii", ".")])
def test_a_view_draws_its_timelines(
    encoding: str, idle: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(sys.stdout), "encoding", encoding)
    print_view(View((two_tracks(),)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "cycle"
    assert lines[-1] == f"     0-1 work  A-B wait  {idle} idle"
    assert "\x1b" not in "".join(lines)


# --- ticks ---


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        # 30 cells: at most three steps of 1, 2 or 5 times a power of ten.
        (0.0, 0.3, "|0        |100      |200      |300 ms"),
        (0.0, 2.5e-5, "|0          |10         |20 us"),
        (0.0, 3e-9, "|0        |1        |2        |3 ns"),
        (5.0, 8.0, "|5        |6        |7        |8 s"),
        (7.3, 9.9, "        |8          |9 s"),  # 0.7 and 1.7 of 2.6 s
        (0.0, 0.0, ""),
    ],
)
def test_ticks_stand_at_round_times_in_a_unit_that_keeps_them_short(start: float, end: float, expected: str) -> None:
    assert ticks(Timeline("t", (), "s", (), start, end), 30) == expected


def test_a_tick_whose_label_finds_no_room_is_left_out() -> None:
    # Steps of 0.05 ms, ten cells apart, with labels of up to thirteen characters.
    late = Timeline("t", (), "s", (), 123456.7, 123456.7003)
    assert ticks(late, 60) == "|123456.7 |123456.70005       |123456.70015       |123456.70025 s"


def test_ticks_never_overlap_and_stand_where_their_time_is() -> None:
    generator = random.Random(3)
    for _ in range(200):
        start = generator.choice((0.0, 1.0, 1e4)) * generator.random()
        length = 10 ** generator.uniform(-8, 6)
        line = ticks(Timeline("t", (), "tokens", (), start, start + length), 60)
        places = [i for i, character in enumerate(line) if character == "|"]
        times = [float(label.split()[0]) for label in line.split("|")[1:]]
        assert all(low < high for low, high in pairwise(places))
        for place, time in zip(places, times, strict=True):
            assert abs((time - start) / length * 60 - place) <= 0.5 + 1e-6 * max(1.0, start / length)


# --- amounts of other units ---


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (12345.4, "12,345 tokens/s"),
        (1.2345678e9, "1,234,567,800 tokens/s"),
        (999.949, "999.9 tokens/s"),
        (999.96, "1,000 tokens/s"),
        (0.375, "0.375 tokens/s"),
        (1e18, "1e+18 tokens/s"),
        (0.0, "0 tokens/s"),
    ],
)
def test_a_large_amount_is_written_out(value: float, expected: str) -> None:
    assert amount(value, "tokens/s") == expected
    assert amount(value, "") == expected.split()[0]


def test_seconds_and_bytes_keep_their_prefixes() -> None:
    assert (amount(12345.4, "s"), amount(0.0123, "s"), amount(12345.4, "bytes")) == (
        "12,345 s",
        "12.3 ms",
        "12.3 kB",
    )
