"""``plan diff``: what changed between two plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planner.cli.solving import FiniteRange

if TYPE_CHECKING:
    from planner.difference import Difference

_SHOWN = 20


@click.command("diff", epilog="Example: plan diff main.json branch.json --format markdown")
@click.argument("old")
@click.argument("new")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", help="Form of the output."
)
@click.option("--rtol", type=FiniteRange(0, 1), default=1e-9, show_default=True,
              help="Relative tolerance for metrics.")  # fmt: skip
def command(old: str, new: str, form: str, rtol: float) -> int:
    """Compare two plans: inputs and decisions exactly, metrics within --rtol. Exit 0 same, 1 different."""
    from planner.api import diff
    from planner.documents import canonical_bytes

    difference = diff(old, new, rtol=rtol)
    if form == "json":
        click.echo(canonical_bytes(difference.as_object()), nl=False)
    else:
        for line in _lines(difference, markdown=form == "markdown"):
            click.echo(line)
    return 0 if difference.same else 1


def _lines(difference: Difference, *, markdown: bool) -> list[str]:
    from planner.difference import SECTIONS
    from planner.reports.changes import change_line

    if difference.same:
        return ["No change." if markdown else "same"]
    lines: list[str] = []
    for section in SECTIONS:
        changes = [change for change in difference.changes if change.section == section]
        if not changes:
            continue
        lines.append(f"### {section}: {len(changes)} changed" if markdown else f"{section}: {len(changes)} changed")
        if markdown:
            lines += ["", "| field | old | new |", "|---|---|---|"]
        lines += [change_line(change, markdown=markdown) for change in changes[:_SHOWN]]
        if len(changes) > _SHOWN:
            lines += ["", f"and {len(changes) - _SHOWN} more"] if markdown else [f"  and {len(changes) - _SHOWN} more"]
        if markdown:
            lines.append("")
    return lines
