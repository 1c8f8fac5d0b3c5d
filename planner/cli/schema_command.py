"""``plan schema``: JSON Schema of problem, plan and profile files."""

from __future__ import annotations

import click


@click.command("schema", epilog="Example: plan schema problem zellige")
@click.argument("document", type=click.Choice(["problem", "plan", "profile"]))
@click.argument("paper", required=False)
def command(document: str, paper: str | None) -> None:
    """Print the JSON Schema (2020-12) of a DOCUMENT; problem needs the PAPER."""
    from planner.documents import canonical_bytes
    from planner.schema import plan_schema, problem_schema, profile_schema

    if (document == "problem") != (paper is not None):
        raise click.UsageError("a paper goes with problem, and only with it: plan schema problem PAPER")
    schema = problem_schema(paper) if paper else plan_schema() if document == "plan" else profile_schema()
    click.echo(canonical_bytes(schema), nl=False)
