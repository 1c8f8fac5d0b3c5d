"""The pools found are the cheapest of all, by the tie rule."""

from __future__ import annotations

import janus_cases as cases
import pytest

from planner.errors import BadInputError, InfeasibleError, LimitError
from planner.papers.janus import enumeration, fixed_point, model
from planner.papers.janus.engines import METHODS, solve
from planner.papers.janus.enumeration import enumerated
from planner.papers.janus.options import operating_point, options
from planner.papers.janus.search import Choice, cheapest
from solvers.report import Limits, Status


def test_the_example_takes_seven_gpus() -> None:
    """J4, as the page shows it."""
    solution = cases.scaled(cases.j())
    assert (solution.attention_instances, solution.expert_instances, solution.total_instances) == (1, 6, 7)
    assert solution.objective == 7
    assert solution.batch == solution.batch_per_attention_instance == pytest.approx(12.589716033232275, rel=1e-12)
    assert solution.tpot_s == pytest.approx(0.020982860055387124, rel=1e-12)
    assert solution.a_max == pytest.approx(2.915809669436023, rel=1e-12)
    assert solution.attention_memory_bytes == 2.3e10
    assert solution.tokens_per_s_per_gpu == pytest.approx(600 / 7)
    assert solution.layer.attention_s == pytest.approx(0.0003776914809969683, rel=1e-12)
    assert solution.layer.moe_s == pytest.approx(0.0015579048347180114, rel=1e-12)
    assert solution.layer.comm_s == pytest.approx(0.00016268968982373255, rel=1e-12)
    assert solution.layer.comm_case == 2
    assert solution.expert_maps == ()


def test_alternatives_start_with_the_plan_and_follow_the_tie_rule() -> None:
    found = cases.scaled(cases.j()).alternatives
    pools = [(each.attention_instances, each.expert_instances) for each in found]
    # Page: next (2, 6) at 0.018727 s, then (1, 7) at 0.020983 s. Of nine GPUs (1, 8) is fastest; (2, 7) and (3, 6) are
    # equally fast, for both are at the floor of attention on the same row and D = 2.
    assert pools == [(1, 6), (2, 6), (1, 7), (1, 8), (2, 7), (3, 6)]
    assert [each.objective for each in found] == [7, 8, 8, 9, 9, 9]
    assert found[1].tpot_s == pytest.approx(0.018727, abs=5e-7)
    assert found[2].tpot_s == pytest.approx(0.020983, abs=5e-7)


def test_fifteen_of_the_examples_pairs_carry_the_demand_and_none_of_six_gpus() -> None:
    option = options(cases.problem_of(cases.j()))[0]
    pairs = [(n_a, n_e) for n_a in range(1, 9) for n_e in range(4, 9) if n_a + n_e <= 12]
    points = {pair: operating_point(option, *pair, 600.0) for pair in pairs}
    good = [pair for pair, point in points.items() if point is not None and point.tpot_s <= 0.022]
    assert (len(pairs), len(good)) == (30, 15)
    six = [point.tpot_s for (n_a, n_e), point in points.items() if n_a + n_e <= 6 and point is not None]
    assert min(six) == pytest.approx(0.02761339, abs=5e-9)


@pytest.mark.parametrize(
    ("slo_s", "pools"), [(0.03066007930580648, (1, 4)), (0.03066007930580648 * (1 - 1e-6), (2, 4))]
)
def test_an_slo_that_is_just_reached_is_met(slo_s: float, pools: tuple[int, int]) -> None:
    """J5."""
    solution = cases.scaled(cases.j(slo_tpot_s=slo_s))
    assert (solution.attention_instances, solution.expert_instances) == pools


def tied(row_of_five: float, **changes: object) -> list[tuple[int, int]]:
    """Pools (1, 4), and then (2, 4) and (1, 5) in their order: as fast but for the row of five expert instances."""
    document = cases.const(1e-3, 0.0, [1, 64], [4, 4], 200.0) | changes
    document["a_max"] |= {"expert_instances": [4, 5], "values": [[4, 4], [row_of_five, row_of_five]]}
    document["limits"] = {"max_attention_instances": 2, "max_expert_instances": 5, "max_total_instances": 6}
    return [(each.attention_instances, each.expert_instances) for each in cases.scaled(document).alternatives]


def test_tokens_equally_fast_but_for_rounding_take_fewer_attention_instances() -> None:
    assert tied(4 * (1 + 1e-10)) == [(1, 4), (1, 5), (2, 4)]
    assert tied(4 * (1 + 1e-8)) == [(1, 4), (2, 4), (1, 5)]


