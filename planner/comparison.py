"""A plan beside the baselines of its paper, all scored by the same evaluator and checked by the same check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.beside import Beside
from planner.errors import RefutedError
from planner.json_text import Json
from planner.paper import Baseline
from planner.plan import Options, Plan, load_document, make_plan
from planner.pose import pose
from planner.verification import require_true


@dataclass(frozen=True)
class Comparison:
    """The plan and the baselines, in the paper's order."""

    plan: Plan
    baselines: tuple[Baseline[Any], ...]

    def ratio(self, baseline: Baseline[Any]) -> float | None:
        """Baseline objective over what the plan gives in the same measure; None where the baseline has none."""
        if baseline.objective is None:
            return None
        plans = self.plan.certificate.objective if baseline.beside is None else baseline.beside
        if plans == 0:
            return 1.0 if baseline.objective == 0 else None
        return baseline.objective / plans


def compare_document(document: Json, options: Options, data: str | None = None) -> Comparison:
    """Solve a problem, or take a plan as it is, and run every baseline on the same explicit problem.

    Arrays that either names are in the folder ``data``, by default the base folder of the options.
    """
    folder = options.derive.base_folder if data is None else data
    if isinstance(document, dict) and "solution" in document:
        plan = load_document(document, "the plan", Beside(folder, base_names=True))
        require_true(plan)
    else:
        plan = make_plan(pose(document, options.derive, Beside(folder)), options)
    baselines = plan.paper.baselines(plan.problem, options.limits)
    for baseline in baselines:
        if baseline.solution is not None and baseline.feasible:
            violations = plan.paper.check(plan.problem, baseline.solution)
            if violations:
                raise RefutedError(
                    f"the check refutes the baseline {baseline.name}; this is a bug",
                    code=violations[0].code,
                    violations=tuple(map(str, violations)),
                )
    return Comparison(plan, tuple(baselines))
