"""The terminal view of a plan: its picture in block characters, its certificate in words."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from rich.text import Text

from planner import console
from planner.json_text import Json
from planner.paper import SOURCES
from planner.plan import Plan
from planner.printable import printable
from planner.reports.gantt import print_timeline
from planner.reports.palette import style
from planner.units import amount, percent
from planner.view import Bar, Bars, Timeline, View

_UNICODE = ("█", "▓", "▒", "░", "▪", "▫")
_ASCII = ("#", "=", "+", "-", "o", ".")
_BAR_WIDTH = 44
_LINES_SHOWN = 32
TOLD = 0.01
"""The share of a plan's time that is worth a word: the table's error between rows says nothing of modelled parts."""


def progress(message: str) -> AbstractContextManager[Callable[[float, str], None]]:
    """A spinner on a terminal, nothing elsewhere; what it gives is told how far a long search is."""
    return console.spinner(message)


def certificate_words(plan: Plan) -> str:
    """The certificate as a sentence that also says how far to trust the table."""
    certificate = plan.certificate
    if certificate.status == "optimal":
        claim = "proved optimal"
    else:
        claim = f"at most {percent(certificate.gap)} from the best possible"
    trust = "under these costs"
    if plan.inputs.profile is not None:
        trust = "under this table, whose own error is not known"
    if plan.cost_error:
        off = percent(plan.cost_error["median"])
        trust = f"under this table, which is itself off by {off} in the median between its rows"
        modelled = plan.sources.get("modelled", 0.0)
        if modelled >= TOLD:
            trust += f"; {percent(modelled)} of the time is modelled, maybe further off"
    return f"{claim} {trust}"


def summary_lines(plan: Plan) -> list[str]:
    """At most 14 lines about a plan."""
    certificate = plan.certificate
    lines = [f"{plan.paper.name}: {amount(certificate.objective, certificate.unit)}, {certificate_words(plan)}"]
    lines += plan.paper.summary(plan.problem, plan.solution)[:8]
    used = [f"{name} {plan.sources[name]:.1%}" for name in SOURCES if plan.sources.get(name, 0.0) > 0]
    lines.append(f"sources: {', '.join(used)}")
    lines += [f"warning: {warned.code}: {warned.message}" for warned in plan.warnings[:3]]
    return lines


def summary_object(plan: Plan) -> dict[str, Json]:
    """The summary for a program."""
    return {
        "paper": plan.paper.name,
        "certificate": plan.certificate.model_dump(exclude_none=True),
        "sources": plan.sources,
        "cost_error": plan.cost_error,
        "warnings": [vars(warned) for warned in plan.warnings],
        "metrics": dict(plan.paper.metrics(plan.solution)),
    }


def print_summary(plan: Plan, path: str) -> None:
    """The summary of ``plan solve -o``."""
    for line in [*summary_lines(plan), f"wrote {path}"]:
        console.say(line)


def print_plan(plan: Plan, *, claimed: bool = False, everything: bool = False) -> None:
    """The terminal view of ``plan show``; ``claimed`` says that the check could not prove the bound again."""
    for line in summary_lines(plan):
        console.say(line)
    if claimed:
        console.say("the bound is claimed: the check, which spends less, could not prove it again")
    print_view(plan.paper.view(plan.problem, plan.solution), everything=everything)


def print_view(view: View, *, everything: bool = False) -> None:
    """Sections from top to bottom; of many bars or tracks the first ones, unless ``everything`` is wanted."""
    for section in view.sections:
        console.say()
        if isinstance(section, Bars):
            _print_bars(section, len(section.bars) if everything else _LINES_SHOWN)
        elif isinstance(section, Timeline):
            print_timeline(section, len(section.tracks) if everything else _LINES_SHOWN)
        else:
            console.print_table(section.columns, section.rows, section.title)


def _print_bars(bars: Bars, shown: int) -> None:
    kinds = list(bars.kinds)
    glyphs = _UNICODE if console.unicode_ok() else _ASCII
    title = Text(printable(bars.title), style="bold")
    for kind in kinds:
        title.append("  ")
        title.append(glyphs[kinds.index(kind) % len(glyphs)], style=style(kinds.index(kind)))
        title.append(f" {printable(kind)}", style="not bold")
    console.draw(title)
    longest = max([sum(s.amount for s in bar.segments) for bar in bars.bars] + [bars.limit or 0.0]) or 1.0
    label_width = max(len(bar.label) for bar in bars.bars)
    console.draw(*(_bar_text(bar, kinds, glyphs, longest, label_width, bars.limit) for bar in bars.bars[:shown]))
    hidden = len(bars.bars) - shown
    if hidden > 0:
        console.say(f"{'':>{label_width}} and {hidden} more (--all)")


def _bar_text(
    bar: Bar, kinds: list[str], glyphs: tuple[str, ...], longest: float, label_width: int, limit: float | None
) -> Text:
    text = Text(f"{printable(bar.label):>{label_width}} ")
    reached, drawn = 0.0, 0
    for segment in bar.segments:
        reached += segment.amount
        # Ends are rounded, not lengths, so that segments add up to the bar.
        end = round(_BAR_WIDTH * reached / longest)
        position = kinds.index(segment.kind)
        text.append(glyphs[position % len(glyphs)] * (end - drawn), style=style(position))
        drawn = end
    mark = _BAR_WIDTH if limit is None else round(_BAR_WIDTH * limit / longest)
    tail = [" "] * (_BAR_WIDTH - drawn + 1)
    if limit is not None and mark >= drawn:
        tail[mark - drawn] = "|"
    text.append("".join(tail))
    text.append(f" {printable(bar.note)}")
    return text
