"""Lines and tables on a terminal, where they fit its width, and in a pipe, where a program reads them."""

from __future__ import annotations

import io
import os
import sys

import pytest
from rich.text import Text

from planner import console

LINE = "  warning: " + " ".join(["near_capacity"] * 12)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(os, "environ", {"COLUMNS": "80", "LINES": "25", "TERM": "dumb"})
    return stream


def test_a_line_is_whole_where_a_program_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    console.say(LINE)
    assert capsys.readouterr().out == f"{LINE}\n"


def test_a_line_is_wrapped_between_words_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of_80_columns(monkeypatch)
    console.say(LINE)
    first, *more = terminal.getvalue().splitlines()
    assert len(first) <= 80
    assert first.startswith("  warning: near_capacity")
    assert more
    assert all(len(line) <= 80 and line.startswith("    near_capacity") for line in more)
    assert " ".join(terminal.getvalue().split()) == " ".join(LINE.split())


def test_a_line_that_fits_and_an_empty_one_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of_80_columns(monkeypatch)
    console.say("two  blanks,   three")
    console.say()
    assert terminal.getvalue() == "two  blanks,   three\n\n"


def test_a_word_longer_than_the_line_stays_whole() -> None:
    path = "/".join(["folder"] * 20)
    assert console.wrapped(f"wrote {path} today", 80) == ["wrote", f"  {path}", "  today"]


def test_no_line_of_a_table_ends_in_blanks_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_table(("name", "note"), [("a", "long enough to be wider than the other"), ("b", "")], "title")
    console.draw(Text("picture   "))
    lines = capsys.readouterr().out.split("\n")
    assert [line.rstrip() for line in lines] == lines
    assert lines == [
        "title",
        "name  note",
        "a     long enough to be wider than the other",
        "b",
        "picture",
        "",
    ]
