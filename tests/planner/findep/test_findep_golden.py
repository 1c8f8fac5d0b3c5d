"""The golden cases, each derived by hand or by full enumeration."""

from __future__ import annotations

from typing import Any

import pytest
from findep_cases import b, example, fixed, paper_constants, per_sample, per_token, problem_of
from schedule_oracle import makespan_s

from planner.errors import InfeasibleError
from planner.papers.findep.engines import solve
from planner.papers.findep.solution import FindepSolution
from solvers.report import Limits


def solved(document: dict[str, Any], method: str | None = None) -> FindepSolution:
    return solve(problem_of(document), method, Limits())[0]


def decision(solution: FindepSolution) -> tuple[int, int, int, str]:
    return solution.m_a, solution.r1, solution.r2, solution.order


def refused(document: dict[str, Any]) -> InfeasibleError:
    with pytest.raises(InfeasibleError) as caught:
        solve(problem_of(document), None, Limits())
    return caught.value


def test_g1_both_orders_tie_and_aass_is_reported() -> None:
    """2 + 1 + 3 + 1: the shared expert ends at 3, long before."""
    solution = solved(fixed(2, 1, 1, 3, 1, 1))
    assert (solution.makespan_s, solution.objective, solution.order) == (7.0, 2 / 7, "AASS")


@pytest.mark.parametrize(
    ("r2", "order", "makespan_s"), [(2, "AASS", 40.0), (1, "AASS", 43.0), (2, "ASAS", 43.0), (1, "ASAS", 47.0)]
)
def test_g2_the_example_without_memory(r2: int, order: str, makespan_s: float) -> None:
    solution = solved(b())
    assert decision(solution) == (4, 2, 2, "AASS")
    assert (solution.makespan_s, solution.objective) == (40.0, 0.4)
    assert solved(b(search={"max_r2": r2, "orders": [order]})).makespan_s == makespan_s


def test_g2_the_bound_for_any_order_stands_at_39_seconds_for_that_candidate() -> None:
    """m_a=4, r1=2, r2=2: 16 tokens in at least 39 s; smaller r2 or r1 promise less, larger r2 more."""
    assert solved(b(search={"max_r2": 2})).free_order_bound == pytest.approx(16 / 39, rel=1e-12)


def test_g2b_sixty_layers_of_period_18() -> None:
    solution = solved(b(num_layers=60))
    assert decision(solution) == (4, 2, 2, "AASS")
    assert solution.makespan_s == 1084.0  # 22 + 59·18
    assert solution.objective == pytest.approx(16 / 1084)
    assert solution.timeline.steady is not None
    assert (solution.timeline.steady.cycle_layers, solution.timeline.steady.period_s) == (1, 18.0)
    asas = solved(b(num_layers=60, search={"orders": ["ASAS"]}))
    assert asas.objective == pytest.approx(0.014724, abs=5e-7)


def test_g3_a_cycle_of_two_layers() -> None:
    """Layer ends 28, 50, 73, 95, 118, …: extrapolating the first step would give 182."""
    solution = solved(fixed(5, 6, 7, 2, 8, 2))
    assert (solution.r1, solution.order, solution.makespan_s) == (2, "AASS", 185.0)
    assert solution.timeline.steady is not None
    assert (solution.timeline.steady.cycle_layers, solution.timeline.steady.period_s) == (2, 45.0)
    assert solved(fixed(5, 6, 7, 2, 8, 2, search={"max_m_a": 1, "max_r1": 2, "orders": ["ASAS"]})).makespan_s == 186.0
    assert solved(fixed(5, 6, 7, 2, 8, 1)).objective == pytest.approx(1 / 84)


def test_g4_asas_wins_where_its_period_is_shorter() -> None:
    """ASAS period r1·F = 3·max(4, 4) = 12: 7·12 + 12 + 8."""
    solution = solved(fixed(1, 3, 4, 3, 8, 3))
    assert (solution.r1, solution.order, solution.makespan_s) == (3, "ASAS", 104.0)
    assert makespan_s(8, 3, 1, "AASS", (1.0, 3.0, 4.0, 3.0, 4.0)) == 122.0


