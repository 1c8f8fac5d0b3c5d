"""The check accepts correct plans and names every fault, each seen once on a plan wrong in that way alone."""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import findep_cases as cases
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.papers.findep.check import VIOLATIONS, check
from planner.papers.findep.check_bound import best_possible
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.scan import scan
from planner.papers.findep.schedule import build_solution
from planner.papers.findep.solution import FindepSolution
from planner.papers.findep.times import task_times
from planner.validation import validate

Mutation = Callable[[Any], None]
Kinds = {"a": "attention", "s": "shared", "x": "a2e", "e": "expert", "y": "e2a"}


def fixed(t_a: float, t_s: float | None, t_x: float, t_e: float, layers: int, r1: int, **search: Any) -> dict[str, Any]:
    """The page's fixed(...): times that nothing changes. One expert a GPU."""
    return {
        "num_layers": layers,
        "num_experts": 2,
        "top_k": 1,
        "tokens_per_sample": 1,
        "attention": {"alpha_s": t_a, "beta_s_per_sample": 0.0},
        "shared_expert": None if t_s is None else {"alpha_s": t_s, "beta_s_per_sample": 0.0},
        "expert": {"alpha_s": t_e, "beta_s_per_token": 0.0},
        "splits": [{"attention_gpus": 2, "expert_gpus": 2, "a2e": {"alpha_s": t_x, "beta_s_per_token": 0.0}}],
        "search": {"max_m_a": 1, "max_r1": r1, "max_r2": 4} | search,
    }


def problem(document: dict[str, Any]) -> FindepProblem:
    return validate(FindepProblem, document)


# Of fixed(2,1,1,3; 4,1). The utilisation there is rounded: 4·3, 4·1, 4·3, 4·1 of 28 s.
PRINTED: dict[str, Any] = {
    "attention_gpus": 2,
    "expert_gpus": 2,
    "m_a": 1,
    "r1": 1,
    "r2": 1,
    "order": "AASS",
    "tokens_per_expert_chunk": 1.0,
    "timeline": {
        "prologue": [],
        "steady": {
            "cycle_layers": 1,
            "period_s": 7.0,
            "layers": [
                {"attention": [0.0], "shared": [2.0], "a2e": [[2.0]], "expert": [[3.0]], "e2a": [[6.0]]},
            ],
        },
        "epilogue": [],
    },
    "makespan_s": 28.0,
    "objective": 0.07142857142857142,
    "attention_memory_bytes": None,
    "expert_memory_bytes": None,
    "utilisation": {"AG": 12 / 28, "A2E": 4 / 28, "EG": 12 / 28, "E2A": 4 / 28},
    "free_order_bound": 0.07142857142857142,
}


def codes(of: FindepProblem, document: dict[str, Any]) -> set[str]:
    return {violation.code for violation in check(of, validate(FindepSolution, document))}


def test_the_solution_printed_on_the_page_passes() -> None:
    assert check(problem(fixed(2, 1, 1, 3, 4, 1)), validate(FindepSolution, PRINTED)) == []


def test_the_codes_are_the_pages_and_three_more() -> None:
    assert len(VIOLATIONS) == len(set(VIOLATIONS)) == 30


# A plan with room between any two tasks, for faults of one start alone: fixed(2,1,1,3), T = 2, S = 2, r1 = r2 = 2.
# Every task of a layer has its own slot of 10 s, in the order a0 a1 s0 s1, x, e, y. The last one ends at 310 + 1.
def roomy_problem(**fields: Any) -> dict[str, Any]:
    return fixed(2, 1, 1, 3, 2, 2, max_r2=2) | {"tokens_per_sample": 2} | fields


def _slots(layer: int) -> dict[str, Any]:
    slot = 160.0 * layer
    at = [slot + 10.0 * number for number in range(16)]
    return {
        "attention": at[0:2],
        "shared": at[2:4],
        "a2e": [at[4:6], at[6:8]],
        "expert": [at[8:10], at[10:12]],
        "e2a": [at[12:14], at[14:16]],
    }


