"""``plan profile measure``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from planner.json_text import Json
    from profiles.measure import Options, Outcome
    from profiles.measure.place import Ladder

SKIPS_SHOWN = 8


@click.command(
    "measure", epilog="Example: plan profile measure --device cpu --ops gemm,collectives --ranks 2 -o mycpu --budget 2m"
)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True, help="What to measure.")
@click.option("--ops", metavar="LIST", default="all", show_default=True,
              help="Families, or: all, compute, attention, collectives; separated by commas.")  # fmt: skip
@click.option("-o", "--output", metavar="DIR", help="The folder of measurements.jsonl and profile.json.")
@click.option("--budget", metavar="TIME", default="60s", show_default=True, help="How long, for example 90s, 5m, 1h.")
@click.option("--dtype", metavar="LIST", default="", help="Of compute; fp32 on a CPU, bf16 on a GPU unless named.")
@click.option("--ranks", type=int, help="Processes at once on a CPU; 2 where collectives are named, else 1.")
@click.option("--threads", type=int, default=1, show_default=True, help="Threads of each process on a CPU.")
@click.option("--library", metavar="NAME", help="torch or numpy on a CPU; torch where it is installed.")
@click.option("--backend", metavar="NAME", help="gloo or shared_memory on a CPU; gloo with torch.")
@click.option("--model", "models", multiple=True, metavar="NAME",
              help="What this model needs of compute, instead of a grid (repeatable).")  # fmt: skip
@click.option("--shapes", metavar="N,K;...", default="", help="Products of these shapes instead of a grid.")
@click.option("--experts", metavar="H,F,E,K,T,P;...", default="",
              help="hidden, ffn, experts, top_k, tensor_ranks, expert_ranks of moe_gemm.")  # fmt: skip
@click.option("--tolerance", type=float, default=0.05, show_default=True,
              help="Refine until lookups between points are this close.")  # fmt: skip
@click.option("--max-points", type=int, default=10_000, show_default=True, help="Stop at so many points in all.")
@click.option("--max-bytes", metavar="BYTES", help="Skip what needs more memory a rank, for example 2GB.")
@click.option("--name", metavar="NAME", help="Name of the profile; the device's by default.")
@click.option("--licence", metavar="NAME", default="CC0-1.0", show_default=True, help="Licence of the rows.")
@click.option("--restart", is_flag=True, help="Forget what the folder holds.")
@click.option("--dry-run", is_flag=True, help="Print the grid it would start with; nothing is run.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the output.")
def command(
    device: str,
    ops: str,
    output: str | None,
    budget: str,
    dtype: str,
    ranks: int | None,
    threads: int,
    library: str | None,
    backend: str | None,
    models: tuple[str, ...],
    shapes: str,
    experts: str,
    tolerance: float,
    max_points: int,
    max_bytes: str | None,
    name: str | None,
    licence: str,
    restart: bool,
    dry_run: bool,
    form: str,
) -> None:
    """Measure this machine: a coarse grid first, then where the curves bend, until the budget is used.

    The same command goes on where it stopped; Ctrl-C keeps what was measured. GPU collectives need torchrun.
    """
    from planner.errors import BadInputError
    from profiles.measure.options import DEVICES, EXPERT_AXES, Options, parse_budget, parse_bytes, parse_tuples

    if output is None and not dry_run:
        raise BadInputError("expected a folder: -o DIR", code="missing_field", where="output")
    options = Options(
        folder=Path(output or "."),
        device=next(known for known in DEVICES if known == device),
        ops=_words(ops),
        dtypes=_words(dtype),
        library=library,
        backend=backend,
        ranks=ranks,
        threads=threads,
        budget_s=parse_budget(budget),
        tolerance=tolerance,
        max_points=max_points,
        max_bytes=parse_bytes(max_bytes) if max_bytes else None,
        shapes=tuple((n, k) for n, k in parse_tuples(shapes, ("n", "k"), "shapes")) if shapes else (),
        models=models,
        experts=parse_tuples(experts, EXPERT_AXES, "experts") if experts else (),
        name=name,
        licence=licence,
        restart=restart,
    )
    if dry_run:
        _show_grid(options, form)
        return
    _show_outcome(_measured(options), form)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _show_grid(options: Options, form: str) -> None:
    from planner.cli.profile.overview import print_json
    from profiles.measure import plan_grid

    ladders = plan_grid(options)
    if form == "json":
        print_json({"budget_s": options.budget_s, "curves": [_curve(ladder) for ladder in ladders]})
        return
    from planner.console import say

    for ladder in ladders:
        say(f"{ladder.curve.words()}: {ladder.curve.along} {', '.join(map(str, ladder.sizes))}")
    points = sum(len(ladder.sizes) for ladder in ladders)
    say(f"{points} points on {len(ladders)} curves first, then where they bend; {options.budget_s:g} s in all")


def _curve(ladder: Ladder) -> dict[str, Json]:
    curve = ladder.curve
    return {
        "family": curve.family,
        "dtype": curve.dtype,
        "backend": curve.backend,
        "workload": curve.workload,
        "axes": dict(curve.fixed),
        "along": curve.along,
        "sizes": list(ladder.sizes),
    }


def _measured(options: Options) -> Outcome:
    from planner.console import progress_bar
    from profiles.measure import measure

    try:
        with progress_bar() as progress:
            return measure(options, progress)
    except KeyboardInterrupt:
        click.echo("what was measured is kept, and the same command goes on from there", err=True)
        raise


def _show_outcome(outcome: Outcome, form: str) -> None:
    from planner.errors import LimitError

    if outcome.profile is None:
        if outcome.follows:
            return
        raise LimitError(f"no point was measured: {_why(outcome)}", code="budget")
    if form == "json":
        from planner.cli.profile.overview import print_json

        print_json(_as_json(outcome))
        return
    from planner.console import print_table, say
    from planner.units import seconds

    rows = [
        (family, str(outcome.points.get(family, 0)), seconds(outcome.seconds.get(family, 0.0)))
        for family in dict.fromkeys([*outcome.points, *outcome.seconds])
    ]
    print_table(("operation", "points", "time now"), rows)
    say(f"{sum(outcome.points.values())} points, {outcome.new_points} of them new; {outcome.ended}")
    for note in outcome.notes:
        say(f"note: {note}")
    for place, reason in list(outcome.skipped.items())[:SKIPS_SHOWN]:
        say(f"skipped: {place}: {reason}")
    if len(outcome.skipped) > SKIPS_SHOWN:
        say(f"skipped: {len(outcome.skipped) - SKIPS_SHOWN} more (--format json lists all)")
    say(f"wrote {outcome.profile}")
    say(f"next: plan profile check {outcome.profile}; plan profile show {outcome.profile}")


def _why(outcome: Outcome) -> str:
    return next((f"{place}: {reason}" for place, reason in outcome.skipped.items()), outcome.ended)


def _as_json(outcome: Outcome) -> dict[str, Json]:
    return {
        "points": dict(outcome.points),
        "new_points": outcome.new_points,
        "seconds": dict(outcome.seconds),
        "skipped": dict(outcome.skipped),
        "notes": list(outcome.notes),
        "ended": outcome.ended,
        "log": str(outcome.log),
        "profile": str(outcome.profile),
    }
