"""Rows of measurements by the layout they are of."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

from planner.errors import BadInputError
from planner.papers.bidirl.measurements import AnyRow

R = TypeVar("R", bound=AnyRow)

SHOWN = 8
"""Candidates that a message lists."""


def by_layout(rows: Sequence[R], default: str | None, known: Collection[str], where: str) -> dict[str, list[R]]:
    """Rows in their order, those that name no layout under ``default``.

    Raises BadInputError: one that is no candidate, or none where a default is needed and nothing fits.
    """
    found: dict[str, list[R]] = {}
    for row in rows:
        name = row.layout or default
        if name is None:
            message = "rows name no layout and no candidate fits a GPU, so none is meant: name it, or state layout"
            raise BadInputError(message, code="unknown_layout", where=where)
        refuse_unknown(name, known, where)
        found.setdefault(name, []).append(row)
    return found


def refuse_unknown(name: str, known: Collection[str], where: str) -> None:
    """Raise BadInputError for a layout that is no candidate."""
    if name not in known:
        some = ", ".join(list(known)[:SHOWN]) + (", ..." if len(known) > SHOWN else "")
        message = f"expected one of the candidates {some}, got {name[:60]}"
        raise BadInputError(message, code="unknown_layout", where=where)
