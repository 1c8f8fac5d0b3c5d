"""``plan expand``: the explicit form of a derived problem."""

from __future__ import annotations

import click

from planner.cli.solving import make_options, problem_options, read_problem


@click.command("expand", epilog="Example: plan example zellige derived | plan expand - -o explicit.json")
@click.argument("problem")
@click.option("-o", "--output", metavar="PATH", default="-", help="Write here instead of stdout.")
@problem_options
def command(problem: str, output: str, settings: tuple[str, ...], profile: str | None, extrapolate: str | None) -> None:
    """Print the explicit-cost form of PROBLEM, every coefficient with its source."""
    from planner.documents import canonical_bytes
    from planner.envelope import dump_model
    from planner.files import write_atomically
    from planner.pose import pose

    posed = pose(read_problem(problem, settings), make_options(problem, profile, extrapolate).derive)
    write_atomically(output, canonical_bytes(dump_model(posed.problem)))
    if (arrays := posed.inputs.arrays) and posed.paper.attach is not None:
        click.echo(f"it names files by base name and sha256; solve it in their folder: {', '.join(arrays)}", err=True)
