"""What can go wrong with a profile.

ProfileError          bad input about hardware: a code of the contract, a message, a place
└── UnknownNameError  a name that is not known; lists the known names and the nearest one, substitutes nothing
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

CODES = frozenset(
    {
        "unknown_profile",
        "unknown_model",
        "outside_measured_range",
        "not_json",
        "wrong_type",
        "missing_field",
        "unknown_field",
        "out_of_range",
        "not_finite",
        "duplicate_id",
        "unsupported_version",
        "too_large",
    }
)


class ProfileError(Exception):
    """An expected failure: `code` is one of `CODES`, `where` a path such as `tables.3.latency_s.17`."""

    def __init__(self, message: str, *, code: str, where: str | None = None) -> None:
        if code not in CODES:
            raise ValueError(f"{code!r} is not an error code of the contract")
        super().__init__(message)
        self.message = message
        self.code = code
        self.where = where

    def __str__(self) -> str:
        """The message and the place; `message` alone is without the place."""
        return f"{self.message} (at {self.where})" if self.where else self.message


class UnknownNameError(ProfileError):
    """A profile or model name that is not known; `known` holds the names that are, `nearest` the closest or None."""

    def __init__(self, what: str, asked: object, known: Iterable[str], *, code: str) -> None:
        self.asked = str(asked)
        self.known = tuple(known)
        self.nearest = nearest_name(self.asked, self.known)
        super().__init__(unknown_message(what, self.asked, self.known), code=code)


def shown(text: str, limit: int = 80) -> str:
    """Text from outside as a message may show it: cut to `limit` characters."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def unknown_message(what: str, asked: str, known: Iterable[str]) -> str:
    """One line: the name that is not known, the nearest one that is, and all that are."""
    names = list(known)
    near = nearest_name(asked, names)
    hint = f"; did you mean {near!r}? Known: " if near else "; known: "
    return f"unknown {what} {shown(asked)!r}{hint}{', '.join(names) or 'none'}"


def nearest_name(asked: str, known: Iterable[str]) -> str | None:
    """The known name that goes on from `asked`, else the closest by spelling, or None if none is close."""
    word, names = shown(asked).lower(), list(known)
    longer = [name for name in names if word and name.lower().startswith(word)]
    close = difflib.get_close_matches(word, longer or names, n=1, cutoff=0.0 if longer else 0.5)
    return close[0] if close else None
