"""The check accepts correct plans and names every fault, each seen once on a plan wrong in that way alone."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import hiermoe_cases as cases
import hiermoe_oracle as oracle
import numpy as np
import pytest

from planner.papers.hiermoe.check import VIOLATIONS, check
from planner.papers.hiermoe.checks.counts import destinations, recount
from planner.papers.hiermoe.exchange.tables import moved_count
from planner.papers.hiermoe.exchange.time import a2a_seconds, layer_objective, rank_loads
from planner.papers.hiermoe.instance import Case, LayerCase, compile_case
from planner.papers.hiermoe.solution import HiermoeSolution
from planner.validation import validate

Document = dict[str, Any]
Mutation = Callable[[Document], None]


# Page section 7, on the problem of section 6. Every rank has 2 assignments, and one token from rank 0: 4·1·14336 bytes
# in 0.2 ms + 57344 / 2e9 s. Experts 4, 6, 1 and 3 come to a rank; two swaps bring them there.
def printed() -> Document:
    return {
        "layers": [
            {
                "layer_id": 0,
                "dimension": 1,
                "physical_to_logical": [0, 4, 2, 6, 1, 5, 3, 7],
                "objective_s": 0.000228672,
                "a2a_s": 0.000228672,
                "peak_assignments": 2,
                "hops": [
                    {
                        "kind": "flat",
                        "level": 0,
                        "participants": 4,
                        "peak_tokens": 1,
                        "bytes": 57344,
                        "time_s": 0.000228672,
                    }
                ],
                "moved_experts": 4,
                "moved_bytes": 40,
                "moves": [
                    {"expert": 4, "to_slot": 1, "from_slot": 4, "bytes": 10},
                    {"expert": 6, "to_slot": 3, "from_slot": 6, "bytes": 10},
                    {"expert": 1, "to_slot": 4, "from_slot": 1, "bytes": 10},
                    {"expert": 3, "to_slot": 6, "from_slot": 3, "bytes": 10},
                ],
                "swaps": [[1, 4], [3, 6]],
                "swap_optimal": True,
                "routing_detail": "tokens",
                "front": [
                    {
                        "dimension": 1,
                        "peak_load": 2,
                        "a2a_s": 0.000228672,
                        "objective_s": 0.000228672,
                        "physical_to_logical": [0, 4, 2, 6, 1, 5, 3, 7],
                    },
                ],
            }
        ],
        "objective_s": 0.000228672,
    }


def printed_problem(**changes: Any) -> Document:
    document = cases.printed()
    document["costs"]["expert_bytes"] = 10
    return document | changes


def violations(problem: Document, solution: Document) -> list[str]:
    return [v.code for v in check(cases.problem_of(problem), validate(HiermoeSolution, solution))]


def changed(solution: Document, mutation: Mutation) -> Document:
    made = copy.deepcopy(solution)
    mutation(made)
    return made


def test_the_solution_printed_on_the_page_passes() -> None:
    assert violations(printed_problem(), printed()) == []


def test_what_need_not_be_stated_may_be_left_out() -> None:
    bare = printed()
    for name in ("hops", "moves", "swaps", "swap_optimal", "front"):
        del bare["layers"][0][name]
    assert violations(printed_problem(), bare) == []


# Digits of a table are changed together with nothing else: what it implies is then wrong as well, and is listed too.
def on_layer(**values: Any) -> Mutation:
    return lambda solution: solution["layers"][0].update(values)


def on_hop(**values: Any) -> Mutation:
    return lambda solution: solution["layers"][0]["hops"][0].update(values)


def on_move(number: int, **values: Any) -> Mutation:
    return lambda solution: solution["layers"][0]["moves"][number].update(values)


def on_front(**values: Any) -> Mutation:
    return lambda solution: solution["layers"][0]["front"][0].update(values)


def twice(solution: Document) -> None:
    solution["layers"].append(copy.deepcopy(solution["layers"][0]))


HUGE = 10**30
ALONE: list[tuple[str, Mutation]] = [
    ("layer_set", lambda s: s.update(layers=[])),
    ("layer_set", twice),
    ("layer_set", on_layer(layer_id=7)),
    ("layer_set", on_layer(layer_id=HUGE)),
    ("dimension_range", on_layer(dimension=3)),
    ("dimension_range", on_layer(dimension=HUGE)),
    ("slot_count", on_layer(physical_to_logical=[0, 4, 2, 6, 1, 5, 3])),
    ("slot_count", on_layer(physical_to_logical=[])),
    ("expert_range", on_layer(physical_to_logical=[0, 4, 2, 6, 1, 5, 3, 8])),
    ("expert_range", on_layer(physical_to_logical=[0, 4, 2, 6, 1, 5, 3, -1])),
    ("expert_range", on_layer(physical_to_logical=[0, 4, 2, 6, 1, 5, 3, HUGE])),
    ("expert_missing", on_layer(physical_to_logical=[0, 4, 2, 6, 1, 5, 3, 0])),
    ("hop_mismatch", on_layer(hops=[*printed()["layers"][0]["hops"]] * 2)),
    ("hop_mismatch", on_hop(kind="intra")),
    ("hop_mismatch", on_hop(level=HUGE)),
    ("hop_mismatch", on_hop(participants=2)),
    ("hop_mismatch", on_hop(peak_tokens=2)),
    ("hop_mismatch", on_hop(bytes=57345)),
    ("hop_mismatch", on_hop(time_s=0.00022867)),
    ("a2a_mismatch", on_layer(a2a_s=0.0002)),
    ("peak_assignments_mismatch", on_layer(peak_assignments=1)),
    ("reported_layer_objective", on_layer(objective_s=0.00022867)),
    ("reported_objective", lambda s: s.update(objective_s=0.00022867)),
    ("moved_experts_mismatch", on_layer(moved_experts=3)),
    ("moved_experts_mismatch", on_layer(moved_experts=HUGE)),
    ("moved_bytes_mismatch", on_layer(moved_bytes=30)),
    ("moved_bytes_mismatch", on_layer(moved_bytes=None)),
    ("moves_mismatch", lambda s: s["layers"][0]["moves"].pop()),
    ("moves_mismatch", lambda s: s["layers"][0]["moves"].append(s["layers"][0]["moves"][0])),
    ("moves_mismatch", on_move(0, expert=5)),
    ("moves_mismatch", on_move(0, to_slot=HUGE)),
    ("moves_mismatch", on_move(0, to_slot=0)),
    ("moves_mismatch", on_move(0, from_slot=HUGE)),
    ("moves_mismatch", on_move(0, from_slot=5)),
    ("moves_mismatch", on_move(0, from_slot=None)),
    ("moves_mismatch", on_move(0, bytes=11)),
    ("swaps_do_not_reach_placement", on_layer(swaps=[[1, 4]])),
    ("swaps_do_not_reach_placement", on_layer(swaps=[[1, 4, 6], [3, 6]])),
    ("swaps_do_not_reach_placement", on_layer(swaps=[[1, HUGE]])),
    ("swaps_do_not_reach_placement", on_layer(swaps=[[-1, 4]])),
    ("routing_mismatch", on_layer(routing_detail="loads")),
    ("routing_mismatch", on_layer(routing_sha256="0" * 64)),
    ("front_mismatch", on_front(dimension=3)),
    ("front_mismatch", on_front(a2a_s=0.0002)),
    ("front_mismatch", on_front(peak_load=1)),
    ("front_mismatch", on_front(objective_s=1)),
    ("front_mismatch", on_front(physical_to_logical=[0] * 8)),
    ("front_mismatch", on_front(physical_to_logical=[1])),
    ("front_mismatch", lambda s: s["layers"][0]["front"].append(s["layers"][0]["front"][0])),
    ("front_mismatch", lambda s: s["layers"][0].update(front=s["layers"][0]["front"] * 65)),
]


@pytest.mark.parametrize(("code", "mutation"), ALONE, ids=[f"{n}-{code}" for n, (code, _) in enumerate(ALONE)])
def test_a_plan_wrong_in_one_way_is_refuted_for_that_alone(code: str, mutation: Mutation) -> None:
    found = violations(printed_problem(), changed(printed(), mutation))
    assert found and set(found) == {code}


def test_no_experts_at_all_and_an_empty_plan_are_refuted() -> None:
    assert violations(printed_problem(), {"layers": [], "objective_s": 0.0}) == ["layer_set"]


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("dimension_not_allowed", {"search": {"dimensions": [2]}}),
        ("moved_over_budget", {"search": {"max_moved_experts": 3}}),
        ("moved_over_budget", {"search": {"max_moved_bytes": 39}}),
    ],
)
def test_a_plan_outside_a_limit_of_the_problem_is_refuted(code: str, change: Document) -> None:
    solution = changed(printed(), on_layer(swap_optimal=False, front=None))
    assert violations(printed_problem(**change), solution) == [code]


def test_a_plan_at_its_limits_passes() -> None:
    limits = {"dimensions": [1], "max_moved_experts": 4, "max_moved_bytes": 40.0, "max_load_ratio": 1.0}
    assert violations(printed_problem(search=limits), printed()) == []


# Two slots of 10 bytes on each GPU.
@pytest.mark.parametrize(("memory", "expected"), [(20, []), (19, ["expert_bytes_exceed_memory"])])
def test_experts_that_do_not_fit_a_gpu_are_refuted(memory: int, expected: list[str]) -> None:
    topology = {"gpus": 4, "level_groups": [1, 2], "expert_memory_bytes_per_gpu": memory}
    assert violations(printed_problem(topology=topology), printed()) == expected


def solved(document: Document, tables: Sequence[Sequence[int]], dimensions: Sequence[int], **stated: Any) -> Document:
    """A plan with the figures of given placements, in the problem's order of layers."""
    case = compile_case(cases.problem_of(document))
    layers = []
    for layer, slots, d in zip(case.layers, tables, dimensions, strict=True):
        table = np.array(slots)
        detail = {"Tokens": "tokens", "Loads": "loads", "Uniform": "uniform"}[type(layer.routed).__name__]
        moved = moved_count(layer.current, table, case.G)
        layers.append(
            {
                "layer_id": layer.layer_id,
                "dimension": d,
                "physical_to_logical": table.tolist(),
                "objective_s": layer_objective(case, layer, table, d),
                "a2a_s": a2a_seconds(case, layer, table, d)[0],
                "peak_assignments": float(rank_loads(case, layer, table).max()),
                "moved_experts": moved,
                "routing_detail": detail,
            }
            | stated
        )
    return {"layers": layers, "objective_s": sum(layer["objective_s"] for layer in layers)}


