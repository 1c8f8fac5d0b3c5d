"""The bounds hold, and the strong ones are what the search reaches."""

from __future__ import annotations

import janus_cases as cases
import pytest

from planner.certificate import Objective, certify
from planner.papers.janus import certificate
from planner.papers.janus.certificate import bounds
from planner.papers.janus.engines import solve
from planner.papers.janus.enumeration import enumerated
from planner.papers.janus.options import options
from solvers.report import Limits


def test_the_example_is_optimal_by_all_pairs_and_bounded_without_them() -> None:
    problem = cases.problem_of(cases.j())
    solution, report = solve(problem, None, Limits())
    simple, searched, looked_at = bounds(problem, solution, True, 1.0)
    # Without looking: ceil(16/5) expert instances and one for attention.
    assert (simple.value, simple.kind, simple.attained) == (5, "combinatorial", False)
    assert (searched.value, searched.kind, searched.attained) == (7, "exhaustive", True)
    assert (looked_at.value, looked_at.kind, looked_at.attained) == (7, "exhaustive", True)
    proved = certify(Objective(solution.objective, "min", "GPUs"), report, (simple, searched))
    assert (proved.status, proved.lower_bound, proved.gap) == ("optimal", 7, 0.0)


def test_memory_bounds_the_attention_instances() -> None:
    # TPOT >= 10·(2e-4 + 5e-4·1.2 + 1e-4 + 2·5e-5 + 2e-5) = 0.0102 s, so 1500 tokens/s keep 15.3 requests in flight, and
    # 2 GB beside the weights hold two on an instance: eight of them, and four for the experts.
    document = cases.j(memory={"capacity_bytes": 1.2e10}, demand_tokens_per_s=1500.0)
    document["limits"] = {"max_attention_instances": 40, "max_expert_instances": 8, "max_total_instances": 48}
    problem = cases.problem_of(document)
    solution, _ = solve(problem, None, Limits())
    assert bounds(problem, solution, False, 1.0)[0].value == 12
    assert solution.objective >= 12


def test_launcher_rules_bound_the_attention_instances_too() -> None:
    problem = cases.problem_of(cases.j(launcher_rules="vllm_afd"))
    solution, _ = solve(problem, None, Limits())
    assert bounds(problem, solution, False, 1.0)[0].value == 8


def test_no_bound_is_above_what_looking_at_every_pair_reaches() -> None:
    compared = close = 0
    for seed in range(100):
        document = cases.random_document(seed)
        problem = cases.problem_of(document)
        best = enumerated(options(problem), document["demand_tokens_per_s"])
        if not best:
            continue
        solution, _ = solve(problem, None, Limits())
        simple, searched, looked_at = bounds(problem, solution, True, 1.0)
        assert simple.value <= best[0].objective * (1 + 1e-12), seed
        assert searched.value == looked_at.value == best[0].objective, seed
        compared += 1
        close += simple.value == best[0].objective
    assert compared > 40
    # It says something: it is met in many.
    assert close > 10


def test_a_series_is_bounded_by_its_intervals() -> None:
    problem = cases.problem_of(cases.series([100.0, 600.0, 1500.0]))
    solution, _ = solve(problem, None, Limits())
    assert [bound.value for bound in bounds(problem, solution, True, 1.0)] == [15, 22, 22]


def test_too_many_pairs_leave_the_certificate_to_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "CERTIFY_PAIRS", 89)
    problem = cases.problem_of(cases.series([100.0, 600.0, 1500.0]))
    solution, _ = solve(problem, None, Limits())
    assert len(bounds(problem, solution, True, 1.0)) == 2


def test_what_is_infeasible_has_no_attained_bound() -> None:
    """A plan of another problem is left to the check."""
    solution, _ = solve(cases.problem_of(cases.j()), None, Limits())
    (simple,) = bounds(cases.problem_of(cases.j(slo_tpot_s=0.01)), solution, True, 1.0)
    assert simple.kind == "combinatorial"
