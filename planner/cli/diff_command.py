"""``plan diff``: what changed between two plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planner.cli.solving import FiniteRange
from planner.printable import printable

if TYPE_CHECKING:
    from planner.difference import Change, Difference

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
        lines += [_line(change, markdown=markdown) for change in changes[:_SHOWN]]
        if len(changes) > _SHOWN:
            lines += ["", f"and {len(changes) - _SHOWN} more"] if markdown else [f"  and {len(changes) - _SHOWN} more"]
        if markdown:
            lines.append("")
    return lines


def _line(change: Change, *, markdown: bool) -> str:
    old, new = _shown(change.old), _shown(change.new)
    both_numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (change.old, change.new))
    ratio = f" ({(change.new / change.old - 1):+.3%})" if both_numbers and change.old else ""
    if markdown:
        cells = (f"`{printable(change.path)}`", old, f"{new}{ratio}")
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    return f"  {printable(change.path)}: {old} -> {new}{ratio}"


def _shown(value: object) -> str:
    if value is None:
        return "-"
    text = f"{value:.9g}" if isinstance(value, float) else str(value)
    text = printable(text)
    return text if len(text) <= 60 else text[:57] + "..."
