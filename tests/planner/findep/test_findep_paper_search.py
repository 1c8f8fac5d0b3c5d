"""The paper's own search: the page's answers, what it assumes, and no claim that it cannot prove."""

from __future__ import annotations

import findep_cases as cases
import pytest

from planner.errors import InfeasibleError, LimitError
from planner.papers.findep.check import check
from planner.papers.findep.paper_search import by_paper, paper_search
from planner.papers.findep.scan import scan
from planner.papers.findep.schedule import build_solution
from solvers.report import Status


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        # G2, G2b, G3, G4 and G6 of the golden cases.
        (cases.b(), (4, 2, 2, "AASS", 40.0)),
        (cases.b(num_layers=60), (4, 2, 2, "AASS", 1084.0)),
        (cases.fixed(5, 6, 7, 2, 8, 2), (1, 2, 1, "AASS", 185.0)),
        (cases.fixed(1, 3, 4, 3, 8, 3), (1, 3, 1, "ASAS", 104.0)),
        (cases.example(), (3, 2, 2, "AASS", 32.0)),
        # G10, in the paper's unstated unit.
        (cases.paper_constants(), (4, 4, 16, "AASS", pytest.approx(5554.8549, rel=1e-8))),
    ],
    ids=["G2", "G2b", "G3", "G4", "G6", "G10"],
)
def test_it_finds_the_plans_of_the_page(document: cases.Document, expected: tuple[object, ...]) -> None:
    found = paper_search(cases.problem_of(document))
    assert (found.m_a, found.r1, found.r2, found.order, found.makespan_s) == expected


def test_it_proves_nothing_and_its_plan_passes_the_check() -> None:
    problem = cases.problem_of(cases.b())
    decision, status, bound = by_paper(problem)
    assert status is Status.FEASIBLE
    # Not of the plan (39 s) but of the box: r2 = 3 has G = 47/3 and so at least 2·2·5 + 2·4 + 47/3 - 5 = 116/3 s.
    assert bound == pytest.approx(16 * 3 / 116)
    assert check(problem, build_solution(problem, decision, bound)) == []


def test_whole_tokens_hide_a_second_valley_in_r2_from_it() -> None:
    # One micro-batch of six tokens an expert, t_a = 1, t_x = t_y = m_e, t_e = 2·m_e: D = 1 + 2·m_e + r2·2·m_e.
    # Rounded up, r2 = 1..6 take 25, 19, 17, 21, 25, 15 s: the valley at 3 is not the deepest.
    document = cases.fixed(1, 0, 1, 1, 1, 1, tokens_per_sample=6)
    document["expert"] = cases.per_token(0.0, 2.0)
    document["splits"][0]["a2e"] = cases.per_token(0.0, 1.0)
    document["search"] |= {"max_r2": 6, "token_rounding": "ceil"}
    problem = cases.problem_of(document)
    found, best = paper_search(problem), scan(problem).best
    assert (found.r2, found.makespan_s) == (3, 17.0)
    assert best is not None and (best.r2, best.makespan_s) == (6, 15.0)
    document["search"]["token_rounding"] = "real"
    exact = paper_search(cases.problem_of(document))
    assert (exact.r2, exact.makespan_s) == (6, 15.0)


def test_whole_tokens_make_a_larger_micro_batch_the_worse_one() -> None:
    # m_e = m_a·2/4 rounded up, t_e = 2·10·m_e: m_a = 2 takes 1 + 1 + 20 + 1 s for 4 tokens, m_a = 3 takes 43 s for 6.
    document = cases.fixed(1, 0, 1, 1, 1, 1, num_experts=4)
    document["expert"] = cases.per_token(0.0, 10.0)
    document["search"] |= {"max_m_a": 3, "token_rounding": "ceil"}
    problem = cases.problem_of(document)
    found, best = paper_search(problem), scan(problem).best
    assert (found.m_a, found.makespan_s) == (3, 43.0)
    assert best is not None and (best.m_a, best.makespan_s) == (2, 23.0)


def test_a_makespan_limit_opens_the_pairs_that_the_pareto_rule_closes() -> None:
    # G8: without memory the rule looks at m_a = 4, r1 = 2 alone, which takes 40 s; m_a = 2 takes 24 s.
    found = paper_search(cases.problem_of(cases.b(makespan_limit_s=24.0)))
    assert (found.m_a, found.r1, found.r2, found.makespan_s) == (2, 2, 2, 24.0)


def test_a_limit_that_it_does_not_meet_is_not_called_impossible() -> None:
    # G8: the fastest plan takes 14 s, so 13.9 is infeasible; this search cannot know.
    with pytest.raises(LimitError, match="proves nothing") as failed:
        paper_search(cases.problem_of(cases.b(makespan_limit_s=13.9)))
    assert (failed.value.code, failed.value.where) == ("paper_search", "makespan_limit_s")


def test_what_fits_no_memory_is_infeasible_for_it_too() -> None:
    document = cases.example()
    document["memory"]["attention_capacity_bytes"] = 6
    with pytest.raises(InfeasibleError) as failed:
        paper_search(cases.problem_of(document))
    assert failed.value.code == "attention_memory"


@pytest.mark.parametrize("seed", range(60))
def test_with_real_tokens_and_lines_it_misses_nothing(seed: int) -> None:
    # Nothing missed in 150 random problems with real m_e; no theorem, but seeds are fixed.
    source = cases.seeded(1000 + seed)
    document = cases.random_document(source, layers=6)
    document["search"]["token_rounding"] = "real"
    if seed % 2:
        document["makespan_limit_s"] = float(10 ** source.uniform(1, 3))
    problem = cases.problem_of(document)
    best = scan(problem).best
    if best is None:
        with pytest.raises((LimitError, InfeasibleError)):
            paper_search(problem)
    else:
        assert paper_search(problem).objective == pytest.approx(best.objective, rel=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_with_whole_tokens_its_plan_is_a_true_one(seed: int) -> None:
    document = cases.random_document(cases.seeded(2000 + seed), layers=6)
    document["search"]["token_rounding"] = "ceil"
    problem = cases.problem_of(document)
    best = scan(problem).best
    if best is None:
        with pytest.raises(InfeasibleError):
            paper_search(problem)
        return
    decision, _, bound = by_paper(problem)
    solution = build_solution(problem, decision, bound)
    assert check(problem, solution) == []
    assert solution.objective == pytest.approx(decision.objective, rel=1e-12)
    assert decision.objective <= best.objective * (1 + 1e-9)
