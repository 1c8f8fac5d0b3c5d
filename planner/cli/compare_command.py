"""``plan compare``: the plan beside each baseline of its paper."""

from __future__ import annotations

from typing import Any

import click

from planner.cli.data_option import data_option
from planner.cli.solving import make_options, read_problem, solve_options, time_limit, told


@click.command("compare", epilog="Example: plan example zellige | plan compare -")
@click.argument("problem")
@solve_options
@data_option
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the output.")
def command(
    problem: str,
    settings: tuple[str, ...],
    profile: str | None,
    extrapolate: str | None,
    data: str | None,
    form: str,
    **budget: Any,
) -> None:
    """Put the plan of PROBLEM (a problem or a plan) beside each baseline, with ratios."""
    from planner.comparison import compare_document
    from planner.reports.comparison import comparison_object, print_comparison
    from planner.reports.terminal import progress

    document = read_problem(problem, settings)
    options = make_options(problem, profile, extrapolate, **budget)
    with time_limit(budget["time_limit"], budget["keep_best"]), progress("comparing") as tell:
        comparison = compare_document(document, told(options, tell), data)
    if form == "json":
        from planner.documents import canonical_bytes

        click.echo(canonical_bytes(comparison_object(comparison)), nl=False)
    else:
        print_comparison(comparison)
