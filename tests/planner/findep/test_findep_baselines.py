"""The baselines: the page's values, their own best settings, and solutions that the check accepts."""

from __future__ import annotations

import findep_cases as cases
import numpy as np
import pytest

from planner.errors import LimitError
from planner.paper import Baseline
from planner.papers.findep import formulation
from planner.papers.findep.baselines import baselines
from planner.papers.findep.check import check
from planner.papers.findep.check_bound import best_possible
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.scan import replay_all, scan
from planner.papers.findep.solution import FindepSolution
from planner.papers.findep.times import task_times
from solvers.report import Limits

NAMES = ["naive", "pppipe", "pppipe_rule", "dbo2", "aass_only", "asas_only", "free_order"]
FOLDED = NAMES[:4]


def of(document: cases.Document) -> dict[str, Baseline[FindepSolution]]:
    found = baselines(cases.problem_of(document), Limits())
    assert [baseline.name for baseline in found] == NAMES
    return {baseline.name: baseline for baseline in found}


def test_the_values_of_the_page() -> None:
    found = of(cases.b())
    # B: 4·2/46 with m_a = 4; 2·4·2/55; 16/40. ASAS takes r2 = 3: m_e = 4/3, t_x = t_y = 11/6,
    # t_e = 7/3, G = 5 + 2·11/6 + 7/3 + 2·7/3 = 47/3, F = 9, D = 18 + 47/3 + 9 = 128/3.
    expected = {"naive": 8 / 46, "pppipe": 16 / 55, "pppipe_rule": 16 / 55, "dbo2": 16 / 55}
    expected |= {"aass_only": 0.4, "asas_only": 16 * 3 / 128}
    assert {name: found[name].objective for name in expected} == pytest.approx(expected, rel=1e-12)
    assert found["naive"].note == "m_a=4, r1=1, r2=1"
    assert found["pppipe"].note == found["dbo2"].note == "m_a=4, r1=2, r2=1"
    assert found["asas_only"].note == "m_a=4, r1=2, r2=3"


def test_the_free_order_row_says_how_far_the_plan_is_from_any_order() -> None:
    # G2: 40 s, proved by CP-SAT.
    row = of(cases.b())["free_order"]
    assert (row.objective, row.solution, row.feasible) == (None, None, True)
    assert row.note == (
        "best of any order on the first 2 layers: 40 s, this plan's order 40 s there: 0.00 % apart, proved"
    )
    assert "on the first 2 layers" in of(cases.b(num_layers=60))["free_order"].note
    assert "on the first layer:" in of(cases.b(num_layers=1))["free_order"].note
    wide = of(cases.fixed(1, 3, 4, 3, 8, 8))["free_order"]
    assert wide.note == "not asked: 8 micro-batches, at most 4 are ordered freely"


def test_a_reference_that_the_clock_ends_is_a_note_and_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*_: object) -> formulation.FreeOrder:
        raise LimitError("the time limit of 1.0 s ended it", code="time_limit")

    monkeypatch.setattr(formulation, "free_order", ended)
    assert of(cases.b())["free_order"].note == "not answered: the time limit of 1.0 s ended it"


def test_megascales_rule_and_its_own_estimate() -> None:
    # m_a = 4, r2 = 1: t_a' = 9, t_x = 4.5, t_e = 5, so T_f = 9 and r1 = 2·(1 + 0.5) = 3. Its estimate is
    # 9 + 5 + 2·4.5 + 9·(3·2 - 1) = 68; by eq. 8, 27 + 23 + 2·9 = 68 as well.
    found = of(cases.b(search={"max_r1": 4}))["pppipe_rule"]
    assert found.objective == pytest.approx(24 / 68, rel=1e-12)
    assert found.note == "m_a=4, r1=3, r2=1: its own estimate is 68 s, replay takes 68 s"
    # The box of B allows two: 23 + 9·(2·2 - 1) = 50, while the layers wait for each other.
    capped = of(cases.b())["pppipe_rule"]
    assert capped.note == "m_a=4, r1=2, r2=1: its own estimate is 50 s, replay takes 55 s; it asks for r1=3"


def test_megascales_rule_with_unequal_links_counts_each_once() -> None:
    # t_a' = 3, t_x = 1, t_e = 3, t_y = 4: r1 = 2 + (1 + 4)/3 up = 4, estimate 3 + 3 + 5 + 3·(4·1 - 1) = 20.
    document = cases.fixed(2, 1, 1, 3, 1, 5)
    document["splits"][0]["e2a"] = cases.per_token(4.0)
    assert of(document)["pppipe_rule"].note.startswith("m_a=1, r1=4, r2=1: its own estimate is 20 s")


def test_memory_binds_the_baselines_too() -> None:
    # G6: (4, 2) does not fit, (4, 1) and (3, 2) do. m_a = 3: t_a' = 7, t_x = t_y = 3.5, t_e = 4, G = 18:
    # 18 + 18 + 7 = 43 for 12 tokens.
    found = of(cases.example())
    assert found["naive"].objective == pytest.approx(8 / 46, rel=1e-12)
    assert found["pppipe"].objective == found["dbo2"].objective == pytest.approx(12 / 43, rel=1e-12)


