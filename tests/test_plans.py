"""The public plans: each is what its problem gives today, byte for byte, and passes its check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner import papers
from planner.api import check, diff, load, solve
from planner.documents import canonical_bytes
from planner.envelope import dump_model

FOLDER = Path(__file__).parent.parent / "plans"
WHOLE = sorted(path.relative_to(FOLDER).as_posix().removesuffix(".plan.json") for path in FOLDER.glob("*/*.plan.json"))


def test_every_paper_has_reference_plans_and_every_problem_has_one() -> None:
    problems = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*.problem.json"))
    summaries = [path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*.summary.json")]
    assert summaries == ["zellige/ranks-1024.summary.json"]
    assert {f"{name}.problem.json" for name in WHOLE} == set(problems) - {"zellige/ranks-1024.problem.json"}
    assert {name.split("/")[0] for name in WHOLE} == set(papers.names())


@pytest.mark.parametrize("name", WHOLE)
def test_a_reference_plan_is_resolved_byte_for_byte(name: str, tmp_path: Path) -> None:
    stored = FOLDER / f"{name}.plan.json"
    plan = solve(str(FOLDER / f"{name}.problem.json"))
    fresh = tmp_path / "plan.json"
    fresh.write_bytes(plan.to_bytes())
    difference = diff(str(stored), str(fresh))
    assert difference.same, difference.changes[:5]
    assert fresh.read_bytes() == stored.read_bytes()
    assert not check(load(str(stored))).violations


def test_the_largest_problem_keeps_its_digest_and_metrics() -> None:
    """A thousand ranks make a plan of 40 MB: its summary is kept, not the plan."""
    plan = solve(str(FOLDER / "zellige" / "ranks-1024.problem.json"))
    assert not check(plan).violations
    assert summary(plan) == json.loads((FOLDER / "zellige" / "ranks-1024.summary.json").read_text())


def summary(plan) -> object:  # type: ignore[no-untyped-def]
    """Inputs by digest, certificate and metrics; the per-rank figures as their extremes."""
    metrics = dump_model(plan.solution)["metrics"]
    time_s, memory_bytes = metrics.pop("rank_time_s"), metrics.pop("rank_memory_bytes")
    metrics |= {"rank_time_s": [min(time_s), max(time_s)], "rank_memory_bytes": [min(memory_bytes), max(memory_bytes)]}
    document = {
        "problem_sha256": plan.inputs.problem_sha256,
        "profile_sha256": plan.inputs.profile_sha256,
        "sequences": len(plan.solution.placements),
        "certificate": plan.certificate.model_dump(exclude_none=True),
        "metrics": metrics,
        "sources": plan.sources,
    }
    return json.loads(canonical_bytes(document))
