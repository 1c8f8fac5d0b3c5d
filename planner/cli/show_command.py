"""``plan show``: the terminal view of a plan."""

from __future__ import annotations

import click


@click.command("show", epilog="Example: plan show plan.json")
@click.argument("plan")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the output.")
@click.option("--all", "everything", is_flag=True, help="Draw every rank, not only the first 32.")
def command(plan: str, form: str, everything: bool) -> None:
    """Draw PLAN in the terminal: load and memory per rank, what is split how, the certificate in words."""
    from planner.api import load
    from planner.reports.terminal import print_plan, summary_object
    from planner.verification import require_true

    loaded = load(plan)
    report = require_true(loaded)
    if form == "json":
        from planner.documents import canonical_bytes

        click.echo(canonical_bytes(summary_object(loaded)), nl=False)
    else:
        print_plan(loaded, claimed=report.claimed_bound, everything=everything)
