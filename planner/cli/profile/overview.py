"""A profile in a few words, for the commands that list it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from planner.json_text import Json
    from profiles.profile import Profile


def overview(profile: Profile) -> dict[str, Json]:
    """Name, device, memory, rows and families."""
    device = profile.device
    return {
        "name": profile.name,
        "device": device.name if device else None,
        "memory_bytes": device.memory_bytes if device else None,
        "rows": sum(len(table.latency_s) for table in profile.document.tables),
        "families": sorted({table.family for table in profile.document.tables}),
    }


def print_json(value: Json) -> None:
    """Canonical bytes on stdout."""
    from planner.documents import canonical_bytes

    click.echo(canonical_bytes(value), nl=False)
