"""``plan profile list``."""

from __future__ import annotations

import click


@click.command("list", epilog="Example: plan profile list --format json")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the output.")
def command(form: str) -> None:
    """The built-in profiles with device, rows and families."""
    from planner.cli.profile.overview import overview, print_json
    from profiles.library import load, names

    rows = [overview(load(name)) for name in names()]
    if form == "json":
        print_json(rows)
        return
    from planner.console import print_table
    from planner.units import in_bytes

    print_table(
        ("name", "device", "memory", "rows", "families"),
        [(r["name"], r["device"], in_bytes(r["memory_bytes"]), str(r["rows"]), ", ".join(r["families"])) for r in rows],
    )
