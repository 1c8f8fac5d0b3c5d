"""Text from files on its way to a screen: ids and notes must not steer the terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with every control character, line break and lone surrogate replaced."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "\ufffd" for character in text)