def test_a_rank_above_the_load_limit_is_refuted() -> None:
    # Experts 0 and 1 take six assignments each: 12 of 16 on one of two ranks are 1.5 times the mean.
    document = cases.golden_4(0.25)
    contiguous = solved(document, [[0, 1, 2, 3]], [1])
    assert violations(document | {"search": {"max_load_ratio": 1.5}}, contiguous) == []
    assert violations(document | {"search": {"max_load_ratio": 1.49}}, contiguous) == ["load_ratio_exceeded"]


def test_two_copies_on_a_rank_are_refuted_unless_the_problem_lets_them() -> None:
    document = cases.golden_5() | {"num_experts": 2, "redundant_slots": 2}
    document["layers"][0]["routing"] = cases.mask([(0, (0,)), (1, (1,))])
    plan = solved(document | {"forbid_same_rank_replicas": False}, [[0, 0, 1, 1]], [1])
    assert violations(document | {"forbid_same_rank_replicas": False}, plan) == []
    assert violations(document, plan) == ["duplicate_on_rank"] * 2


def test_swaps_say_nothing_where_experts_have_copies() -> None:
    document = cases.golden_5()
    assert violations(document, solved(document, [[0, 2, 0, 1]], [1])) == []
    assert violations(document, solved(document, [[0, 2, 0, 1]], [1], swaps=[])) == ["swaps_do_not_reach_placement"]


