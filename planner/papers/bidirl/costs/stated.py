"""Stage times that are stated by layout."""

from __future__ import annotations

from collections.abc import Collection

from planner.papers.bidirl.costs.by_layout import refuse_unknown
from planner.papers.bidirl.costs.told import Told
from planner.papers.bidirl.time_sources import StatedRollout, StatedTrain


def as_stated(given: StatedRollout | StatedTrain, known: Collection[str], where: str) -> Told:
    """Raises BadInputError for a layout that is no candidate."""
    for name in given.times:
        refuse_unknown(name, known, f"{where}.times")
    return Told(times=dict(given.times))