# The bound, for r1 = 2, r2 = 1 (n = 4): t_a + t_x + 4·t_e + t_y = 16 exceeds 2·2·2 + 2·1 + 7 - 2 = 15 and the other
# terms; 2·1·2·2 tokens in 16 s. r1 = 1 gives 4 in 14 s, r2 = 2 more seconds for the same tokens.
# m_e = 1·2·1·2 / (2·2). Busy: 2·2·3, 8·1, 8·3 and 8·1 of 311 s.
ROOMY: dict[str, Any] = PRINTED | {
    "r1": 2,
    "r2": 2,
    "timeline": {"prologue": [_slots(0), _slots(1)], "steady": None, "epilogue": []},
    "makespan_s": 311.0,
    "objective": 8 / 311,
    "utilisation": {"AG": 12 / 311, "A2E": 8 / 311, "EG": 24 / 311, "E2A": 8 / 311},
    "free_order_bound": 0.5,
}


def test_a_task_may_start_later_than_it_could() -> None:
    assert check(problem(roomy_problem()), validate(FindepSolution, ROOMY)) == []


def test_chunks_may_leave_out_of_turn() -> None:
    # The page's "Check" asks for the stated order on the attention GPU alone.
    document = copy.deepcopy(ROOMY)
    row = document["timeline"]["prologue"][0]["a2e"][0]
    row.reverse()
    assert codes(problem(roomy_problem()), document) == set()


def _set(*path: Any, value: Any) -> Mutation:
    def mutate(document: Any) -> None:
        *parents, last = path
        for step in parents:
            document = document[step]
        document[last] = value

    return mutate


def _start(layer: int, task: str, *place: Any, at: float) -> Mutation:
    return _set("timeline", "prologue", layer, Kinds[task], *place, value=at)


def _swap_order(document: Any) -> None:
    layer = document["timeline"]["prologue"][0]
    layer["attention"][1], layer["shared"][0] = 20.0, 10.0


def _drop_layer(document: Any) -> None:
    document["timeline"]["prologue"].pop()


def _no_layers(document: Any) -> None:
    document["timeline"]["prologue"] = []


ONE_FAULT: list[tuple[str, Mutation, str]] = [
    ("unknown_split", _set("attention_gpus", value=3), "attention_gpus"),
    ("unknown_split", _set("expert_gpus", value=1), "attention_gpus"),
    ("m_a_range", _set("m_a", value=2), "m_a"),
    ("m_a_range", _set("m_a", value=0), "m_a"),
    ("r1_range", _set("r1", value=10**9), "r1"),
    ("r1_range", _set("r1", value=-1), "r1"),
    # max_r2 is 2 here; with max_r2 = 4 it would still be m_a·S = 2.
    ("r2_range", _set("r2", value=3), "r2"),
    ("r2_range", _set("r2", value=2**62), "r2"),
    ("chunk_tokens_mismatch", _set("tokens_per_expert_chunk", value=1.001), "tokens_per_expert_chunk"),
    ("memory_mismatch", _set("attention_memory_bytes", value=1.0), "attention_memory_bytes"),
    ("memory_mismatch", _set("expert_memory_bytes", value=0.0), "expert_memory_bytes"),
    ("timeline_missing", _no_layers, "timeline"),
    ("timeline_shape", _set("timeline", "prologue", 0, "attention", value=[0.0]), "timeline.prologue.0.attention"),
    ("timeline_shape", _set("timeline", "prologue", 1, "shared", value=[]), "timeline.prologue.1.shared"),
    ("timeline_shape", _set("timeline", "prologue", 1, "e2a", value=[]), "timeline.prologue.1.e2a"),
    ("timeline_shape", _set("timeline", "prologue", 1, "e2a", 1, value=[1.0] * 3), "timeline.prologue.1.e2a.1"),
    ("timeline_incomplete", _drop_layer, "timeline"),
    ("timeline_incomplete", _set("timeline", "epilogue", value=[_slots(2)]), "timeline"),
    ("negative_start", _start(0, "a", 0, at=-5.0), "timeline.prologue.0.attention.0"),
    ("overlap_AG", _start(0, "a", 1, at=1.9), "timeline.prologue.0.attention.1"),
    ("overlap_AG", _start(1, "s", 1, at=180.5), "timeline.prologue.1.shared.1"),
    ("overlap_A2E", _start(0, "x", 1, 0, at=50.5), "timeline.prologue.0.a2e.1.0"),
    ("overlap_EG", _start(0, "e", 0, 1, at=82.0), "timeline.prologue.0.expert.0.1"),
    ("overlap_E2A", _start(1, "y", 1, 0, at=290.5), "timeline.prologue.1.e2a.1.0"),
    ("precedence_a2e", _start(0, "x", 0, 0, at=1.0), "timeline.prologue.0.a2e.0.0"),
    ("precedence_expert", _start(0, "e", 0, 0, at=40.5), "timeline.prologue.0.expert.0.0"),
    ("precedence_e2a", _start(0, "y", 0, 0, at=82.0), "timeline.prologue.0.e2a.0.0"),
    ("precedence_next_layer", _start(1, "a", 0, at=130.5), "timeline.prologue.1.attention.0"),
    ("order_violation", _swap_order, "timeline.prologue.0.shared.0"),
    ("makespan_mismatch", _set("makespan_s", value=312.0), "makespan_s"),
    ("objective_mismatch", _set("objective", value=8 / 312), "objective"),
    ("utilisation_mismatch", _set("utilisation", "EG", value=0.1), "utilisation.EG"),
    ("free_order_bound_mismatch", _set("free_order_bound", value=0.51), "free_order_bound"),
]
"""Code, what to spoil in ROOMY, and the place that the check names."""


