"""What no problem may say is refused at the door with its place; what no solution may say is refused by the check."""

from __future__ import annotations

import math
from typing import Any

import janus_mutations as mutations
import janus_oracle as oracle
import pytest

from planner.errors import BadInputError
from planner.papers.janus.check import check
from planner.papers.janus.problem import JanusProblem
from planner.papers.janus.solution import JanusSolution
from planner.validation import validate

Document = dict[str, Any]
put = mutations.put

FALLING = [[1.5, 3.0, 4.5, 4.4], [1.3, 2.2, 3.2, 3.6], [1.2, 1.8, 2.4, 2.7]]


@pytest.mark.parametrize(
    ("change", "code", "where"),
    [
        (put("demand_tokens_per_s", 0.0), "out_of_range", "demand_tokens_per_s"),
        (put("demand_tokens_per_s", -1.0), "out_of_range", "demand_tokens_per_s"),
        (put("demand_tokens_per_s", math.nan), "not_finite", "demand_tokens_per_s"),
        (put("demand_tokens_per_s", math.inf), "not_finite", "demand_tokens_per_s"),
        (put("demand_tokens_per_s", True), "wrong_type", "demand_tokens_per_s"),
        (put("demand_tokens_per_s", "600"), "wrong_type", "demand_tokens_per_s"),
        (put("num_experts", 16.0), "wrong_type", "num_experts"),
        (put("num_experts", True), "wrong_type", "num_experts"),
        (put("num_experts", 0), "out_of_range", "num_experts"),
        (put("top_k", 17), "out_of_range", "top_k"),
        (put("slo_tpot_s", 0.0), "out_of_range", "slo_tpot_s"),
        (put("context_tokens", -1.0), "out_of_range", "context_tokens"),
        (put("tpot_slo_s", 0.02), "unknown_field", "tpot_slo_s"),
        (put("attention.floor", 0.02), "unknown_field", "attention.floor"),
        (put("attention.floor_s", -1e-9), "out_of_range", "attention.floor_s"),
        (put("moe", {"base_s": 0.0}), "missing_field", "moe.per_expert_s"),
        (put("comm.kind", "ring"), "out_of_range", "comm.kind"),
        (put("comm.bytes_per_request", 0.0), "out_of_range", "comm.bytes_per_request"),
        (put("comm.gpus_per_node", 0), "out_of_range", "comm.gpus_per_node"),
        (put("a_max.batch_grid", [1, 16, 4, 64]), "out_of_range", "a_max.batch_grid.2"),
        (put("a_max.batch_grid", [2, 4, 16, 64]), "out_of_range", "a_max.batch_grid.0"),
        (put("a_max.batch_grid", [1]), "out_of_range", "a_max.batch_grid"),
        (put("a_max.expert_instances", [5, 6, 8]), "out_of_range", "a_max.expert_instances.0"),
        (put("a_max.expert_instances", [4, 8, 6]), "out_of_range", "a_max.expert_instances.2"),
        (put("a_max.values", FALLING), "out_of_range", "a_max.values.0.3"),
        (put("a_max.values", FALLING[1:]), "out_of_range", "a_max.values"),
        (put("a_max.values.1", [1.3, 2.2]), "out_of_range", "a_max.values.1"),
        (put("a_max.values.1.0", -1.0), "out_of_range", "a_max.values.1.0"),
        (put("a_max.kind", "guess"), "out_of_range", "a_max.kind"),
        (put("memory.capacity_bytes", 0.0), "out_of_range", "memory.capacity_bytes"),
        (put("limits.max_total_instances", 0), "out_of_range", "limits.max_total_instances"),
        (put("launcher_rules", "sglang"), "out_of_range", "launcher_rules"),
        (put("task", "sizing"), "out_of_range", "task"),
        (put("baselines", {"fixed_ratio": [1]}), "out_of_range", "baselines.fixed_ratio"),
        (put("baselines", {"fixed_ratio": [0, 1]}), "out_of_range", "baselines.fixed_ratio.0"),
        (put("devices", [{"id": "a"}, {"id": "a"}]), "duplicate_id", "devices"),
        (put("series", []), "unknown_field", "series"),
    ],
)
def test_a_problem_that_cannot_be_is_refused_with_its_place(change: mutations.Change, code: str, where: str) -> None:
    document = oracle.example()
    change(document)
    with pytest.raises(BadInputError) as caught:
        validate(JanusProblem, document)
    assert (caught.value.code, caught.value.where) == (code, where), caught.value.message


def test_a_falling_row_is_named_with_its_column() -> None:
    document = oracle.example()
    document["a_max"]["values"] = FALLING
    with pytest.raises(BadInputError, match=r"row 0 \(4 expert instances\), column 3 \(batch 64\) has 4.4, after 4.5"):
        validate(JanusProblem, document)