# Golden 1: contiguous takes 6 s, and one swap reaches 4 s. Golden 2: no one swap lowers the plain 8 s.
def test_a_claim_that_no_swap_helps_is_tried_out() -> None:
    document = cases.golden_1()
    assert violations(document, solved(document, [[0, 1, 2, 3]], [1], swap_optimal=True)) == ["not_swap_optimal"]
    assert violations(document, solved(document, [[0, 1, 2, 3]], [1], swap_optimal="class-summed")) == []
    assert violations(document, solved(document, [[0, 2, 1, 3]], [1], swap_optimal=True)) == []
    document = cases.golden_2()
    assert violations(document, solved(document, [list(range(8))], [1], swap_optimal=True)) == []


def test_swaps_that_limits_forbid_do_not_refute_the_claim() -> None:
    document = cases.golden_1()
    plan = solved(document, [[0, 1, 2, 3]], [1], swap_optimal=True)
    assert violations(document | {"search": {"max_moved_experts": 1}}, plan) == []
    assert violations(document | {"search": {"max_moved_experts": 2}}, plan) == ["not_swap_optimal"]
    # Above kappa = 0.5 s splitting the pairs is better, and evens loads out; below, a limit keeps what is even.
    document = cases.golden_4(0.25) | {"search": {"max_load_ratio": 1.0}}
    split = solved(document, [[0, 2, 1, 3]], [1], swap_optimal=True)
    assert violations(document, split) == []
    assert violations(document | {"search": {}}, split) == ["not_swap_optimal"]


def test_other_layers_moves_leave_less_of_the_budget_to_a_swap() -> None:
    document = cases.golden_1()
    document["layers"].append({"layer_id": 1, "routing": document["layers"][0]["routing"]})
    plan = solved(document, [[0, 1, 2, 3], [0, 2, 1, 3]], [1, 1], swap_optimal=True)
    assert violations(document | {"search": {"max_moved_experts": 3}}, plan) == []
    assert violations(document | {"search": {"max_moved_experts": 4}}, plan) == ["not_swap_optimal"]


