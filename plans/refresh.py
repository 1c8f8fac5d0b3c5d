"""Solve the reference problems again and write their plans: ``python plans/refresh.py [PAPER ...]``.

Run it when a change of engine or cost table is meant to change plans, and read ``git diff`` or ``plan diff`` after. A
problem with a ``.summary.json`` beside it gives a plan too large to keep: its summary is written instead.
"""

from __future__ import annotations

import sys
from pathlib import Path

from planner.api import dump, solve
from planner.documents import canonical_bytes
from planner.units import amount

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "tests"))


def main(papers: list[str]) -> None:
    """Refresh every plan of some papers, of all if none is named."""
    from test_plans import summary

    for path in sorted(FOLDER.glob("*/*.problem.json")):
        if papers and path.parent.name not in papers:
            continue
        name = path.name.removesuffix(".problem.json")
        plan = solve(str(path))
        kept = path.with_name(f"{name}.summary.json")
        if kept.exists():
            kept.write_bytes(canonical_bytes(summary(plan)))
        else:
            dump(plan, str(path.with_name(f"{name}.plan.json")))
        certificate = plan.certificate
        print(
            f"{path.parent.name}/{name}: {amount(certificate.objective, certificate.unit)}, gap {certificate.gap:.4%}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
