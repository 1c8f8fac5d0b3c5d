"""``plan demo``: the main job on an embedded default."""

from __future__ import annotations

import click


@click.command("demo", epilog="Example: plan demo --out /tmp/demo")
@click.option("--out", default=".", metavar="DIR", help="Where plan.json goes; . by default.")
@click.option("--force", is_flag=True, help="Replace a plan.json that holds another plan.")
def command(out: str, force: bool) -> None:
    """Place a real mixed image-video batch on a built-in cost table: no arguments, no network."""
    from pathlib import Path

    from planner import papers
    from planner.api import dump, solve
    from planner.errors import BadInputError
    from planner.files import read_bytes
    from planner.reports.terminal import print_plan, progress

    folder = Path(out)
    if not folder.is_dir():
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise BadInputError(
                f"cannot make the folder {out}: {error.strerror}", code="out_of_range", where="--out"
            ) from None
    path = folder / "plan.json"
    with progress("solving"):
        plan = solve(papers.example("zellige", "demo"))
    if path.is_file() and not force and read_bytes(str(path)) != plan.to_bytes():
        raise BadInputError(f"{path} holds another plan; use --force or --out", code="out_of_range", where="--out")
    dump(plan, str(path))
    print_plan(plan)
    click.echo(f"\nwrote {path}; next: plan check {path} · plan example zellige demo > problem.json ·")
    click.echo("plan compare problem.json · plan solve problem.json --set derive.cluster.num_ranks=64 -o new.json")