@pytest.mark.parametrize(("code", "mutate", "where"), ONE_FAULT, ids=[f"{c} {w}" for c, _, w in ONE_FAULT])
def test_a_plan_wrong_in_one_way_is_refuted_by_that_code_alone(code: str, mutate: Mutation, where: str) -> None:
    document = copy.deepcopy(ROOMY)
    mutate(document)
    found = check(problem(roomy_problem()), validate(FindepSolution, document))
    assert {violation.code for violation in found} == {code}
    assert where in [violation.where for violation in found]


def test_a_shared_expert_before_its_attention_has_ended_is_refuted() -> None:
    # It shares the GPU and comes after it in both orders, so it overlaps too: a0 runs until 2.
    document = copy.deepcopy(PRINTED)
    document["timeline"]["steady"]["layers"][0]["shared"] = [1.0]
    assert codes(problem(fixed(2, 1, 1, 3, 4, 1)), document) == {"precedence_shared", "overlap_AG"}


def test_next_layer_waits_for_the_shared_expert_too() -> None:
    # X = 2 + 9 outlasts the experts, 2 + 1 + 3 + 1: the next layer starts at 11, not at 7.
    of = problem(fixed(2, 9, 1, 3, 4, 1))
    assert {"precedence_next_layer", "overlap_AG"} <= codes(of, PRINTED)


def test_an_order_that_the_search_leaves_out_is_refuted() -> None:
    of = problem(fixed(2, 1, 1, 3, 4, 1, orders=["ASAS"]))
    assert codes(of, PRINTED) == {"order_not_allowed"}


def test_a_decision_that_is_no_integer_is_refuted_where_no_file_was_read() -> None:
    # Files are validated; an object made in Python need not be.
    made = validate(FindepSolution, PRINTED).model_copy(update={"m_a": 1.0, "r2": True})
    found = check(problem(fixed(2, 1, 1, 3, 4, 1)), made)
    assert [(violation.code, violation.where) for violation in found] == [
        ("not_an_integer", "m_a"),
        ("not_an_integer", "r2"),
    ]


def test_launcher_rules_refute_other_micro_batches_chunks_and_splits() -> None:
    document = roomy_problem(launcher_rules="vllm_afd")
    # The rules leave r1 = 2, r2 = 1, whose bound is the 0.5 above.
    assert codes(problem(document), ROOMY) == {"launcher_rules"}
    document["splits"][0]["attention_gpus"] = 3
    found = check(problem(document), validate(FindepSolution, ROOMY | {"attention_gpus": 3}))
    assert [v.where for v in found if v.code == "launcher_rules"] == ["r1", "attention_gpus"]