def test_costs_equal_but_for_rounding_take_the_faster_tokens() -> None:
    def priced(expert: float) -> dict[str, float]:
        return {"attention_per_hour": 1.0, "expert_per_hour": expert}

    assert tied(3.9, prices=priced(1 + 1e-10)) == [(1, 4), (1, 5), (2, 4)]
    assert tied(3.9, prices=priced(1 + 1e-7)) == [(1, 4), (2, 4), (1, 5)]


def test_the_batch_is_shared_by_the_attention_instances() -> None:
    solution = cases.scaled(cases.j(demand_tokens_per_s=1500.0))
    assert (solution.attention_instances, solution.expert_instances) == (2, 8)
    assert solution.batch_per_attention_instance == pytest.approx(1500.0 * solution.tpot_s / 2)


def test_a_tiny_demand_takes_one_attention_instance_and_the_slots() -> None:
    solution = cases.scaled(cases.j(demand_tokens_per_s=1e-6))
    assert (solution.attention_instances, solution.expert_instances, solution.batch) == (1, 4, 1.0)


@pytest.mark.parametrize(("gpus", "batch", "each", "tpot_ms"), [(7, 64, 99, 92.4), (8, 256, 240, 133.3)])
def test_the_papers_points_are_littles_law(gpus: int, batch: int, each: int, tpot_ms: float) -> None:
    """J12: a constant TPOT of batch / demand keeps that batch in flight and gives the paper's tokens/s/GPU."""
    demand = each * gpus
    document = cases.const(batch / demand / 10, 0.0, [1, 512], [0, 0], demand)
    document |= {"num_experts": gpus - 1, "slo_tpot_s": 0.15}
    document["limits"] = {"max_attention_instances": 1, "max_expert_instances": gpus - 1, "max_total_instances": gpus}
    solution = cases.scaled(document)
    assert solution.batch == pytest.approx(batch)
    assert solution.tpot_s * 1e3 == pytest.approx(tpot_ms, abs=0.05)
    assert solution.tokens_per_s_per_gpu == pytest.approx(each)


def test_the_papers_third_point_misses_its_slo() -> None:
    """J12: 512 requests at 3400 tokens/s are 150.6 ms, the SLO is 150."""
    document = cases.const(512 / 3400 / 10, 0.0, [1, 1024], [0, 0], 3400.0) | {"slo_tpot_s": 0.15}
    with pytest.raises(InfeasibleError) as caught:
        cases.scaled(document)
    assert caught.value.code == "tpot_slo"
    assert caught.value.required == pytest.approx(0.150588, abs=5e-7)


def told(choices: list[Choice]) -> list[tuple[object, ...]]:
    return [(each.option.device, each.n_a, each.n_e, each.objective, each.batch, each.tpot_s) for each in choices]


