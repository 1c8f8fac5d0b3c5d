"""The terminal view of a plan that was run: measured beside predicted, and where the time went."""

from __future__ import annotations

from collections.abc import Sequence

from planner import console
from planner.program import Beside, RunReport
from planner.units import in_bytes, percent, seconds

STARVED = 0.02
"""Share of a step without a core above which times mean little."""


def print_run(report: RunReport) -> None:
    """The makespan in a sentence, then ranks, configurations, work and memory as tables."""
    makespan = report.makespan
    said = f"under {report.profile}" if report.profile else "by the stated costs"
    console.say(
        f"{len(report.ranks)} ranks ran {len(report.makespans_s)} steps after one of warm-up "
        f"({report.kernels}, {report.dtype}, {report.transport})"
    )
    console.say(
        f"makespan: predicted {seconds(makespan.predicted)} {said}, measured {seconds(makespan.measured)} "
        f"({_spread(report.makespans_s)}): the prediction is {_off(makespan)}"
    )
    if report.numerics:
        worst = max(report.numerics.values())
        close = f"to {worst:.1e} of the largest" if worst else "bit for bit"
        console.say(f"split attention equals whole attention, forward and backward, {close}")
    if report.shared_cores:
        console.say("warning: more ranks than cores; ranks share cores, so their times say little")
    if report.starved > STARVED:
        console.say(f"warning: other programs kept a rank off its core for {report.starved:.0%} of the step")
    console.say()
    rows = [(*_cells(row), seconds(wait)) for row, wait in zip(report.ranks, report.waits_s, strict=True)]
    console.print_table(("busy", "predicted", "measured", "error", "waits"), rows)
    console.say()
    console.print_table(("rank-seconds went to", "", "share"), _work(report))
    console.say()
    console.print_table(("rank-seconds of", "predicted", "measured", "error"), [_cells(row) for row in report.kinds])
    if report.memory:
        console.say()
        cells = [(row.name, in_bytes(row.predicted), in_bytes(row.measured), _error(row)) for row in report.memory]
        console.print_table(("memory", "predicted", "measured", "error"), cells)


def _work(report: RunReport) -> list[tuple[str, str, str]]:
    """Rank-seconds of all ranks by kind of work."""
    total = {kind: sum(work[kind] for work in report.rank_work_s) for kind in report.rank_work_s[0]}
    busy = sum(total.values())
    return [(kind.replace("_", " "), seconds(spent), f"{spent / busy:.1%}") for kind, spent in total.items()]


def _cells(row: Beside) -> tuple[str, str, str, str]:
    return row.name, seconds(row.predicted), seconds(row.measured), _error(row)


def _error(row: Beside) -> str:
    return "-" if row.relative_error is None else f"{row.relative_error:+.1%}"


def _off(row: Beside) -> str:
    error = row.relative_error or 0.0
    return f"{percent(abs(error))} too {'long' if error > 0 else 'short'}"


def _spread(values: Sequence[float]) -> str:
    return f"{seconds(min(values))} to {seconds(max(values))}"