@pytest.mark.parametrize(("num_layers", "makespan_s"), [(1, 5.0), (4, 20.0)])
def test_g5_two_chunks_count_the_slowest_task_once_more(num_layers: int, makespan_s: float) -> None:
    """All times 1, r1=1, r2=2: 1 + 1 + 1 + 1 and one more; the print gives 6."""
    document = b(
        num_layers=num_layers,
        num_experts=2,
        top_k=1,
        attention=per_sample(1.0),
        shared_expert=per_sample(1.0),
        expert=per_token(1.0),
        splits=[{"attention_gpus": 2, "expert_gpus": 2, "a2e": per_token(1.0)}],
        tokens_per_sample=2,
        search={"max_m_a": 1, "max_r1": 1, "max_r2": 2},
    )
    problem = problem_of(document)
    from planner.papers.findep.candidates import orders_of
    from planner.papers.findep.schedule import build_solution
    from planner.papers.findep.space import Decision

    for order in orders_of(problem):
        built = build_solution(problem, Decision(0, 1, 1, 2, order, 0.0, 0.0), 1.0)
        assert built.makespan_s == makespan_s


def test_g6_memory_rules_out_four_samples_in_two_micro_batches() -> None:
    """(4, 2) needs 4 + 16 + 4 = 24 of 20 bytes; (4, 1) fits and is slower."""
    solution = solved(example())
    assert decision(solution) == (3, 2, 2, "AASS")
    assert (solution.makespan_s, solution.objective) == (32.0, 0.375)
    assert solution.attention_memory_bytes == 4 + 3 * 2 * 2 + 3


def test_g7_no_memory_for_the_lightest_load() -> None:
    document = example()
    document["memory"]["attention_capacity_bytes"] = 6
    error = refused(document)
    assert (error.code, error.where) == ("attention_memory", "memory.attention_capacity_bytes")
    assert (error.required, error.available) == (7.0, 6.0)  # 4 + 2 + 1
    assert error.lines()[1] == "  required 7 B, available 6 B"
    assert error.relaxation is not None
    assert (error.relaxation.value, error.relaxation.proven) == (7.0, True)
    document["memory"]["attention_capacity_bytes"] = 7
    assert decision(solved(document)) == (1, 1, 1, "AASS")


def test_g8_a_limit_met_exactly_is_allowed() -> None:
    solution = solved(b(makespan_limit_s=24.0))
    assert decision(solution) == (2, 2, 2, "AASS")
    assert (solution.makespan_s, solution.objective) == (24.0, pytest.approx(1 / 3))


def test_g8_a_limit_below_the_fastest_schedule_names_it() -> None:
    error = refused(b(makespan_limit_s=13.9))
    assert (error.code, error.where) == ("makespan_limit", "makespan_limit_s")
    assert (error.required, error.available) == (14.0, 13.9)
    assert error.lines()[1] == "  required 14 s, available 13.9 s"
    assert error.relaxation is not None
    assert solved(b(makespan_limit_s=error.relaxation.value)).makespan_s == 14.0


def test_g9_the_busiest_gpu_sets_the_pace() -> None:
    """Five experts on two GPUs: h = 3."""
    solution = solved(b(num_experts=5))
    assert decision(solution) == (4, 2, 2, "AASS")
    assert solution.makespan_s == pytest.approx(45.0)
    assert solution.tokens_per_expert_chunk == 1.6


def test_g10_the_constants_printed_in_the_paper() -> None:
    solution = solved(paper_constants())
    assert decision(solution) == (4, 4, 16, "AASS")
    assert solution.makespan_s == pytest.approx(5554.8549, abs=5e-5)
    alone = solved(paper_constants(max_m_a=1, max_r1=1))
    assert (alone.r2, alone.makespan_s) == (7, pytest.approx(583.0886, abs=5e-5))


def test_g10_throughput_rises_with_the_micro_batch_and_with_their_number() -> None:
    """As in every printed cell of the paper's monotonicity table; r1 = 1, then m_a = 1."""
    by_size = [solved(paper_constants(max_m_a=m_a, max_r1=1)).objective for m_a in (1, 2, 4)]
    by_number = [solved(paper_constants(max_m_a=1, max_r1=r1)).objective for r1 in (1, 2, 4)]
    assert by_size == pytest.approx([14.05, 15.50, 16.28], abs=5e-3)
    assert by_number == pytest.approx([14.05, 21.02, 22.91], abs=5e-3)


@pytest.mark.parametrize("method", ["scan", "replay"])
def test_methods_agree_on_the_golden_cases(method: str) -> None:
    for document in (b(), b(num_layers=60), fixed(5, 6, 7, 2, 8, 2), fixed(1, 3, 4, 3, 8, 3), example()):
        assert solved(document, method).objective == pytest.approx(solved(document).objective, rel=1e-12)
        assert decision(solved(document, method)) == decision(solved(document))