def test_bisection_finds_what_looking_at_every_pair_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random costs, prices, devices and launcher rules; the same six best, in the same order."""
    monkeypatch.setattr(enumeration, "FIRST", 1)
    solved = 0
    for seed in range(250):
        document = cases.random_document(seed)
        choices = options(cases.problem_of(document))
        demand = document["demand_tokens_per_s"]
        found = cheapest(choices, [demand], 6)[0]
        assert told(found) == told(enumerated(choices, demand, 6)), seed
        solved += bool(found)
    assert 80 < solved < 220


def test_more_attention_instances_never_slow_a_token_from_two_on() -> None:
    """What bisection rests on (page, "Model" 4): only the first has nothing to gather."""
    for seed in range(60):
        document = cases.random_document(seed)
        for option in options(cases.problem_of(document)):
            pools = model.pairs_of(option, range(2, 30), option.fewest_experts)
            batch = fixed_point.batches(pools, document["demand_tokens_per_s"])
            met = batch[~(batch != batch)]
            assert (batch != batch)[: len(batch) - len(met)].all(), seed
            assert (met[1:] <= met[:-1] * (1 + 1e-12)).all(), seed


def test_the_first_gathering_can_cost_the_second_attention_instance_its_place() -> None:
    """One attention instance carries what two do not: the first k is looked at apart."""
    slow = {"alpha_s": 1e-2, "beta_s_per_byte": 0}
    solution = cases.scaled(cases.j(comm={"gather": slow}))
    assert {each.attention_instances for each in solution.alternatives} == {1}


def test_both_methods_give_the_same_solution() -> None:
    for document in (cases.j(), cases.j(launcher_rules="vllm_afd"), cases.j(demand_tokens_per_s=1500.0)):
        assert cases.scaled(document, "enumerate") == cases.scaled(document)


def test_vllm_afd_takes_a_multiple_of_the_expert_instances() -> None:
    # On J only (6, 6) of (4, 4), (8, 4), (5, 5), (6, 6) reaches 22 ms: the row of six instances.
    solution = cases.scaled(cases.j(launcher_rules="vllm_afd"))
    assert (solution.attention_instances, solution.expert_instances) == (6, 6)
    assert len(solution.alternatives) == 1


def test_prices_may_prefer_more_of_the_cheaper_side() -> None:
    prices = {"attention_per_hour": 1.0, "expert_per_hour": 10.0}
    solution = cases.scaled(cases.j(prices=prices, slo_tpot_s=0.03))
    # (2, 4) costs 42 in six GPUs, (1, 5), as large and on the same row as (1, 4), misses 30 ms.
    assert (solution.attention_instances, solution.expert_instances, solution.objective) == (2, 4, 42.0)
    dear = {"attention_per_hour": 100.0, "expert_per_hour": 1.0}
    solution = cases.scaled(cases.j(prices=dear, slo_tpot_s=0.03))
    # One attention instance and the six experts that it needs: 106, eight GPUs less than twice 100.
    assert (solution.attention_instances, solution.expert_instances, solution.objective) == (1, 6, 106.0)


def test_prices_of_a_tie_take_fewer_gpus() -> None:
    # (1, 6) at 2 + 6 = 8 and (2, 4) at 4 + 4 = 8: six GPUs are fewer.
    prices = {"attention_per_hour": 2.0, "expert_per_hour": 1.0}
    solution = cases.scaled(cases.j(prices=prices, slo_tpot_s=0.028))
    assert solution.objective == solution.alternatives[1].objective == 8.0
    assert (solution.attention_instances, solution.expert_instances) == (2, 4)
    second = solution.alternatives[1]
    assert (second.attention_instances, second.expert_instances) == (1, 6)


def test_a_cheaper_device_carries_a_side_where_it_is_fast_enough() -> None:
    own = {"attention_per_hour": 2.0, "expert_per_hour": 2.0}
    slower = {"per_expert_s": 6e-4, "base_s": 1e-4}
    document = cases.j(
        prices=own,
        devices=[
            {"id": "fast"},
            {"id": "mixed", "moe": slower, "prices": {"attention_per_hour": 2.0, "expert_per_hour": 1.0}},
        ],
    )
    solution = cases.scaled(document)
    assert solution.device == "mixed"
    assert solution.objective < 2.0 * 7
    # Twice as slow experts do not carry it within the limits: the others do.
    document["devices"][1]["moe"] = {"per_expert_s": 2e-3, "base_s": 1e-4}
    solution = cases.scaled(document)
    assert (solution.device, solution.objective) == ("fast", 14.0)


def test_of_equal_devices_the_first_id_is_taken() -> None:
    solution = cases.scaled(cases.j(devices=[{"id": "b"}, {"id": "a"}]))
    assert solution.device == "a"
    assert [each.device for each in solution.alternatives[:2]] == ["a", "b"]


def test_without_memory_no_bytes_are_told() -> None:
    assert cases.scaled(cases.j(memory=None)).attention_memory_bytes is None


def test_the_plan_is_proved_by_the_search_itself() -> None:
    solution, report = solve(cases.problem_of(cases.j()), None, Limits())
    assert (report.status, report.method, report.bound, report.bound_kind) == (
        Status.OPTIMAL,
        "search",
        7,
        "exhaustive",
    )
    assert solution.objective == report.objective


def test_a_method_of_another_task_is_refused() -> None:
    assert {"search", "enumerate"} <= set(METHODS)
    with pytest.raises(BadInputError, match='know no method "exact"') as caught:
        solve(cases.problem_of(cases.j()), "exact", Limits())
    assert caught.value.where == "--method"


def test_more_pairs_than_can_be_looked_at_end_the_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumeration, "MOST_PAIRS", 29)
    with pytest.raises(LimitError) as caught:
        cases.scaled(cases.j(), "enumerate")
    assert caught.value.code == "enumeration_too_large"


def test_the_routing_has_to_be_read_first() -> None:
    layer = {"layer_id": 0, "routing": {"kind": "uniform_expected", "tokens_per_rank": 64}}
    document = cases.j(layers=[layer])
    document["a_max"] = {"kind": "routing", "batch_grid": [1, 4]}
    with pytest.raises(BadInputError, match="has not been read") as caught:
        options(cases.problem_of(document))
    assert caught.value.where == "a_max"
