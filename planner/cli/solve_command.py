"""``plan solve``: solve, check, write."""

from __future__ import annotations

from typing import Any

import click

from planner.cli.solving import echo_timings, make_options, read_problem, solve_options, time_limit, told


@click.command("solve", epilog="Example: plan example zellige | plan solve - -o plan.json")
@click.argument("problem")
@click.option("-o", "--output", metavar="PLAN", help="Write the plan here and print a summary; - is stdout.")
@solve_options
@click.option("--timings", "show_timings", is_flag=True, help="Print seconds per phase on stderr.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the summary.")
def command(
    problem: str,
    output: str | None,
    settings: tuple[str, ...],
    profile: str | None,
    extrapolate: str | None,
    show_timings: bool,
    form: str,
    **budget: Any,
) -> None:
    """Solve PROBLEM (JSON or YAML, - is stdin), check the plan, and write it."""
    from planner.api import dump, solve
    from planner.reports.terminal import print_summary, progress, summary_object

    document = read_problem(problem, settings)
    options = make_options(problem, profile, extrapolate, **budget)
    timings: dict[str, float] = {}
    with time_limit(budget["time_limit"], budget["keep_best"]), progress("solving") as tell:
        plan = solve(document, told(options, tell), timings)
    dump(plan, "-" if output is None else output)
    if output not in (None, "-"):
        if form == "json":
            from planner.documents import canonical_bytes

            click.echo(canonical_bytes(summary_object(plan)), nl=False)
        else:
            print_summary(plan, output)
    if show_timings:
        echo_timings(timings)
