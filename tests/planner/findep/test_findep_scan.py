"""The search finds the best of the box, by the tie rule, and says truly why there is none."""

from __future__ import annotations

from typing import Any

import pytest
from findep_cases import b, example, fixed, per_token, problem_of, random_document, seeded
from schedule_oracle import everything, preferred

from planner.errors import InfeasibleError, Relaxation
from planner.fields import set_field
from planner.papers.findep.certificate import bounds
from planner.papers.findep.engines import solve
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.scan import better_than, replay_all
from planner.papers.findep.space import stretches
from solvers.report import Limits


def decided(problem: FindepProblem) -> tuple[object, ...]:
    solution, _ = solve(problem, None, Limits())
    return (
        solution.attention_gpus,
        solution.expert_gpus,
        solution.m_a,
        solution.r1,
        solution.r2,
        solution.order,
    )


@pytest.mark.parametrize("seed", range(150))
def test_a_random_problem_is_solved_as_by_enumeration(seed: int) -> None:
    problem = problem_of(random_document(seeded(seed)))
    candidates = list(everything(problem))
    if not candidates:
        with pytest.raises(InfeasibleError):
            solve(problem, None, Limits())
        return
    best = max(objective for objective, _, _ in candidates)
    solution, report = solve(problem, None, Limits())
    assert solution.objective == pytest.approx(best, rel=1e-12)
    assert decided(problem) == preferred(candidates)
    assert solution.free_order_bound >= best * (1 - 1e-12)
    assert report.bound == solution.objective
    found, _ = replay_all(problem)
    assert found is not None
    assert found.objective == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_a_limit_leaves_what_ends_in_time(seed: int) -> None:
    """The limit is the median makespan of everything, or a little under the shortest."""
    document = random_document(seeded(1000 + seed))
    document |= {"memory": None, "launcher_rules": "none"}
    makespans = sorted(makespan for _, makespan, _ in everything(problem_of(document)))
    document["makespan_limit_s"] = makespans[len(makespans) // 2]
    problem = problem_of(document)
    assert decided(problem) == preferred(list(everything(problem)))
    document["makespan_limit_s"] = makespans[0] * 0.999
    with pytest.raises(InfeasibleError) as caught:
        solve(problem_of(document), None, Limits())
    assert (caught.value.code, caught.value.required) == ("makespan_limit", pytest.approx(makespans[0], rel=1e-12))


@pytest.mark.parametrize("seed", range(200))
def test_a_relaxation_is_enough_and_a_little_less_is_not(seed: int) -> None:
    source = seeded(5000 + seed)
    document = random_document(source)
    memory = example()["memory"]
    memory["attention_capacity_bytes"] = float(source.integers(0, 12))
    memory["expert_capacity_bytes"] = float(source.integers(0, 70))
    document["memory"] = memory
    document["launcher_rules"] = "none"
    try:
        solve(problem_of(document), None, Limits())
    except InfeasibleError as error:
        assert error.code in ("attention_memory", "expert_memory")
        relaxation = error.relaxation
        assert isinstance(relaxation, Relaxation)
        if relaxation.proven:
            set_field(document, relaxation.field, relaxation.value)
            solve(problem_of(document), None, Limits())
            set_field(document, relaxation.field, relaxation.value * (1 - 1e-6))
            with pytest.raises(InfeasibleError):
                solve(problem_of(document), None, Limits())
        else:
            set_field(document, relaxation.field, relaxation.value)
            with pytest.raises(InfeasibleError, match="fits the") as again:
                solve(problem_of(document), None, Limits())
            assert again.value.code != error.code


@pytest.mark.parametrize("certify", [False, True])
def test_the_bounds_prove_the_best_and_expose_a_worse_plan(certify: bool) -> None:
    problem = problem_of(b())
    best, _ = solve(problem, None, Limits())
    any_order, family = bounds(problem, best, certify, 1.0)
    assert (family.value, family.kind) == (best.objective, "exhaustive")
    assert any_order.value == best.free_order_bound
    worse, _ = solve(problem_of(b(search={"max_m_a": 3})), None, Limits())
    assert bounds(problem, worse, certify, 1.0)[1].value == best.objective


def test_nothing_beats_the_best() -> None:
    problem = problem_of(b())
    assert better_than(problem, 0.4)[0] == 0.4
    assert better_than(problem, 0.3)[0] == 0.4


def test_without_shared_experts_the_orders_are_one() -> None:
    solution, _ = solve(problem_of(fixed(2, 0, 1, 3, 4, 2)), None, Limits())
    assert solution.order == "AASS"
    assert all(layer.shared == () for layer in (solution.timeline.steady or solution.timeline).layers)  # type: ignore[union-attr]
    alone, _ = solve(problem_of(b(shared_expert=None, search={"orders": ["ASAS"]})), None, Limits())
    assert alone.order == "ASAS"


def test_a_large_start_up_cost_of_a_link_leaves_one_chunk() -> None:
    split = {"attention_gpus": 2, "expert_gpus": 2, "a2e": per_token(1e6)}
    assert solve(problem_of(b(splits=[split])), None, Limits())[0].r2 == 1


def test_a_chunk_has_at_least_one_token_of_its_micro_batch() -> None:
    assert solve(problem_of(b(search={"max_m_a": 1})), None, Limits())[0].r2 == 1
    assert max(int(part.r2.max()) for part in stretches(problem_of(b(search={"max_r2": 64})))) == 4


def test_long_boxes_are_walked_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.papers.findep import space

    whole = decided(problem_of(b(search={"max_m_a": 20, "max_r2": 8})))
    monkeypatch.setattr(space, "STRETCH", 16)
    problem = problem_of(b(search={"max_m_a": 20, "max_r2": 8}))
    parts = list(stretches(problem))
    assert len(parts) > 5
    assert sum(len(part.m_a) for part in parts) == sum(min(8, m_a) for m_a in range(1, 21))
    assert decided(problem) == whole


# --- launcher rules -----------------------------------------------------------------------------------------------


def splits(*pools: tuple[int, int]) -> list[dict[str, Any]]:
    return [{"attention_gpus": ag, "expert_gpus": eg, "a2e": per_token(0.5, 0.5)} for ag, eg in pools]


def test_the_afd_plugin_runs_two_whole_micro_batches_on_pools_that_divide() -> None:
    document = b(launcher_rules="vllm_afd", splits=splits((2, 4), (3, 2), (4, 2)))
    ag, eg, _, r1, r2, _ = decided(problem_of(document))
    assert (ag, eg, r1, r2) == (4, 2, 2, 1)


def test_no_split_that_the_launcher_starts() -> None:
    with pytest.raises(InfeasibleError, match="no split obeys") as caught:
        solve(problem_of(b(launcher_rules="vllm_afd", splits=splits((2, 4), (3, 2)))), None, Limits())
    assert (caught.value.code, caught.value.relaxation) == ("launcher_rules", None)


def test_a_box_without_the_two_micro_batches_that_the_launcher_runs() -> None:
    document = b(launcher_rules="vllm_afd", search={"max_r1": 1})
    with pytest.raises(InfeasibleError) as caught:
        solve(problem_of(document), None, Limits())
    assert (caught.value.code, caught.value.where) == ("launcher_rules", "search.max_r1")
    document["search"]["max_r1"] = 2
    assert solve(problem_of(document), None, Limits())[0].r1 == 2


def test_per_gpu_throughput_prefers_fewer_gpus() -> None:
    document = b(splits=splits((2, 2), (2, 4)))
    assert decided(problem_of(document))[:2] == (2, 4)
    assert decided(problem_of(document | {"objective": "tokens_per_s_per_gpu"}))[:2] == (2, 2)
