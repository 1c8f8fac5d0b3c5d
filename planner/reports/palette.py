"""Colours of the terminal's pictures: a kind has the same one wherever it is drawn."""

from __future__ import annotations

_STYLES = ("cyan", "yellow", "magenta", "green", "blue", "red")


def style(position: int) -> str:
    """The style of a legend entry by its position; they come round again."""
    return _STYLES[position % len(_STYLES)]