def test_a_makespan_over_the_limit_is_refuted_and_one_at_the_limit_is_not() -> None:
    assert codes(problem(roomy_problem(makespan_limit_s=311.0)), ROOMY) == set()
    assert codes(problem(roomy_problem(makespan_limit_s=311.0 / (1 + 0.9e-9))), ROOMY) == set()
    assert codes(problem(roomy_problem(makespan_limit_s=310.9)), ROOMY) == {"makespan_limit"}


# Page equation 10. With m_a = 1 and r1 = 2: 4 + 2·2 + 1 bytes, and 10 + 20 + 2·1·2·1·2/2 copies at half a byte.
MEMORY: dict[str, Any] = {
    "attention_capacity_bytes": 20,
    "attention_fixed_bytes": {"weights": 3, "reserve": 1},
    "attention_bytes_per_sample": 2,
    "attention_workspace_bytes_per_sample": 1,
    "expert_capacity_bytes": 100,
    "expert_fixed_bytes": 10,
    "expert_bytes_per_expert": 20,
    "expert_buffer_bytes_per_token": 0.5,
}
HELD: dict[str, Any] = {"attention_memory_bytes": 9.0, "expert_memory_bytes": 32.0}


def test_bytes_are_recomputed_and_held_against_the_capacity() -> None:
    of = problem(roomy_problem(memory=MEMORY))
    assert codes(of, ROOMY | HELD) == set()
    assert codes(of, ROOMY | HELD | {"attention_memory_bytes": 9.001}) == {"memory_mismatch"}
    assert codes(of, ROOMY) == {"memory_mismatch"}
    # Then only r1 = 1 fits, whose bound is 4 tokens in 14 s.
    lower = {"free_order_bound": 4 / 14}
    assert codes(problem(roomy_problem(memory=MEMORY | {"attention_capacity_bytes": 8})), ROOMY | HELD | lower) == {
        "attention_memory"
    }
    assert codes(problem(roomy_problem(memory=MEMORY | {"expert_capacity_bytes": 31})), ROOMY | HELD | lower) == {
        "expert_memory"
    }


def test_a_split_may_have_its_own_experts_and_samples() -> None:
    # The split's own expert takes 2 s instead of 3: layers of 6 s, and 2 tokens in 24 s.
    document = fixed(2, 1, 1, 3, 4, 1) | {"memory": MEMORY}
    document["splits"][0] |= {
        "expert": {"tokens": [0.5, 1.5], "times_s": [1.0, 3.0]},
        "attention_bytes_per_sample": {"KV cache": 5},
    }
    layer = {"attention": [0.0], "shared": [2.0], "a2e": [[2.0]], "expert": [[3.0]], "e2a": [[5.0]]}
    plan = PRINTED | {
        "timeline": {
            "prologue": [],
            "steady": {"cycle_layers": 1, "period_s": 6.0, "layers": [layer]},
            "epilogue": [],
        },
        "makespan_s": 24.0,
        "objective": 2 / 24,
        "free_order_bound": 2 / 24,
        "utilisation": {"AG": 12 / 24, "A2E": 4 / 24, "EG": 8 / 24, "E2A": 4 / 24},
        # 4 + 5 + 1; 10 + 20 + 1·1·2·1·1/2·1 copies at half a byte.
        "attention_memory_bytes": 10.0,
        "expert_memory_bytes": 30.5,
    }
    assert codes(problem(document), plan) == set()


def test_a_period_that_is_too_short_breaks_every_later_layer() -> None:
    document = copy.deepcopy(PRINTED)
    document["timeline"]["steady"]["period_s"] = 6.5
    found = check(problem(fixed(2, 1, 1, 3, 4, 1)), validate(FindepSolution, document))
    places = [violation.where for violation in found if violation.code == "precedence_next_layer"]
    assert places == ["timeline.steady.layers.0.attention.0"] * 3


