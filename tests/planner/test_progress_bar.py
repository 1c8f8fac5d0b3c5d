"""The progress bar is for people at a terminal, and says nothing elsewhere."""

from __future__ import annotations

import io
import sys

import pytest

from planner.console import progress_bar, spinner


class Stream(io.StringIO):
    """Standard error, a terminal or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_is_drawn_on_a_terminal_only(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with progress_bar() as progress:
        progress(0.25, "gemm [bold] \x1b[31mm 64")
    drawn = stream.getvalue()
    assert bool(drawn) == terminal
    if terminal:
        assert "25%" in drawn
        assert "gemm [bold] " in drawn
        assert "\x1b[31mm 64" not in drawn  # what is measured is text, whatever it holds


@pytest.mark.parametrize("terminal", [True, False])
def test_a_spinner_says_how_far_a_search_is_on_a_terminal_only(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with spinner("solving") as tell:
        tell(0.5, "30 of [60] layers\x1b[31m")
    assert bool(stream.getvalue()) == terminal
    if terminal:
        assert "solving: 30 of [60] layers" in stream.getvalue()
        assert "\x1b[31m" not in stream.getvalue()
