"""``plan profile``: hardware cost tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from planner.json_text import Json
    from profiles.profile import Profile


@click.group("profile", no_args_is_help=False, epilog="Example: plan profile show h200-sxm")
def command() -> None:
    """List, show and import hardware cost tables."""


@command.command("list", epilog="Example: plan profile list --format json")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the output.")
def list_profiles(form: str) -> None:
    """The built-in profiles with device, rows and families."""
    from profiles.library import load, names

    rows = [_overview(load(name)) for name in names()]
    if form == "json":
        _print_json(rows)
        return
    from planner.console import print_table
    from planner.units import in_bytes

    print_table(
        ("name", "device", "memory", "rows", "families"),
        [(r["name"], r["device"], in_bytes(r["memory_bytes"]), str(r["rows"]), ", ".join(r["families"])) for r in rows],
    )


@command.command("show", epilog="Example: plan profile show h200-sxm --format json")
@click.argument("profile")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the output.")
def show(profile: str, form: str) -> None:
    """One PROFILE (a built-in name or a file): device, tables with units, ranges, errors, provenance."""
    from profiles.library import load

    loaded = load(profile)
    tables = _tables(loaded)
    if form == "json":
        _print_json(_overview(loaded) | {"tables": tables, "sha256": loaded.sha256})
        return
    from planner import console

    device = loaded.device
    console.say(f"{loaded.name}: {device.name}" if device else loaded.name)
    if device:
        for name, value in device.model_dump(exclude_none=True).items():
            if name != "name":
                console.say(f"  {name}: {_plain(value)}")
    for source in loaded.document.provenance:
        console.say(f"  provenance: {_plain(source.model_dump(exclude_none=True))}")
    console.say("  axes are counts or bytes, latencies are seconds; errors are leave-one-out, relative")
    console.print_table(
        ("table", "dtype", "rows", "range of each axis", "error median", "p90"),
        [_row(table) for table in tables],
    )


@command.command("import", epilog="Example: plan profile import nccl-tests all_reduce.log -o mycluster.json")
@click.argument("format")
@click.argument("files", nargs=-1)
@click.option("--system", metavar="NAME", help="aiconfigurator: the system to read, for example h200_sxm.")
@click.option("--name", metavar="NAME", help="Name of the new profile.")
@click.option("-o", "--output", metavar="PATH", default="-", help="Write here instead of stdout.")
def import_profile(format: str, files: tuple[str, ...], system: str | None, name: str | None, output: str) -> None:
    """Turn FILES of a foreign FORMAT (nccl-tests, aiconfigurator) into a profile.

    What was dropped, and why, goes to stderr.
    """
    from planner.files import write_atomically
    from planner.printable import printable
    from profiles.files import document_bytes
    from profiles.importers import run

    document, messages = run(format, files, system=system, name=name)
    for message in messages:
        click.echo(printable(message), err=True)
    write_atomically(output, document_bytes(document))


def _overview(profile: Profile) -> dict[str, Json]:
    device = profile.device
    return {
        "name": profile.name,
        "device": device.name if device else None,
        "memory_bytes": device.memory_bytes if device else None,
        "rows": sum(len(table.latency_s) for table in profile.document.tables),
        "families": sorted({table.family for table in profile.document.tables}),
    }


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
    worst = max(table["errors"], key=lambda error: float(error["median"]), default=None)
    error = ("-", "-") if worst is None else (f"{worst['median']:.1%}", f"{worst['p90']:.1%}")
    return (name, table["dtype"], str(table["rows"]), ranges, *error)


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(inner)}" for key, inner in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _print_json(value: Json) -> None:
    from planner.documents import canonical_bytes

    click.echo(canonical_bytes(value), nl=False)