def test_a_cycle_of_two_layers_with_a_prologue_and_an_epilogue_is_expanded() -> None:
    # The same layers of 7 s each, written in the longest way; the last one starts at 42 s.
    layer = PRINTED["timeline"]["steady"]["layers"][0]

    def at(start: float) -> dict[str, Any]:
        return {
            kind: [[value + start for value in row] if isinstance(row, list) else row + start for row in rows]
            for kind, rows in layer.items()
        }

    timeline: dict[str, Any] = {
        "prologue": [at(0)],
        "steady": {"cycle_layers": 2, "period_s": 14.0, "layers": [at(7), at(14)]},
        "epilogue": [at(42)],
    }
    of = problem(fixed(2, 1, 1, 3, 7, 1))
    plan = PRINTED | {"timeline": timeline, "makespan_s": 49.0, "objective": 2 / 49, "free_order_bound": 2 / 49}
    # Five steady layers are two cycles and a half.
    assert codes(of, plan) == set()
    timeline["epilogue"] = [at(41)]
    found = check(of, validate(FindepSolution, plan))
    assert "timeline.epilogue.0.attention.0" in [v.where for v in found if v.code == "precedence_next_layer"]
    timeline["steady"]["layers"].pop()
    assert codes(of, plan) == {"timeline_shape"}


def test_a_start_may_be_rounded_by_a_millionth_of_the_makespan() -> None:
    # The first transfer waits for a0, which ends at 2 s; the slack is 3.11e-4 s.
    document = copy.deepcopy(ROOMY)
    document["timeline"]["prologue"][0]["a2e"][0][0] = 2 - 3.1e-4
    assert codes(problem(roomy_problem()), document) == set()
    document["timeline"]["prologue"][0]["a2e"][0][0] = 2 - 3.2e-4
    assert codes(problem(roomy_problem()), document) == {"precedence_a2e"}


def test_slack_in_every_layer_does_not_add_up_to_a_faster_plan() -> None:
    # Each layer is 5e-6 s early, within the slack of 28e-6 s, but a chain of four layers takes 28 s.
    document = copy.deepcopy(PRINTED)
    document["timeline"]["steady"]["period_s"] = 7 - 5e-6
    makespan_s = 28 - 15e-6
    document["makespan_s"], document["objective"] = makespan_s, 2 / makespan_s
    document["utilisation"] = {"AG": 12 / makespan_s, "A2E": 4 / makespan_s, "EG": 12 / makespan_s} | {
        "E2A": 4 / makespan_s
    }
    found = check(problem(fixed(2, 1, 1, 3, 4, 1)), validate(FindepSolution, document))
    assert [(violation.code, violation.where) for violation in found] == [("makespan_mismatch", "timeline")]


def test_a_hundred_violations_of_a_code_are_listed_and_the_rest_counted() -> None:
    document = copy.deepcopy(PRINTED)
    document["timeline"]["steady"]["period_s"] = -7.0
    found = check(problem(fixed(2, 1, 1, 3, 9_000, 1)), validate(FindepSolution, document))
    late = [violation for violation in found if violation.code == "precedence_next_layer"]
    assert len(late) == 101
    assert late[-1].message == f"and {9_000 - 1 - 100} more"


@pytest.mark.parametrize("seed", range(60))
def test_no_task_of_a_replayed_plan_can_start_earlier(seed: int) -> None:
    # Replay starts each task as early as something allows, so any start a little earlier breaks that.
    source = cases.seeded(seed)
    of = cases.problem_of(cases.random_document(source, layers=9))
    best = scan(of)
    if best.best is None:
        return
    solution = build_solution(of, best.best, best.free_order_bound)
    assert check(of, solution) == []
    split = of.splits[best.best.split]
    times = task_times(of, split, best.best.m_a, best.best.r2)
    shortest_s = min(
        float(value) for value in (times.attention_s, times.a2e_s, times.expert_s, times.e2a_s, times.shared_s) if value
    )
    earlier_s = shortest_s / 2
    if earlier_s < 2e-6 * solution.makespan_s:
        return
    document = json.loads(solution.model_dump_json())
    timeline = document["timeline"]
    layers = timeline["prologue"] + (timeline["steady"]["layers"] if timeline["steady"] else []) + timeline["epilogue"]
    for _ in range(10):
        layer = layers[source.integers(len(layers))]
        row = layer[source.choice([kind for kind in layer if layer[kind]])]
        row = row[source.integers(len(row))] if isinstance(row[0], list) else row
        place = int(source.integers(len(row)))
        row[place] -= earlier_s
        assert codes(of, document)
        row[place] += earlier_s


