"""``plan profile fit``: textbook cost models fitted to a profile's rows."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from profiles.fitting.document import Fit

MANY = 12
"""More curves of one table than this are summed up; the JSON has them all."""


@click.command("fit", epilog="Example: plan profile fit h200-sxm --family all_gather")
@click.argument("profile")
@click.option("--family", "families", metavar="NAME", multiple=True, help="Only tables of this family (repeatable).")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the output.")
@click.option("-o", "--output", metavar="FILE", help="Write the fits here as JSON.")
def command(profile: str, families: tuple[str, ...], form: str, output: str | None) -> None:
    """Fit the textbook cost model to each table of PROFILE (a built-in name or a file).

    Collectives and copies: alpha-beta, in pieces where the protocol changes, and a ring over all ranks. Attention: a
    quadratic in the length. Products: a roofline. Needs scipy (pip install 'girih[fit]').
    """
    from planner import console
    from planner.documents import canonical_bytes
    from planner.files import write_atomically
    from profiles.fitting import fit_profile
    from profiles.library import load

    loaded = load(profile)
    with console.spinner(f"fitting {loaded.name}"):
        document = fit_profile(loaded, families)
    data = canonical_bytes(document.model_dump(mode="json"))
    if output is not None:
        write_atomically(output, data)
    if output == "-":
        return
    if form == "json":
        click.echo(data, nl=False)
        return
    console.say(f"{loaded.name}, sha256 {loaded.sha256[:12]}: errors are |predicted / measured - 1| over all rows")
    for table in dict.fromkeys(_title(fit) for fit in document.fits):
        _print_table(table, [fit for fit in document.fits if _title(fit) == table])
    for line in document.not_fitted:
        console.say(f"not fitted: {line}")


def _title(fit: Fit) -> str:
    return "/".join(part for part in (fit.table.family, fit.table.dtype, fit.table.backend, fit.table.workload) if part)


def _print_table(title: str, fits: list[Fit]) -> None:
    """Fits of one form together, many curves of one form summed up."""
    from planner import console

    console.say()
    console.say(title)
    for formula in dict.fromkeys(fit.formula for fit in fits):
        same = [fit for fit in fits if fit.formula == formula]
        console.say(f"  {same[0].form}: {formula}")
        for fit in same if len(same) <= MANY or len(fits) == len(same) else ():
            _print_fit(fit)
        if len(same) > MANY and len(fits) > len(same):
            console.say(f"    {len(same)} curves: {_summed_up(same)}")


def _summed_up(fits: list[Fit]) -> str:
    """The median curve and the worst."""
    from planner.units import percent

    medians = sorted(fit.error.median for fit in fits)
    worst = max(fits, key=lambda fit: fit.error.median)
    held = sorted(fit.held_out.median for fit in fits if fit.held_out is not None)
    shown = (
        f"median error {percent(medians[len(medians) // 2])} in the middle curve, {percent(medians[-1])} in the worst"
    )
    shown += f" ({_at(worst)})"
    return (
        shown
        + (f"; held out {percent(held[len(held) // 2])} in the middle curve" if held else "")
        + "; --format json has each"
    )


def _print_fit(fit: Fit) -> None:
    from planner import console
    from planner.units import percent

    console.say(f"    {_at(fit) or 'all rows'}")
    for piece in fit.pieces:
        coefficients = ", ".join(f"{name} {_number(value)}" for name, value in piece.coefficients.items())
        span = ", ".join(
            f"{axis} {low:.10g}..{high:.10g}" for axis, (low, high) in piece.ranges.items() if axis not in fit.at
        )
        console.say(f"      {coefficients}  ({piece.rows} rows, {span})")
    if fit.breakpoints_bytes:
        console.say(f"      protocol changes between {_brackets(fit)} bytes")
    if fit.derived:
        console.say(f"      {', '.join(f'{name} {_number(value)}' for name, value in fit.derived.items())}")
    if fit.at_bound:
        console.say(f"      not fixed by the rows, at a bound: {', '.join(fit.at_bound)}")
    parts = [] if fit.r_squared is None else [f"R2 {fit.r_squared:.5f} of log seconds"]
    for error in (fit.error, fit.held_out):
        if error is not None:
            how = f" ({error.how})" if error is fit.held_out else ""
            parts.append(f"mean {percent(error.mape)}, median {percent(error.median)}, p90 {percent(error.p90)}{how}")
    console.say(f"      {'; '.join(parts)}")


def _brackets(fit: Fit) -> str:
    """The largest size of each piece and the smallest of the next."""
    ranges = [piece.ranges["message_bytes"] for piece in fit.pieces]
    return ", ".join(f"{below[1]:.0f} and {above[0]:.0f}" for below, above in pairwise(ranges))


def _at(fit: Fit) -> str:
    return ", ".join(f"{axis} {value}" for axis, value in fit.at.items())


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
