"""``plan check``: recompute what plans say, without a solver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planner.cli.data_option import data_option

if TYPE_CHECKING:
    from planner.certificate import Certificate
    from planner.measured import Against
    from planner.paper import Violation
    from planner.plan import Plan
    from planner.steps.lines import StepTimes


@click.command("check", epilog="Example: plan check plan.json")
@click.argument("plans", nargs=-1, required=True)
@data_option
@click.option("--against", "log", metavar="LOG",
              help="Measured step times beside the prediction: a training log, JSON Lines or CSV.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the output.")
def command(plans: tuple[str, ...], data: str | None, log: str | None, form: str) -> int:
    """Recompute feasibility, objective, metrics and solver-free bounds of each PLAN from the plan alone."""
    from planner.api import check, load
    from planner.errors import RefutedError
    from planner.printable import printable
    from planner.units import percent

    times = _step_times(log)
    refuted: list[tuple[str, Violation]] = []
    results = []
    for path in plans:
        plan = load(path, data)
        report = check(plan)
        refuted += [(path, violation) for violation in report.violations]
        against = None if report.violations else _against(plan, times, log)
        strongest = max if plan.paper.sense == "min" else min
        proved = strongest((bound.value for bound in report.bounds), default=None)
        results.append(
            {
                "plan": path,
                "ok": not report.violations,
                "objective": plan.certificate.objective,
                "unit": plan.certificate.unit,
                "gap": plan.certificate.gap,
                "proved_bound": proved,
                "bounds": [vars(bound) for bound in report.bounds],
                "claimed_bound": plan.certificate.bound if report.claimed_bound else None,
                "violations": [vars(violation) for violation in report.violations],
                **({} if against is None else {"against": against.as_object()}),
            }
        )
        if form == "text" and not report.violations:
            certificate = plan.certificate
            source = "claimed: proved with more effort than a check spends" if report.claimed_bound else "re-proved"
            click.echo(f"{path}: ok, {_objective(certificate)}, gap {percent(certificate.gap)} ({source})")
            for line in [] if against is None else against.lines():
                click.echo(printable(line))
    if form == "json":
        from planner.documents import canonical_bytes

        click.echo(canonical_bytes(results), nl=False)
    if refuted:
        raise RefutedError(
            f"{len(refuted)} violation{'s' if len(refuted) > 1 else ''}",
            code=refuted[0][1].code,
            violations=tuple(f"{path}: {violation}" for path, violation in refuted),
        )
    return 0


def _objective(certificate: Certificate) -> str:
    """The objective to six digits, or to all before the point."""
    value, unit = certificate.objective, certificate.unit
    return f"{value:.6g} {unit}" if abs(value) < 1e6 else f"{value:,.0f} {unit}"


def _step_times(log: str | None) -> StepTimes | None:
    if log is None:
        return None
    from planner.steps.log import read_step_times

    return read_step_times(log)


def _against(plan: Plan, times: StepTimes | None, log: str | None) -> Against | None:
    if times is None or log is None:
        return None
    from planner.measured import compare_with_log

    return compare_with_log(plan, times, log)