def best_of_swaps(case: Case, layer: LayerCase, table: np.ndarray, d: int) -> float:
    """By trying all pairs of slots with the planner's own evaluator."""
    best = layer_objective(case, layer, table, d)
    for a, b in itertools.combinations(range(case.P), 2):
        swapped = table.copy()
        swapped[[a, b]] = table[[b, a]]
        rows = swapped.reshape(case.G, -1)
        if all(len(set(row.tolist())) == case.slots for row in rows):
            best = min(best, layer_objective(case, layer, swapped, d))
    return best


@pytest.mark.parametrize("seed", range(24))
def test_the_claim_is_refuted_exactly_where_some_swap_helps(seed: int) -> None:
    source = cases.seeded(seed)
    kinds = ("mask", "mask", "loads", "uniform_expected")
    document = cases.random_document(source, gpus=int(source.choice([2, 4])), kinds=kinds, redundant=seed % 3 == 0)
    case = compile_case(cases.problem_of(document))
    layer = case.layers[0]
    d = int(source.integers(1, case.D + 1))
    table = layer.current
    helps = best_of_swaps(case, layer, table, d) < layer_objective(case, layer, table, d) * (1 - 1e-9)
    found = violations(document, solved(document, [table.tolist()], [d], swap_optimal=True))
    assert found == (["not_swap_optimal"] if helps else [])


@pytest.mark.parametrize("seed", range(30))
def test_counting_again_agrees_with_the_page_and_with_the_planner(seed: int) -> None:
    source = cases.seeded(200 + seed)
    document = cases.random_document(
        source,
        gpus=int(source.choice([2, 4, 8])),
        kinds=("mask", "mask", "loads", "uniform_expected", "zipf"),
        redundant=seed % 2 == 0,
    )
    problem = cases.problem_of(document)
    case = compile_case(problem)
    layer = case.layers[0]
    table = source.permutation(layer.current) if case.P == case.E else layer.current
    written_out = document["layers"][0]["routing"]["kind"] == "mask"
    for d in case.dimensions:
        again = recount(problem, layer.routed, table, d)
        assert again.objective_s == pytest.approx(layer_objective(case, layer, table, d), rel=1e-11)
        assert again.peak_load == pytest.approx(float(rank_loads(case, layer, table).max()), rel=1e-11)
        if written_out:
            expected = oracle.objective_s(document, document["layers"][0], table.tolist(), d)
            assert again.objective_s == pytest.approx(expected, rel=1e-12)


def test_the_copy_that_serves_is_the_nearest_and_of_equals_one_in_turn() -> None:
    # Ranks 0 1 | 2 3. Expert 0 on ranks 1, 2 and 3: source 0 shares a half with rank 1 only; 2 and 3 are at home.
    # Expert 1 on rank 0, expert 2 on ranks 0 and 1: from the other half both are as far, so 2 takes the first, 3 the
    # second.
    document = cases.document(4, 5, 1, cases.mask([]), levels=(1, 2), redundant_slots=3)
    reach = destinations(cases.problem_of(document), np.array([1, 2, 0, 2, 0, 3, 0, 4]))
    assert reach[:, 0].tolist() == [1, 1, 2, 3]
    assert reach[:, 1].tolist() == [0, 0, 0, 0]
    assert reach[:, 2].tolist() == [0, 1, 0, 1]


def test_a_layer_that_cannot_be_counted_does_not_hide_the_others() -> None:
    document = cases.golden_1()
    document["layers"].append({"layer_id": 1, "routing": document["layers"][0]["routing"]})
    plan = solved(document, [[0, 1, 2, 3], [0, 2, 1, 3]], [1, 1])
    plan["layers"][0]["physical_to_logical"] = [0, 0, 0, 0]
    plan["layers"][1]["a2a_s"] = 5
    assert set(violations(document, plan)) == {"expert_missing", "a2a_mismatch"}


def test_every_code_has_been_provoked() -> None:
    elsewhere = {
        "dimension_not_allowed",
        "moved_over_budget",
        "expert_bytes_exceed_memory",
        "load_ratio_exceeded",
        "duplicate_on_rank",
        "not_swap_optimal",
    }
    assert {code for code, _ in ALONE} | elsewhere == set(VIOLATIONS)
    assert len(VIOLATIONS) == len(set(VIOLATIONS))


def test_a_front_without_tables_or_without_the_plan_is_refuted() -> None:
    """Figures that no table stands behind may be anything."""
    invented = on_front(physical_to_logical=None, peak_load=0.5, a2a_s=1e-9, objective_s=1e-9)
    assert set(violations(printed_problem(), changed(printed(), invented))) == {"front_mismatch"}