HOSTILE: list[Mutation] = [
    _set("timeline", "steady", "period_s", value=1e308),
    _set("timeline", "steady", "period_s", value=-1e308),
    _set("timeline", "steady", "period_s", value=0.0),
    _set("timeline", "steady", "layers", 0, "attention", value=[1e308]),
    _set("timeline", "steady", "layers", 0, "e2a", value=[[-1e308]]),
    _set("timeline", "steady", "layers", 0, "e2a", value=[[1e308]]),
    _set("timeline", "steady", "layers", 0, "a2e", value=[[], []]),
    _set("timeline", "steady", "layers", 0, "a2e", value=[[]]),
    _set("timeline", "steady", "layers", value=[]),
    _set("timeline", "prologue", value=[PRINTED["timeline"]["steady"]["layers"][0]] * 10_000),
    _set("makespan_s", value=1e308),
    _set("makespan_s", value=-1.0),
    _set("objective", value=-1e308),
    _set("m_a", value=2**63 - 1),
    _set("attention_gpus", value=-(2**63)),
    _set("expert_gpus", value=0),
    _set("tokens_per_expert_chunk", value=0.0),
]


@pytest.mark.parametrize("rules", ["none", "vllm_afd"])
@pytest.mark.parametrize("mutate", HOSTILE)
def test_a_hostile_plan_is_refuted_and_nothing_else_happens(mutate: Mutation, rules: str) -> None:
    document = copy.deepcopy(PRINTED)
    mutate(document)
    of = problem(fixed(2, 1, 1, 3, 4, 2) | {"launcher_rules": rules})
    assert codes(of, document)


numbers = st.one_of(st.sampled_from([0.0, -1.0, 1e308, -1e308, 5e-324, 7.0]), st.floats(-100, 100))
rows = st.lists(numbers, max_size=3)
tables = st.lists(rows, max_size=3)
layers = st.fixed_dictionaries({"attention": rows, "shared": rows, "a2e": tables, "expert": tables, "e2a": tables})


@settings(max_examples=150, deadline=None)
@given(
    st.integers(-1, 3),
    st.integers(-1, 3),
    st.lists(layers, max_size=3),
    st.one_of(
        st.none(),
        st.fixed_dictionaries(
            {"cycle_layers": st.sampled_from([1, 2]), "period_s": numbers, "layers": st.lists(layers, max_size=3)}
        ),
    ),
)
def test_any_timeline_is_judged_without_a_traceback(
    r1: int, r2: int, listed: list[dict[str, Any]], steady: dict[str, Any] | None
) -> None:
    plan = PRINTED | {"r1": r1, "r2": r2, "timeline": {"prologue": listed, "steady": steady, "epilogue": listed[:1]}}
    assert codes(problem(fixed(2, 1, 1, 3, 4, 2) | {"tokens_per_sample": 3}), plan)


