"""Shares by source of amounts that come from several."""

from __future__ import annotations

from planner.attribution import Sources
from planner.derivation.shares import by_source


def test_amounts_are_split_by_their_sources_and_what_has_none_is_stated() -> None:
    mixed = Sources(measured=0.25, modelled=0.75)
    # 4 of 8 are mixed, 1 measured and 3 modelled; the other 4 are stated.
    assert by_source([(4.0, mixed), (4.0, None)]) == {
        "measured": 0.125,
        "interpolated": 0.0,
        "modelled": 0.375,
        "stated": 0.5,
    }


def test_nothing_at_all_is_stated() -> None:
    nothing = {"measured": 0.0, "interpolated": 0.0, "modelled": 0.0, "stated": 1.0}
    assert by_source([]) == by_source([(0.0, Sources(measured=1.0))]) == nothing
