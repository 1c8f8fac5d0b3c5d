"""``plan profile show``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from planner.json_text import Json
    from profiles.profile import Profile


@click.command("show", epilog="Example: plan profile show h200-sxm --format json")
@click.argument("profile")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the output.")
def command(profile: str, form: str) -> None:
    """One PROFILE (a built-in name or a file): device, tables with units, ranges, errors, provenance."""
    from planner.cli.profile.overview import overview, print_json
    from profiles.library import load

    loaded = load(profile)
    tables = _tables(loaded)
    if form == "json":
        print_json(overview(loaded) | {"tables": tables, "sha256": loaded.sha256})
        return
    from planner import console

    device = loaded.device
    console.say(f"{loaded.name}: {device.name}" if device else loaded.name)
    if device:
        for name, value in device.model_dump(exclude_none=True).items():
            if name != "name":
                console.say(f"  {name}: {_plain(value)}")
    for line in _sources(loaded):
        console.say(f"  {line}")
    console.say("  axes are counts or bytes, latencies are seconds; errors are leave-one-out, relative")
    console.print_table(
        ("table", "dtype", "rows", "range of each axis", "error median", "p90"),
        [_row(table) for table in tables],
    )


def _sources(profile: Profile) -> Iterator[str]:
    """Where the rows come from: each work once, below it what was taken of it."""
    last = ""
    for source in profile.document.provenance:
        version = f", version {source.version}" if source.version else ""
        work = f"source: {source.title}{version}, {source.licence}"
        if work != last:
            yield work
        last = work
        yield f"  {source.id}{f' ({source.note})' if source.note else ''}"
        yield from (f"    {file}" for file in source.files)


def _tables(profile: Profile) -> list[dict[str, Json]]:
    return [
        {
            "family": table.family,
            "dtype": table.dtype,
            "backend": table.backend,
            "workload": table.workload,
            "kernels": table.kernels,
            "provenance": table.provenance,
            "policy": table.policy,
            "rows": len(table.latency_s),
            "ranges": {axis: [min(column), max(column)] for axis, column in sorted(table.columns.items())},
            "latency_s": [min(table.latency_s), max(table.latency_s)],
            "errors": [error.model_dump() for error in table.errors],
        }
        for table in profile.document.tables
    ]


def _row(table: dict[str, Json]) -> tuple[str, ...]:
    name = " ".join(part for part in (table["family"], table["workload"], table["backend"]) if part)
    ranges = ", ".join(f"{axis} {low}..{high}" for axis, (low, high) in table["ranges"].items())
    whole = [error for error in table["errors"] if error["rows"] and not error["region"]]
    worst = max(whole, key=lambda error: float(error["median"]), default=None)
    error = ("-", "-") if worst is None else (f"{worst['median']:.1%}", f"{worst['p90']:.1%}")
    return (name, table["dtype"], str(table["rows"]), ranges, *error)


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(inner)}" for key, inner in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)