@pytest.mark.parametrize(
    ("change", "code", "where"),
    [
        (put("series", []), "missing_field", "series"),
        (put("series.1.duration_s", 0.0), "out_of_range", "series.1.duration_s"),
        (put("series.1.demand_tokens_per_s", -1.0), "out_of_range", "series.1.demand_tokens_per_s"),
        (put("series.1.start_s", 3000.0), "out_of_range", "series.1.start_s"),
        (put("series.1.start_s", 9000.0), "out_of_range", "series.2.start_s"),
        (put("demand_tokens_per_s", 600.0), "unknown_field", "demand_tokens_per_s"),
    ],
)
def test_a_series_that_cannot_be_is_refused_with_its_place(change: mutations.Change, code: str, where: str) -> None:
    document = mutations.series()
    change(document)
    with pytest.raises(BadInputError) as caught:
        validate(JanusProblem, document)
    assert (caught.value.code, caught.value.where) == (code, where), caught.value.message


@pytest.mark.parametrize(
    ("change", "code", "where"),
    [
        (put("expert_load", [1, 2]), "out_of_range", "expert_load"),
        (put("expert_load.0", -1), "out_of_range", "expert_load.0"),
        (put("coactivation", [[1, 0, 5.0]]), "out_of_range", "coactivation.0"),
        (put("coactivation", [[0, 5, 5.0]]), "out_of_range", "coactivation.0"),
        (put("coactivation", [[0, 2, 5.0], [0, 1, 5.0]]), "out_of_range", "coactivation.1"),
        (put("coactivation", [[0, 1, 5.0], [0, 1, 5.0]]), "out_of_range", "coactivation.1"),
        (put("batches", [[[0, 0]]]), "out_of_range", "batches.0.0"),
        (put("batches", [[[0, 5]]]), "out_of_range", "batches.0.0"),
    ],
)
def test_a_placement_that_cannot_be_is_refused_with_its_place(change: mutations.Change, code: str, where: str) -> None:
    document = mutations.placement()
    change(document)
    with pytest.raises(BadInputError) as caught:
        validate(JanusProblem, document)
    assert (caught.value.code, caught.value.where) == (code, where), caught.value.message


HUGE = 10**30


@pytest.mark.parametrize(
    "change",
    [
        put("attention_instances", HUGE),
        put("expert_instances", HUGE),
        put("expert_instances", -HUGE),
        put("total_instances", HUGE),
        put("batch", 1e308),
        put("batch", -1e308),
        put("batch", 5e-324),
        put("tpot_s", 1e308),
        put("tpot_s", -1.0),
        put("a_max", 1e308),
        put("objective", -1e308),
        put("layer.comm_s", 1e308),
        put("alternatives.1.attention_instances", HUGE),
        put("alternatives.1.expert_instances", 0),
        put("alternatives.1.batch", 1e308),
        put("alternatives.1.device", "\x1b[2J"),
        put("device", "\x1b[2J"),
    ],
)
def test_no_solution_stops_the_check(change: mutations.Change) -> None:
    solution = oracle.scaling_solution(oracle.example())
    change(solution)
    found = check(validate(JanusProblem, oracle.example()), validate(JanusSolution, solution))
    assert found
    assert not any("\x1b" in violation.message for violation in found)


@pytest.mark.parametrize(
    "change",
    [
        put("replicas", [HUGE, 1, 1, 1, 1]),
        put("replicas", [-1, 4, 1, 1, 1]),
        put("replicas", []),
        put("placement", []),
        put("placement", [[HUGE], [-HUGE]]),
        put("placement", [[], []]),
        put("placement", [[0] * 1000, [1] * 1000]),
        put("a_max_per_batch", [HUGE, -HUGE]),
        put("objective", 1e308),
    ],
)
def test_no_placement_stops_the_check(change: mutations.Change) -> None:
    solution = mutations.placed()
    change(solution)
    assert check(validate(JanusProblem, mutations.placement()), validate(JanusSolution, solution))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_solution_of_no_numbers_is_not_read(value: float) -> None:
    solution = oracle.scaling_solution(oracle.example()) | {"tpot_s": value}
    with pytest.raises(BadInputError) as caught:
        validate(JanusSolution, solution)
    assert caught.value.code == "not_finite"


def test_of_many_faults_the_first_hundred_are_listed() -> None:
    document = mutations.series()
    document["series"] = [
        {"start_s": 60.0 * place, "duration_s": 60.0, "demand_tokens_per_s": 100.0 + place} for place in range(120)
    ]
    solution = oracle.series_solution(mutations.series())
    # 12.6 requests are those of 600 tokens a second.
    solution["intervals"] = [solution["intervals"][1] for _ in range(120)]
    found = check(validate(JanusProblem, document), validate(JanusSolution, solution))
    listed = [violation for violation in found if violation.code == "not_a_fixed_point"]
    assert len(listed) == 101
    assert listed[-1].message == "and 20 more"
