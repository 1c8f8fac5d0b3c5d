"""``plan example``: a runnable problem."""

from __future__ import annotations

import click


@click.command("example", epilog="Example: plan example zellige derived > problem.json")
@click.argument("paper")
@click.argument("name", default="default")
def command(paper: str, name: str) -> None:
    """Print a runnable problem of PAPER; `plan papers` lists the names."""
    from planner import papers
    from planner.documents import canonical_bytes

    click.echo(canonical_bytes(papers.example(paper, name)), nl=False)