def test_launcher_rules_leave_what_they_start() -> None:
    found = of(cases.b(launcher_rules="vllm_afd"))
    assert (found["naive"].objective, found["naive"].feasible) == (None, False)
    assert found["naive"].note == "launcher_rules vllm_afd runs two micro-batches"
    assert found["pppipe"].objective == found["dbo2"].objective == pytest.approx(16 / 55, rel=1e-12)
    # Uncapped the rule asks for three.
    wide = of(cases.b(launcher_rules="vllm_afd", search={"max_r1": 4}))["pppipe_rule"]
    assert wide.note == "launcher_rules vllm_afd runs two micro-batches, for which the rule does not ask"


def test_a_baseline_without_a_setting_says_why() -> None:
    assert of(cases.b(search={"max_r1": 1}))["dbo2"].note == "search.max_r1 is 1"
    tight = of(cases.b(makespan_limit_s=14.0))
    # G8: the fastest plan of both orders takes 14 s, m_a = 1. Folded, t_a' = 3, t_x = t_y = 1.5, t_e = 2 take 16 s.
    assert {tight[name].note for name in FOLDED} == {"no setting meets makespan_limit_s"}
    assert tight["aass_only"].objective == pytest.approx(2 / 14)
    full = cases.example()
    full["memory"]["attention_capacity_bytes"] = 6
    found = of(full)
    assert {found[name].note for name in ("naive", "pppipe", "dbo2")} == {"no setting fits the memory"}
    assert {baseline.objective for baseline in found.values()} == {None}


def test_folded_schedules_need_the_order_asas_to_be_written_down() -> None:
    found = of(cases.b(search={"orders": ["AASS"]}))
    assert found["asas_only"].note == "search.orders leaves it out"
    assert found["pppipe"].solution is None and found["pppipe"].objective == pytest.approx(16 / 55)
    assert found["pppipe"].note == "m_a=4, r1=2, r2=1; search.orders has no order to write it down in"
    # One micro-batch has one order.
    assert found["naive"].solution is not None and found["naive"].solution.order == "AASS"


def test_a_folded_transfer_waits_for_the_shared_expert() -> None:
    # fixed(2,1,1,3; 1,1): a 0-2, s 2-3, x 3-4, e 4-7, y 7-8.
    solution = of(cases.fixed(2, 1, 1, 3, 1, 1))["naive"].solution
    assert solution is not None
    (layer,) = solution.timeline.prologue
    assert (layer.attention, layer.shared, layer.a2e, layer.expert) == ((0.0,), (2.0,), ((3.0,),), ((4.0,),))
    assert solution.makespan_s == 8.0


def _folded_by_replay(problem: FindepProblem, max_r1: int) -> float | None:
    """The best of the folded problem, whose attention is both, by replay of every candidate."""
    sizes = np.arange(1, problem.search.max_m_a + 1)
    times = task_times(problem, problem.splits[0], sizes, np.ones_like(sizes))
    table = {"samples": sizes.tolist(), "times_s": (times.attention_s + times.shared_s).tolist()}
    document = problem.model_dump(exclude={"shared_expert", "notes", "attention"}) | {"attention": table}
    document["search"] |= {"max_r1": max_r1, "max_r2": 1}
    decision, _ = replay_all(cases.problem_of(document))
    return None if decision is None else decision.objective


@pytest.mark.parametrize("seed", range(40))
def test_baselines_are_checked_schedules_no_better_than_any_order(seed: int) -> None:
    source = cases.seeded(seed)
    document = cases.random_document(source, layers=6)
    if seed % 3 == 0:
        document["makespan_limit_s"] = float(10 ** source.uniform(1, 3))
    problem = cases.problem_of(document)
    bound = best_possible(problem)
    search = problem.search.model_copy(update={"orders": ("AASS", "ASAS")})
    best = scan(problem.model_copy(update={"search": search})).best
    for baseline in baselines(problem, Limits()):
        assert (baseline.objective is None) == (not baseline.feasible or baseline.name == "free_order")
        if baseline.objective is None:
            assert baseline.note and baseline.solution is None
            continue
        assert best is not None
        # A folded schedule is one of ASAS with later starts.
        assert baseline.objective <= best.objective * (1 + 1e-9) <= bound * (1 + 2e-9)
        if baseline.solution is not None:
            assert check(problem, baseline.solution) == []
            assert baseline.solution.objective == baseline.objective


@pytest.mark.parametrize("seed", range(30))
def test_pppipe_and_naive_are_the_best_of_the_folded_problem(seed: int) -> None:
    document = cases.random_document(cases.seeded(seed), layers=6) | {"launcher_rules": "none"}
    document["splits"] = document["splits"][:1]
    problem = cases.problem_of(document)
    found = of(document)
    for name, max_r1 in (("naive", 1), ("pppipe", problem.search.max_r1)):
        expected = _folded_by_replay(problem, max_r1)
        assert found[name].objective == (None if expected is None else pytest.approx(expected, rel=1e-9))
