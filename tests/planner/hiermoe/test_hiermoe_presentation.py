"""What a HierMoE plan shows: shares, memory, each warning once, summary, decisions by rank, the front, the moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hiermoe_cases import copied, document, golden_2, golden_4, golden_5, link, mask, printed, problem_of

from planner.papers.hiermoe import presentation
from planner.papers.hiermoe.cautions import warnings
from planner.papers.hiermoe.decision import Decision, solution_of
from planner.papers.hiermoe.engines import solve
from planner.papers.hiermoe.exchange.time import best_dimension, layer_objective
from planner.papers.hiermoe.instance import compile_case
from planner.papers.hiermoe.pictures import view
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.papers.hiermoe.solution import HiermoeSolution, LayerPlacement, Point
from planner.view import Bars, Table
from solvers.report import Limits


def stays(problem: HiermoeProblem, *, swap_optimal: bool = True) -> HiermoeSolution:
    """The plan that moves nothing."""
    case = compile_case(problem)
    decisions = []
    for layer in case.layers:
        d, objective_s = best_dimension(case, layer, layer.current)
        decisions.append(Decision(layer.current, d, objective_s, swap_optimal))
    return solution_of(case, decisions)


def solved(problem: HiermoeProblem) -> HiermoeSolution:
    return solve(problem, None, Limits())[0]


def codes(problem: HiermoeProblem, solution: HiermoeSolution) -> list[str]:
    return [warned.code for warned in warnings(problem, solution)]


def changed(document: dict[str, Any], **search: Any) -> HiermoeProblem:
    return problem_of(copied(document) | {"search": search})


def tables(problem: HiermoeProblem, solution: HiermoeSolution) -> dict[str, Table]:
    return {section.title: section for section in view(problem, solution).sections if isinstance(section, Table)}


# --- where the time goes ------------------------------------------------------------------------------------------


def test_all_time_of_stated_costs_is_stated() -> None:
    problem = problem_of(printed())
    shares = presentation.shares(problem, stays(problem))
    assert shares["stated"] == pytest.approx(1.0)
    assert sum(shares.values()) == pytest.approx(1.0)


def test_shares_weigh_hops_and_experts_by_their_part_of_the_objective() -> None:
    # Contiguous takes 6 s of exchange and 12 assignments of 0.5 s: half and half. Of the link 1/4 is measured.
    given = golden_4(0.5)
    sources = {"measured": 0.25, "interpolated": 0.0, "modelled": 0.75, "stated": 0.0}
    given["costs"]["links"]["flat"] = link() | {"sources": sources}
    problem = problem_of(given)
    shares = presentation.shares(problem, stays(problem))
    assert shares["measured"] == pytest.approx(0.125)
    assert shares["modelled"] == pytest.approx(0.375)
    assert shares["stated"] == pytest.approx(0.5)
    # Twice the exchange, dispatch and combine: 12 s and 6 s.
    twice = problem_of(given | {"objective": {"a2a_multiplier": 2.0}})
    assert presentation.shares(twice, stays(twice))["stated"] == pytest.approx(1 / 3)


def test_what_costs_nothing_is_stated() -> None:
    problem = problem_of(document(2, 4, 2, mask([])))
    assert presentation.shares(problem, stays(problem))["stated"] == 1.0


# --- memory -------------------------------------------------------------------------------------------------------


def test_memory_is_the_experts_of_all_layers_on_a_gpu() -> None:
    given = printed()
    given["costs"]["expert_bytes"] = 1000
    given["topology"]["expert_memory_bytes_per_gpu"] = 5000
    given["layers"].append(given["layers"][0] | {"layer_id": 1})
    problem = problem_of(given)
    # 8 experts on 4 GPUs are 2 a layer, of 1,000 bytes, in 2 layers.
    (row,) = presentation.memory(problem, stays(problem))
    assert (row.bytes, row.capacity_bytes) == (4000, 5000)


def test_memory_is_not_told_where_the_problem_does_not_limit_it() -> None:
    given = printed()
    given["costs"]["expert_bytes"] = 1000
    problem = problem_of(given)
    assert presentation.memory(problem, stays(problem)) == []


# --- warnings -----------------------------------------------------------------------------------------------------


def test_a_good_plan_from_tokens_warns_of_nothing() -> None:
    problem = problem_of(golden_2())
    assert codes(problem, solved(problem)) == []


def test_layers_without_tokens_are_named() -> None:
    given = golden_2()
    given["layers"].append({"layer_id": 7, "routing": mask([])})
    problem = problem_of(given)
    (warned,) = warnings(problem, stays(problem))
    assert warned.code == "no_tokens"
    assert "layer 7" in warned.message


def test_loads_say_that_they_know_no_pairs() -> None:
    problem = problem_of(document(2, 4, 1, {"kind": "loads", "expert_load": [2.0] * 4}))
    assert codes(problem, stays(problem)) == ["loads_only"]


def uneven(expert_load: list[float], **changes: Any) -> HiermoeProblem:
    """Two ranks of two experts; ranks have the sums of the first two loads and of the others."""
    tokens = [(0, (expert,)) for expert, load in enumerate(expert_load) for _ in range(int(load))]
    return problem_of(document(2, 4, 1, mask(tokens), **changes))


def test_ranks_above_one_and_a_half_times_the_mean_are_uneven() -> None:
    # 7 of 9 tokens: 1.556 times the mean. 6 of 8: 1.5 times, which is not above.
    assert codes(uneven([4, 3, 1, 1]), stays(uneven([4, 3, 1, 1]))) == ["uneven_ranks"]
    assert codes(uneven([3, 3, 1, 1]), stays(uneven([3, 3, 1, 1]))) == []


@pytest.mark.parametrize(
    "changes", [{"costs": {"compute_s_per_assignment": 1e-9}}, {"search": {"max_load_ratio": 2.0}}]
)
def test_ranks_are_not_called_uneven_where_the_problem_asks_for_balance(changes: dict[str, Any]) -> None:
    problem = uneven([4, 3, 1, 1], **changes)
    assert codes(problem, stays(problem)) == []


def test_a_search_that_max_swaps_ends_says_so() -> None:
    problem = changed(golden_2(), max_swaps=0)
    (warned,) = warnings(problem, stays(problem, swap_optimal=False))
    assert warned.code == "not_swap_optimal"
    assert "search.max_swaps" in warned.message
    assert "max_load_ratio" not in warned.message
    problem = changed(golden_2(), max_swaps=0, max_load_ratio=2.0)
    (warned,) = warnings(problem, stays(problem, swap_optimal=False))
    assert "search.max_load_ratio" in warned.message


@pytest.mark.parametrize("search", [{"max_moved_experts": 0}, {"max_moved_experts": 2}, {"min_relative_gain": 0.9}])
def test_what_the_problem_itself_keeps_from_swapping_is_no_warning(search: dict[str, Any]) -> None:
    problem = changed(golden_2(), **search)
    assert codes(problem, stays(problem, swap_optimal=False)) == []


def test_copies_are_not_said_to_miss_a_swap() -> None:
    problem = problem_of(golden_5())
    assert codes(problem, stays(problem, swap_optimal=False)) == []


# --- summary ------------------------------------------------------------------------------------------------------


def test_the_summary_says_what_moves_and_what_it_gains() -> None:
    given = printed()
    given["costs"]["expert_bytes"] = 1000
    problem = problem_of(given)
    # 257.344 / 228.672 = 1.1254; two swaps bring four experts to other ranks
    assert presentation.summary(problem, solved(problem)) == [
        "1 layer of 8 experts, 2 a token, on 4 GPUs",
        "exchange: flat (d=1) in 1 layer",
        "the current placement takes 257.3 us, 1.125 times as long",
        "busiest rank over mean load: 1.000 at worst",
        "moves 4 experts, 4 kB from the current placement",
    ]


def test_a_plan_that_moves_nothing_says_so_and_compares_nothing() -> None:
    problem = problem_of(printed())
    lines = presentation.summary(problem, stays(problem))
    assert "the current placement stays" in lines
    assert not any("times as long" in line or line.startswith("moves") for line in lines)


def test_a_single_redundant_slot_is_one() -> None:
    problem = problem_of(golden_5())
    first = presentation.summary(problem, solved(problem))[0]
    assert first == "1 layer of 3 experts, 1 a token + 1 redundant slot, on 2 GPUs"


# --- decisions ----------------------------------------------------------------------------------------------------


def placed(problem: HiermoeProblem, table: list[int], d: int = 1) -> LayerPlacement:
    """The first layer with a table as it stands, whatever the order within its ranks."""
    case = compile_case(problem)
    each = np.array(table, dtype=np.int64)
    decision = Decision(each, d, layer_objective(case, case.layers[0], each, d))
    return solution_of(case, [decision]).layers[0].model_copy(update={"physical_to_logical": tuple(table)})


def told(layer: LayerPlacement) -> Any:
    return presentation.decisions(HiermoeSolution(layers=(layer,), objective_s=layer.objective_s))["layers"]


def decided(problem: HiermoeProblem, table: list[int], d: int = 1) -> Any:
    return told(placed(problem, table, d))


def test_decisions_are_where_experts_sit_whatever_their_slot_there() -> None:
    problem = problem_of(document(2, 4, 1, mask([(0, (0,))])))
    homes = {"0": "rank 1", "1": "rank 0", "2": "rank 0", "3": "rank 1"}
    assert decided(problem, [2, 1, 3, 0]) == {"0": {"dimension": 1, "experts": homes}}
    assert decided(problem, [1, 2, 0, 3]) == decided(problem, [2, 1, 3, 0])


def test_ranks_are_told_by_the_hops_of_every_dimension() -> None:
    problem = problem_of(document(4, 4, 1, mask([(0, (0,))]), levels=(1, 2)))
    # One expert a rank: Inter-1 joins 2 ranks, Intra-1 joins 2.
    homes = {"0": "rank 3", "1": "rank 2", "2": "rank 1", "3": "rank 0"}
    assert decided(problem, [3, 2, 1, 0], d=2) == {"0": {"dimension": 2, "experts": homes}}


def test_copies_list_all_their_ranks() -> None:
    (layer,) = decided(problem_of(golden_5()), [0, 2, 0, 1]).values()
    assert layer["experts"] == {"0": "ranks 0, 1", "1": "rank 1", "2": "rank 0"}


def test_a_solution_without_hops_is_told_by_slot() -> None:
    layer = placed(problem_of(document(2, 4, 1, mask([(0, (0,))]))), [2, 1, 3, 0])
    homes = {"0": "slot 3", "1": "slot 1", "2": "slot 0", "3": "slot 2"}
    assert told(layer.model_copy(update={"hops": ()})) == {"0": {"dimension": 1, "experts": homes}}


# --- view ---------------------------------------------------------------------------------------------------------


def test_bars_add_up_to_the_objective_of_each_layer() -> None:
    given = golden_4(0.5) | {"objective": {"a2a_multiplier": 2.0, "compute_multiplier": 3.0}}
    problem = problem_of(given)
    solution = stays(problem)
    (bars,) = (section for section in view(problem, solution).sections if isinstance(section, Bars))
    # 2 x 6 s of exchange, 3 x 0.5 s x 12 assignments
    assert [(part.kind, part.amount) for part in bars.bars[0].segments] == [("flat", 12.0), ("experts", 18.0)]
    assert sum(part.amount for part in bars.bars[0].segments) == solution.layers[0].objective_s


def test_the_hops_shown_are_those_of_the_slowest_layer() -> None:
    given = golden_2()
    given["layers"].append({"layer_id": 5, "routing": mask([(0, (0, 1))] * 40)})
    problem = problem_of(given)
    assert "hops of layer 5, the slowest" in tables(problem, stays(problem))


def test_many_layers_and_moves_are_cut_and_counted() -> None:
    # Each layer reverses 4 experts over 4 ranks: 4 moves, in 17 layers 68.
    one = {"routing": mask([(0, (0,))]), "initial_physical_to_logical": [3, 2, 1, 0]}
    given = document(4, 4, 1, {}, layers=[one | {"layer_id": n} for n in range(17)])
    problem = problem_of(given)
    case = compile_case(problem)
    table = case.layers[0].current[::-1].copy()
    decisions = [Decision(table, 1, layer_objective(case, layer, table, 1)) for layer in case.layers]
    shown = tables(problem, solution_of(case, decisions))
    assert len(shown["layers, the first 16 of 17"].rows) == 16
    moves = shown["moves, the first 12 of 68"]
    assert len(moves.rows) == 12
    # Expert 0 sits on rank 3 now, in slot 3, and comes to rank 0.
    assert moves.rows[0] == ("0", "0", "3 (3)", "0 (0)", "")


def test_a_plan_that_moves_nothing_has_no_table_of_moves() -> None:
    problem = problem_of(golden_2())
    assert not any(title.startswith("moves") for title in tables(problem, stays(problem)))


# --- the front ----------------------------------------------------------------------------------------------------


def with_front(problem: HiermoeProblem, *figures: tuple[float, float]) -> HiermoeSolution:
    """Case 5 at its optimum (largest load 3, exchange 4 s) with points of these loads and exchange times beside it."""
    layer = placed(problem, [0, 2, 0, 1])
    kappa_s = problem.costs.compute_s_per_assignment
    points = sorted([(3.0, 4.0), *figures])
    front = tuple(
        Point(dimension=1, peak_load=load, a2a_s=a2a_s, objective_s=a2a_s + kappa_s * load) for load, a2a_s in points
    )
    layer = layer.model_copy(update={"front": front})
    return HiermoeSolution(layers=(layer,), objective_s=layer.objective_s)


def front_of(problem: HiermoeProblem, *figures: tuple[float, float]) -> tuple[str, list[tuple[str, ...]]]:
    solution = with_front(problem, *figures)
    (found,) = (table for title, table in tables(problem, solution).items() if title.startswith("front"))
    return found.title, list(found.rows)


def uncharged(**search: Any) -> HiermoeProblem:
    given = golden_5() | {"search": search}
    given["costs"].pop("compute_s_per_assignment")
    return problem_of(given)


def test_the_planned_point_is_marked_with_the_rule_that_took_it() -> None:
    _, rows = front_of(problem_of(golden_5()), (5.0, 3.0))
    assert rows == [
        ("1", "3 assignments", "4 s", "7 s", "planned: least objective"),
        ("1", "5 assignments", "3 s", "8 s", ""),
    ]


def test_where_nothing_charges_load_the_rule_is_told_by_what_eplb_reaches() -> None:
    # EPLB gives the copy to expert 0: loads 2, 2, 1, 1, three assignments a rank at least, which the plan has too.
    _, rows = front_of(uncharged(), (5.0, 3.0))
    assert [row[-1] for row in rows] == ["planned: quickest with no rank busier than EPLB's", ""]


def test_a_point_busier_than_eplb_says_that_the_baselines_are_quicker() -> None:
    problem = uncharged(max_load_ratio=2.0)
    solution = with_front(problem, (1.0, 9.0))
    # The same figures as if the busiest rank had four.
    busier = [point.model_copy(update={"peak_load": point.peak_load + 1}) for point in solution.layers[0].front or ()]
    layer = solution.layers[0].model_copy(update={"peak_assignments": 4.0, "front": tuple(busier)})
    shown = tables(problem, solution.model_copy(update={"layers": (layer,)}))["front of layer 0"]
    assert shown.rows[1][-1] == (
        "planned: quickest within search.max_load_ratio; none as even as EPLB's is as quick as the baselines"
    )


def test_a_front_of_one_point_says_that_nothing_else_was_met() -> None:
    _, rows = front_of(problem_of(golden_5()))
    assert [row[-1] for row in rows] == ["planned: nothing met has less load or a quicker exchange"]


def test_points_alike_in_what_is_shown_are_one_row_and_counted() -> None:
    title, rows = front_of(problem_of(golden_5()), (3.0000001, 3.9999999), (3.0000002, 3.9999998))
    assert title == "front of layer 0, 2 more alike"
    assert [row[-1] for row in rows] == ["planned: least objective"]


def test_a_plan_without_copies_has_no_front() -> None:
    problem = problem_of(golden_2())
    assert not any(title.startswith("front") for title in tables(problem, solved(problem)))


def test_a_layer_kept_as_it_is_for_a_small_gain_has_no_front() -> None:
    # 7 s against 9 s of the current placement gain 22 %.
    problem = problem_of(golden_5() | {"search": {"min_relative_gain": 0.5}})
    solution = solved(problem)
    assert solution.objective_s == 9.0
    assert solution.layers[0].front is None
