"""The terminal view of a comparison."""

from __future__ import annotations

from planner import console
from planner.comparison import Comparison
from planner.json_text import Json
from planner.reports.terminal import summary_lines
from planner.units import amount


def comparison_object(comparison: Comparison) -> dict[str, Json]:
    """The comparison for a program; ``ratio`` is baseline over plan, over ``beside`` where that is given."""
    certificate = comparison.plan.certificate
    return {
        "paper": comparison.plan.paper.name,
        "plan": certificate.model_dump(exclude_none=True),
        "baselines": [
            {
                "name": baseline.name,
                "objective": baseline.objective,
                "feasible": baseline.feasible,
                "ratio": comparison.ratio(baseline),
                **({} if baseline.beside is None else {"beside": baseline.beside}),
                "note": baseline.note,
            }
            for baseline in comparison.baselines
        ],
    }


def print_comparison(comparison: Comparison) -> None:
    """The plan's summary line, then one row a baseline."""
    plan = comparison.plan
    unit = plan.certificate.unit
    console.say(summary_lines(plan)[0])
    console.say()
    rows = [("plan", amount(plan.certificate.objective, unit), "1.000", "")]
    for baseline in comparison.baselines:
        ratio = comparison.ratio(baseline)
        objective = "-" if baseline.objective is None else amount(baseline.objective, unit)
        state = "" if baseline.feasible else "infeasible: "
        rows.append((baseline.name, objective, "-" if ratio is None else f"{ratio:.3f}", f"{state}{baseline.note}"))
    console.print_table(("", "objective", "ratio", "note"), rows)
