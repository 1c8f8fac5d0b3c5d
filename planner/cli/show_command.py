"""``plan show``: the terminal view of a plan, and what if numbers of its problem were others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planner.cli.data_option import data_option

if TYPE_CHECKING:
    from planner.plan import Plan


@click.command("show", epilog="Example: plan show plan.json --what-if cluster.memory_cap_bytes=+-20%")
@click.argument("plan")
@data_option
@click.option("--what-if", "questions", multiple=True, metavar="PATH=VALUE|±N|±X%",
              help="Solve again with one field of the plan's problem at a VALUE, as --set takes it, or moved over a "
              "range: ±20%, +5% and -5%, ±3 and +3; ± may be written +-. -3 is the value minus three. A percentage "
              "of a list scales its numbers, of an object its seconds; * is all of a list. derive.… is what the costs "
              "were derived from, priced again. Says where the decision changes. Repeatable.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the output.")
@click.option("--all", "everything", is_flag=True, help="Draw every rank, not only the first 32; cut no list.")
def command(plan: str, data: str | None, questions: tuple[str, ...], form: str, everything: bool) -> None:
    """Draw PLAN in the terminal: load per rank and what is split how, or a schedule's timeline; memory; certificate.

    With --what-if: how far a number of its problem may move before the decision changes, and what the objective does.
    """
    from planner.api import load
    from planner.reports.terminal import print_plan, summary_object
    from planner.verification import require_true

    loaded = load(plan, data)
    if questions:
        _answer(loaded, questions, form, everything)
        return
    report = require_true(loaded)
    if form == "json":
        from planner.documents import canonical_bytes

        click.echo(canonical_bytes(summary_object(loaded)), nl=False)
    else:
        print_plan(loaded, claimed=report.claimed_bound, everything=everything)


def _answer(plan: Plan, questions: tuple[str, ...], form: str, everything: bool) -> None:
    from planner import console
    from planner.api import what_if
    from planner.reports.sensitivity import print_what_if
    from planner.reports.terminal import summary_object

    answers = []
    for question in questions:
        with console.progress_bar() as tell:
            answers.append(what_if(plan, question, tell))
    if form == "json":
        from planner.documents import canonical_bytes

        what_ifs = [answer.as_object() for answer in answers]
        click.echo(canonical_bytes(summary_object(plan) | {"what_if": what_ifs}), nl=False)
        return
    for position, answer in enumerate(answers):
        if position:
            console.say()
        print_what_if(answer, everything=everything)
