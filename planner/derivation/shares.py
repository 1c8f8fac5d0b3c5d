"""From amounts with their sources to the share of each source in all of them."""

from __future__ import annotations

from collections.abc import Iterable

from planner.attribution import Sources
from planner.paper import SOURCES


def by_source(parts: Iterable[tuple[float, Sources | None]]) -> dict[str, float]:
    """Fraction of all amounts by source, in the order of SOURCES; what has no sources is stated.

    Nothing at all is all stated: then it is what the user says.
    """
    found = dict.fromkeys(SOURCES, 0.0)
    for amount, sources in parts:
        if sources is None:
            found["stated"] += amount
            continue
        for source in SOURCES:
            found[source] += amount * float(getattr(sources, source))
    total = sum(found.values())
    return {source: value / total if total else float(source == "stated") for source, value in found.items()}
