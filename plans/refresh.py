"""Solve the reference problems again and write their plans: ``python plans/refresh.py``.

Run it when a change of engine or cost table is meant to change plans, and read ``git diff`` or ``plan diff`` after.
"""

from __future__ import annotations

import sys
from pathlib import Path

from planner.api import dump, solve
from planner.documents import canonical_bytes

FOLDER = Path(__file__).parent / "zellige"
sys.path.insert(0, str(FOLDER.parent.parent / "tests"))


def main() -> None:
    """Refresh every plan, and the summary of the problem that is too large to keep."""
    from test_plans import summary

    for path in sorted(FOLDER.glob("*.problem.json")):
        name = path.name.removesuffix(".problem.json")
        plan = solve(str(path))
        if name == "ranks-1024":
            (FOLDER / f"{name}.summary.json").write_bytes(canonical_bytes(summary(plan)))
        else:
            dump(plan, str(FOLDER / f"{name}.plan.json"))
        print(f"{name}: {plan.certificate.objective:.6g} s, gap {plan.certificate.gap:.4%}")


if __name__ == "__main__":
    main()
