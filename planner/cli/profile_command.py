"""``plan profile``: hardware cost tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from planner.cli.lazy import LazyGroup


class _Profile(LazyGroup):
    package = "planner.cli.profile"
    summaries: ClassVar[Mapping[str, str]] = {
        "list": "The built-in profiles with device, rows and families.",
        "show": "One profile: device, tables with units, ranges, errors, provenance.",
        "measure": "Measure this machine: operations, memory copies, collectives.",
        "import": "Turn files of a foreign format into a profile.",
        "fit": "Fit the textbook cost model to each table of a profile.",
        "check": "Look for units, spikes, holes and contradictions in profiles.",
    }


@click.group("profile", cls=_Profile, no_args_is_help=False, epilog="Example: plan profile show h200-sxm")
def command() -> None:
    """List, show, measure, import, fit and check hardware cost tables."""