def _bound_by_loops(of: FindepProblem) -> float:
    """Page equation 12, candidate by candidate, for costs that are lines."""
    best = -math.inf
    T, box, S = of.num_layers, of.search, of.tokens_per_sample
    for split, m_a, r1, r2 in itertools.product(
        of.splits, range(1, box.max_m_a + 1), range(1, box.max_r1 + 1), range(1, box.max_r2 + 1)
    ):
        ag, eg = split.attention_gpus, split.expert_gpus
        if r2 > m_a * S or (
            of.launcher_rules == "vllm_afd" and not (r1 == 2 and r2 == 1 and ag >= eg and ag % eg == 0)
        ):
            continue
        h = math.ceil(of.num_experts / eg)
        m_e = m_a * ag * of.top_k * S / (r2 * of.num_experts)
        if box.token_rounding == "ceil":
            m_e = math.ceil(m_e)
        line = lambda cost, amount: cost.alpha_s + getattr(cost, cost_slope(cost)) * amount  # noqa: E731
        t_a = line(of.attention, m_a)
        t_s = line(of.shared_expert, m_a) if of.shared_expert else 0.0
        t_x, t_e = line(split.a2e, m_e * h), h * line(of.expert, m_e)
        t_y = line(split.e2a or split.a2e, m_e * h)
        if of.memory is not None:
            memory = of.memory
            held = memory.attention_fixed_bytes + (r1 * memory.attention_bytes_per_sample) * m_a  # type: ignore[operator]
            held += m_a * memory.attention_workspace_bytes_per_sample  # type: ignore[operator]
            copies = r1 * m_a * ag * of.top_k * S / of.num_experts * h
            filled = memory.expert_fixed_bytes + h * memory.expert_bytes_per_expert  # type: ignore[operator]
            filled += copies * memory.expert_buffer_bytes_per_token
            if held > memory.attention_capacity_bytes * (1 + 1e-9) or filled > memory.expert_capacity_bytes * (
                1 + 1e-9
            ):
                continue
        X, Y, n = t_a + t_s, max(t_x, t_e, t_y), T * r1 * r2
        G = t_a + t_x + t_e + t_y + (r2 - 1) * Y
        shortest_s = max(
            T * r1 * t_a + (T - 1) * r1 * t_s + G - t_a,
            T * r1 * X,
            t_a + n * t_x + t_e + t_y,
            t_a + t_x + n * t_e + t_y,
            t_a + t_x + t_e + n * t_y,
            T * max(G, X),
        )
        if of.makespan_limit_s is None or shortest_s <= of.makespan_limit_s * (1 + 1e-9):
            gpus = ag + eg if of.objective == "tokens_per_s_per_gpu" else 1
            best = max(best, r1 * m_a * ag * S / shortest_s / gpus)
    return best


def cost_slope(cost: Any) -> str:
    return "beta_s_per_sample" if hasattr(cost, "beta_s_per_sample") else "beta_s_per_token"


@st.composite
def problems(draw: st.DrawFn) -> FindepProblem:
    seconds = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.7])
    one = st.sampled_from([0.25, 1.0, 3.0])

    def cost(slope: str) -> dict[str, float]:
        return {"alpha_s": draw(seconds), slope: draw(one)}

    experts = draw(st.integers(3, 7))
    pools = draw(st.sets(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=3))
    splits = [
        {
            "attention_gpus": ag,
            "expert_gpus": eg,
            "a2e": cost("beta_s_per_token"),
            "e2a": draw(st.none() | st.just(cost("beta_s_per_token"))),
        }
        for ag, eg in sorted(pools)
    ]
    document = {
        "num_layers": draw(st.sampled_from([1, 2, 5])),
        "num_experts": experts,
        "top_k": draw(st.integers(1, 3)),
        "tokens_per_sample": draw(st.integers(1, 3)),
        "attention": cost("beta_s_per_sample"),
        "shared_expert": draw(st.none() | st.just(cost("beta_s_per_sample"))),
        "expert": cost("beta_s_per_token"),
        "splits": splits,
        "memory": draw(st.none() | st.just(MEMORY | {"attention_fixed_bytes": draw(st.integers(0, 16))})),
        "search": {
            "max_m_a": draw(st.integers(1, 4)),
            "max_r1": draw(st.integers(1, 4)),
            "max_r2": draw(st.integers(1, 4)),
            "token_rounding": draw(st.sampled_from(["real", "ceil"])),
        },
        "objective": draw(st.sampled_from(["tokens_per_s", "tokens_per_s_per_gpu"])),
        "makespan_limit_s": draw(st.none() | st.floats(5, 200)),
        "launcher_rules": draw(st.sampled_from(["none", "none", "vllm_afd"])),
    }
    return problem(document)


@settings(max_examples=150, deadline=None)
@given(problems())
def test_the_bound_is_the_pages_over_every_candidate(of: FindepProblem) -> None:
    expected = _bound_by_loops(of)
    assert best_possible(of) == (pytest.approx(expected, rel=1e-12) if expected > 0 else expected)


def test_every_code_is_provoked_by_some_test() -> None:
    alone = {code for code, _, _ in ONE_FAULT}
    elsewhere = {"precedence_shared", "order_not_allowed", "not_an_integer", "launcher_rules", "makespan_limit"}
    assert alone | elsewhere | {"attention_memory", "expert_memory"} == set(VIOLATIONS)
