"""The check refutes every plan that is wrong in one way, by that code alone, and shares no code with the search."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from layout_cases import G1, G2, G3, G6, G7, G8, Document, layers, problem, row, x
from layout_random import random_problem

from planner.envelope import dump_model
from planner.errors import InfeasibleError
from planner.papers.layout.check import VIOLATIONS, check
from planner.papers.layout.checks.counts import FEW
from planner.papers.layout.checks.decision import Decision
from planner.papers.layout.checks.figures import METRICS, figures
from planner.papers.layout.checks.graph import Shape, graph_of
from planner.papers.layout.checks.legality import faults, first_rule
from planner.papers.layout.checks.repeated import Repeated, pipeline_of
from planner.papers.layout.checks.rules import partitions as partitions_again
from planner.papers.layout.checks.stages import groups_of
from planner.papers.layout.engines import solve
from planner.papers.layout.evaluate import evaluate
from planner.papers.layout.formulation import combinations, cut
from planner.papers.layout.layouts import Layout, groups
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.rules import broken_rule
from planner.papers.layout.solution import RULES, LayoutSolution
from planner.validation import validate
from solvers.report import Limits

LISTED: Document = {
    "alternatives": [],
    "pareto": [],
    "neighbours": [],
    "combinations": None,
    "legal": None,
    "excluded": None,
    "rule": "zero3",
}
"""What a plan says beside its layout, left out, as a baseline does."""


def plan_of(document: Document) -> Document:
    """Its plan as a document to spoil."""
    given = problem(document)
    solution = solve(given, None, Limits())[0]
    assert check(given, solution) == []
    return dump_model(solution)


def bare(document: Document, **changes: Any) -> Document:
    """The chosen layout alone, with other values."""
    return plan_of(document) | LISTED | changes


def codes(document: Document, plan: Document) -> list[str]:
    """What the check says, each code once."""
    found = check(problem(document), validate(LayoutSolution, plan))
    return list(dict.fromkeys(violation.code for violation in found))


def grid(kinds: tuple[str, ...] = ("dense",), **degrees: Any) -> list[Document]:
    """Rows of X, all alike, for every combination of some degrees."""
    rows = []
    for values in product(*degrees.values()):
        named = dict(zip(degrees, values, strict=True))
        rows += [row(kind, **named, **({"ep": 1, "etp": 1} if kind == "moe" else {})) for kind in kinds]
        rows += [row("embedding", **named), row("head", **named)]
    return rows


def degrees(document: Document, **search: Any) -> Document:
    """With other search lists."""
    return document | {"search": {"zero_stage": [0]} | search}


EXPERTS = {"model__layers": layers(4, "moe"), "model__num_experts": 4}
SPLIT_EXPERTS = x(
    **EXPERTS,
    cluster__num_gpus=8,
    cluster__gpus_per_node=8,
    rows=[row("moe", ep=e, etp=1, params=1e8) for e in (1, 8)] + [row("embedding"), row("head")],
)
MOE_TP = x(**EXPERTS, launcher_rules="megatron", rows=grid(("moe",), tp=(1, 2)))
RULED: dict[str, tuple[Document, Document]] = {
    "world_size": (
        degrees(x(batch__sequence_length=1536, rows=grid(cp=(1, 3))), cp=[1, 3]),
        {"cp": 3},
    ),
    "expert_world_size": (G8, {"pp": 2, "partition": [2, 2], "ep": 4}),
    "no_experts": (degrees(x(), ep=[1, 2]), {"ep": 2}),
    "expert_split": (degrees(SPLIT_EXPERTS, ep=[1, 8]), {"ep": 8}),
    "tp_crosses_node": (degrees(x(cluster__gpus_per_node=2, rows=grid(tp=(1, 4))), tp=[1, 4]), {"tp": 4}),
    "heads": (degrees(x(model__num_heads=9, model__num_kv_heads=3, rows=grid(tp=(1, 2))), tp=[1, 2]), {"tp": 2}),
    "cp_sequence": (degrees(x(batch__sequence_length=1026, rows=grid(cp=(1, 2))), cp=[1, 2]), {"cp": 2}),
    "sp_without_tp": (
        degrees(x(rows=grid(sp=(False, True))), sequence_parallel=[False, True]),
        {"sequence_parallel": True},
    ),
    "sp_sequence": (
        degrees(
            x(batch__sequence_length=1023, rows=grid(tp=(1, 2), sp=(False, True))),
            tp=[1, 2],
            sequence_parallel=[False, True],
        ),
        {"tp": 2, "sequence_parallel": True},
    ),
    "global_batch": (
        degrees(x(batch__global_batch_size=4, rows=grid(micro_batch=(1, 2))), micro_batch=[1, 2]),
        {"micro_batch": 2},
    ),
    "vpp_without_pp": (degrees(x(), vpp=[1, 2]), {"vpp": 2, "partition": [2, 2]}),
    "interleave_micro_batches": (
        degrees(x(batch__global_batch_size=6), pp=[2], vpp=[1, 2]),
        {"vpp": 2, "partition": [1, 1, 1, 1]},
    ),
    "moe_needs_sp": (degrees(MOE_TP, tp=[1, 2]), {"tp": 2}),
    "megatron_zero_stage": (degrees(x(launcher_rules="megatron"), zero_stage=[0, 2]), {"zero_stage": 2}),
    "deepspeed_zero_pipeline": (
        degrees(x(launcher_rules="deepspeed"), pp=[1, 2], zero_stage=[0, 2]),
        {"pp": 2, "partition": [2, 2], "zero_stage": 2},
    ),
    "deepspeed_interleave": (
        degrees(x(launcher_rules="deepspeed"), pp=[2], vpp=[1, 2]),
        {"vpp": 2, "partition": [1, 1, 1, 1]},
    ),
    "deepspeed_cp": (degrees(x(launcher_rules="deepspeed", rows=grid(cp=(1, 2))), cp=[1, 2]), {"cp": 2}),
    "torchtitan_fsdp": (degrees(x(launcher_rules="torchtitan"), zero_stage=[0, 2]), {"zero_stage": 0}),
    "torchtitan_sp": (
        degrees(x(launcher_rules="torchtitan", rows=grid(tp=(1, 2))), tp=[1, 2], zero_stage=[2]),
        {"tp": 2},
    ),
    "partition": (
        degrees(x(cluster__num_gpus=6, cluster__gpus_per_node=6, batch__global_batch_size=12), pp=[1, 3]),
        {"pp": 3, "partition": [2, 1, 1]},
    ),
}
"""A problem for each rule, and what of its plan to change so that this rule alone is broken."""


@pytest.mark.parametrize("rule", RULED)
def test_a_layout_that_breaks_one_rule_is_refuted_by_that_rule_alone(rule: str) -> None:
    document, changes = RULED[rule]
    assert codes(document, bare(document, **changes)) == [f"rule {rule}"]


def test_experts_that_torchtitan_cannot_spread_are_no_whole_part_of_the_ranks_either() -> None:
    """ep divides d c t = N / p wherever u e p divides N, so that rule is never broken alone."""
    document = G8 | {"launcher_rules": "torchtitan", "cluster": G1["cluster"]}
    document = degrees(document, pp=[1, 2], ep=[1, 2, 4], zero_stage=[2])
    plan = bare(document, pp=2, partition=[2, 2], ep=4)
    assert codes(document, plan) == ["rule expert_world_size", "rule torchtitan_ep"]


def front_with_a_beaten_row() -> tuple[Document, Document]:
    """G3 with four layers on both stages on its front: 156 s and 29.7 GB; [5, 3] takes 135 s and 26.9 GB."""
    plan = plan_of(G3)
    beaten = next(one for one in plan["alternatives"] if one["partition"] == (4, 4))
    slower = [one for one in plan["pareto"] if one["step_time_s"] > 156]
    faster = [one for one in plan["pareto"] if one["step_time_s"] < 156]
    return G3, plan | {"pareto": [*faster, beaten, *slower]}


def second_chosen() -> tuple[Document, Document]:
    """G1 with its second best layout for the best."""
    plan = plan_of(G1)
    rows = [plan["pareto"][0], *plan["alternatives"]]
    rows = [one | {"reason": "bubble +9.00 %", "ratio": one["step_time_s"] / rows[1]["step_time_s"]} for one in rows]
    second = {name: value for name, value in rows[1].items() if name not in ("reason", "ratio")}
    others = [rows[0], rows[2]]
    neighbours = [
        {"field": "pp", "value": one["pp"]}
        | {name: one[name] for name in ("reason", "ratio", "step_time_s", "peak_memory_bytes")}
        for one in others
    ]
    front = [rows[0], rows[1] | {"reason": "chosen"}, rows[2] | {"reason": "bubble +9.00 %; 18 GB less"}]
    return G1, plan | second | {"alternatives": others, "pareto": front, "neighbours": neighbours}


def listed(name: str, **changes: Any) -> tuple[Document, Document]:
    """The plan of G1 with another first row of a list."""
    plan = plan_of(G1)
    return G1, plan | {name: [plan[name][0] | changes, *plan[name][1:]]}


def reversed_(name: str) -> tuple[Document, Document]:
    plan = plan_of(G1)
    return G1, plan | {name: plan[name][::-1]}


SMALLER = G1 | {"cluster": G1["cluster"] | {"gpu_memory_bytes": 75e9}}
WRONG = {
    "outside_search": lambda: (G1, bare(G1, zero_stage=1)),
    "partition_shape": lambda: (G1, bare(G1, partition=[3])),
    "row_not_in_table": lambda: (
        degrees(G1, micro_batch=[1, 2]),
        bare(degrees(G1, micro_batch=[1, 2]), micro_batch=2, num_micro_batches=1),
    ),
    # 76 GB as in G1, and 75 GB of memory.
    "memory": lambda: (SMALLER, bare(G1)),
    "dp_mismatch": lambda: (G1, bare(G1, dp=2)),
    "num_micro_batches_mismatch": lambda: (G1, bare(G1, num_micro_batches=4)),
    "pipeline_s_mismatch": lambda: (G1, bare(G1, pipeline_s=24.0 * (1 + 1e-8))),
    "tail_s_mismatch": lambda: (G1, bare(G1, tail_s=2.4 * (1 + 1e-8))),
    "step_time_s_mismatch": lambda: (G1, bare(G1, step_time_s=26.4 * (1 + 1e-8))),
    "tokens_per_s_per_gpu_mismatch": lambda: (G1, bare(G1, tokens_per_s_per_gpu=77.5757)),
    "peak_memory_bytes_mismatch": lambda: (G1, bare(G1, peak_memory_bytes=76e9 * (1 + 1e-8))),
    "objective_mismatch": second_chosen,
    "alternatives": lambda: reversed_("alternatives"),
    "pareto": lambda: reversed_("pareto"),
    "pareto_dominated": front_with_a_beaten_row,
    "ratio_mismatch": lambda: listed("alternatives", ratio=1.2),
    "reason_mismatch": lambda: listed("alternatives", reason="as fast; 1 GB more"),
    "neighbour": lambda: listed("neighbours", step_time_s=30.0),
    "count_mismatch": lambda: (G1, plan_of(G1) | {"legal": 2}),
}


@pytest.mark.parametrize("code", WRONG)
def test_a_plan_that_is_wrong_in_one_way_is_refuted_by_that_code_alone(code: str) -> None:
    assert codes(*WRONG[code]()) == [code]


def test_every_code_is_provoked_here() -> None:
    ruled = {f"rule {rule}" for rule in (*RULED, "torchtitan_ep")}
    assert ruled | set(WRONG) == set(VIOLATIONS)
    assert {rule.removeprefix("rule ") for rule in VIOLATIONS} >= set(RULES)


@pytest.mark.parametrize("name", ["alternatives", "pareto"])
@pytest.mark.parametrize("metric", METRICS)
def test_every_figure_of_every_row_is_computed_again(name: str, metric: str) -> None:
    row_ = plan_of(G1)[name][-1]
    plan = plan_of(G1)
    wrong = row_ | {metric: row_[metric] + (1 if isinstance(row_[metric], int) else max(1e-6, 1e-8 * row_[metric]))}
    found = check(problem(G1), validate(LayoutSolution, plan | {name: [*plan[name][:-1], wrong]}))
    place = len(plan[name]) - 1
    assert [(one.code, one.where) for one in found] == [(f"{metric}_mismatch", f"{name}.{place}.{metric}")]


def test_a_tail_may_differ_by_what_rounding_leaves_of_the_step() -> None:
    """G2 takes 105 s and has no data-parallel ranks: a tail of nothing, or of the last digits of a difference."""
    assert codes(G2, bare(G2, tail_s=1e-11)) == []
    assert codes(G2, bare(G2, tail_s=1e-9)) == ["tail_s_mismatch"]


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: {"alternatives": [*plan["alternatives"], plan["alternatives"][-1]]},
        lambda plan: {"alternatives": [plan["pareto"][0], *plan["alternatives"]]},
    ],
    ids=["twice", "the chosen one"],
)
def test_an_alternative_is_listed_once_and_is_not_the_chosen_layout(change: Any) -> None:
    plan = plan_of(G1)
    assert codes(G1, plan | change(plan)) == ["alternatives"]


@pytest.mark.parametrize("kept", [slice(0, 1), slice(1, 2)], ids=["without the last", "without the first"])
def test_an_alternative_that_a_small_search_offers_is_not_missing(kept: slice) -> None:
    plan = plan_of(G1)
    assert codes(G1, plan | {"alternatives": plan["alternatives"][kept]}) == ["alternatives"]


def test_the_reason_of_the_chosen_row_of_the_front_is_that_it_is_chosen() -> None:
    document, plan = listed("pareto", reason="bubble +7 %")
    assert codes(document, plan) == ["reason_mismatch"]


@pytest.mark.parametrize(
    ("name", "left", "code"),
    [
        ("alternatives", [], "alternatives"),
        ("pareto", [], "pareto"),
        ("neighbours", [], "neighbour"),
        ("combinations", None, "count_mismatch"),
        ("legal", None, "count_mismatch"),
        ("excluded", None, "count_mismatch"),
    ],
)
def test_the_plan_of_a_search_leaves_nothing_out(name: str, left: Any, code: str) -> None:
    assert codes(G1, plan_of(G1) | {name: left}) == [code]


def test_alternatives_are_as_many_as_the_counts_leave_where_nothing_is_counted_again() -> None:
    """2,001 sizes of micro-batch, of which 1, 2 and 4 divide 8 / d of some stages: none but 1 has a price."""
    document = degrees(G1, pp=[1, 2, 4], micro_batch=list(range(1, 2002)))
    plan = plan_of(document)
    assert plan["combinations"] > FEW
    assert codes(document, plan | {"alternatives": plan["alternatives"][:1]}) == ["alternatives"]


@pytest.mark.parametrize("reason", ["", "none", "compute", "compute +99", "bubble +16.67 %; 36 GB"])
def test_a_reason_has_one_of_its_forms(reason: str) -> None:
    assert codes(*listed("alternatives", reason=reason)) == ["reason_mismatch"]


def test_of_a_step_that_takes_no_time_a_part_grows_without_a_share() -> None:
    """Batches of one at a time cost nothing, of two at a time 3 s a layer."""
    rows = [row("dense", micro_batch=b, forward_s=b - 1.0, backward_s=2 * (b - 1.0)) for b in (1, 2)]
    rows += [row(kind, micro_batch=b) for kind in ("embedding", "head") for b in (1, 2)]
    nothing = {"alpha_s": 0, "beta_s_per_byte": 0}
    document = x(rows=rows, search={"micro_batch": [1, 2]}, costs__collectives={"intra": nothing, "inter": nothing})
    plan = plan_of(document)
    assert (plan["step_time_s"], plan["alternatives"][0]["reason"]) == (0, "compute")


@pytest.mark.parametrize("words", ["", "; 53 GB less", "; 54 GB more"])
def test_the_memory_that_a_row_of_the_front_saves_is_counted_again(words: str) -> None:
    """G1: 76 GB, and 22 GB on four stages."""
    plan = plan_of(G1)
    *front, last = plan["pareto"]
    part = last["reason"].removesuffix("; 54 GB less")
    assert part != last["reason"]
    assert codes(G1, plan | {"pareto": [*front, last | {"reason": part + words}]}) == ["reason_mismatch"]


def test_neighbours_stand_in_the_order_of_ties() -> None:
    plan = plan_of(G6)
    assert codes(G6, plan | {"neighbours": plan["neighbours"][::-1]}) == ["neighbour"]


@pytest.mark.parametrize(("pp", "vpp", "micro_batches"), [(1, 1, 60), (2, 1, 61), (4, 1, 200), (2, 3, 40), (3, 2, 90)])
def test_a_long_pipeline_ends_when_the_graph_of_all_its_tasks_does(pp: int, vpp: int, micro_batches: int) -> None:
    rng = np.random.default_rng(0)
    shape = Shape(pp, vpp, micro_batches)
    # Times at random, some of them zero, and all alike.
    times = rng.random((2, pp * vpp, 5)) * rng.integers(0, 2, (2, pp * vpp, 5))
    times[:, :, 0] = 1
    stored = rng.random(pp * vpp)
    graph, repeated = graph_of(shape), pipeline_of(shape)
    assert isinstance(repeated, Repeated)
    assert repeated.longest_paths(*times) == pytest.approx(graph.longest_paths(*times), rel=1e-13)
    assert repeated.peaks(stored) == pytest.approx(graph.peaks(stored), rel=1e-13)


@pytest.mark.parametrize("cost", [0, 10**18], ids=["period by period", "by powers"])
def test_both_ways_through_many_periods_agree(cost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.papers.layout.checks.repeated.STEP_COST", cost)
    shape = Shape(4, 2, 100)
    times = np.random.default_rng(1).random((2, 8, 3))
    assert pipeline_of(shape).longest_paths(*times) == pytest.approx(graph_of(shape).longest_paths(*times), rel=1e-13)


def test_as_many_micro_batches_as_are_read_are_checked_through_few() -> None:
    """Two ranks of 1 + 2 s: (990,000 + 1) * 3 s; of a pipeline of that length nothing is laid out task by task."""
    shape = Shape(2, 1, 990_000)
    repeated = pipeline_of(shape)
    assert isinstance(repeated, Repeated)
    assert repeated.graph.shape.num_micro_batches < 10
    assert repeated.longest_paths(np.full((2, 1), 1.0), np.full((2, 1), 2.0)) == [990_001 * 3.0]


def test_ends_that_cost_alike_are_told_apart_by_their_hops() -> None:
    """X with ends of nothing, ZeRO 2, 20 bytes of a parameter gathered and half hidden, hops of 0.5 s.

    Gather of 2e9 parameters over two ranks: 20 * 2e9 / 2 * 1e-10 = 2 s; the first rank forwards 2 * 1 + 0.5 s, half of
    which hides 1.25 s, the last 2 s, which hides 1 s: 1 s is left.
    """
    document = x(
        search={"pp": [2], "zero_stage": [2]},
        costs__overlap={"dp": 0.5, "p2p": 0},
        costs__comm_bytes={"param": 20, "grad": 4},
        costs__p2p__intra={"alpha_s": 0.5, "beta_s_per_byte": 0},
    )
    assert plan_of(document)["tail_s"] == pytest.approx(1.0, rel=1e-12)


def test_no_more_alternatives_are_listed_than_are_kept() -> None:
    plan = plan_of(G1)
    assert codes(degrees(G1, pp=[1, 2, 4], keep=1), plan) == ["alternatives"]


@pytest.mark.parametrize(
    "kept", [slice(1, None), slice(0, 2), slice(1, 2)], ids=["without the chosen", "without the smallest", "middle"]
)
def test_a_front_that_lacks_a_layout_that_nothing_beats_is_refuted(kept: slice) -> None:
    plan = plan_of(G1)
    assert codes(G1, plan | {"pareto": plan["pareto"][kept]}) == ["pareto"]


def neighbours_changed(change: Any) -> list[tuple[str, str | None]]:
    """What is said of the plan of G6 after a change to its neighbours, in place."""
    plan = plan_of(G6)
    plan["neighbours"] = [dict(one) for one in plan["neighbours"]]
    change(plan["neighbours"])
    found = check(problem(G6), validate(LayoutSolution, plan))
    return [(one.code, (one.where or "").split(".")[-1]) for one in found]


def test_neighbours_are_all_there_are_with_true_reasons_and_figures() -> None:
    """G6: tp 1 and micro-batches of 2 break global_batch beside the chosen tp 2; two stages take 23.8 s."""
    named = {(one["field"], one["value"]): place for place, one in enumerate(plan_of(G6)["neighbours"])}
    assert set(named) == {("tp", 1), ("pp", 2), ("micro_batch", 2)}
    tp, pp = named["tp", 1], named["pp", 2]
    assert neighbours_changed(lambda all_: None) == []
    assert neighbours_changed(lambda all_: all_.pop(pp)) == [("neighbour", "neighbours")]
    assert neighbours_changed(lambda all_: all_.append(all_[pp])) == [("neighbour", "3")]
    assert neighbours_changed(lambda all_: all_.append(all_[pp] | {"value": 8})) == [("neighbour", "3")]
    assert neighbours_changed(lambda all_: all_[tp].update(reason="rule heads")) == [("neighbour", "reason")]
    assert neighbours_changed(lambda all_: all_[tp].update(ratio=1.0)) == [("neighbour", str(tp))]
    assert neighbours_changed(lambda all_: all_[pp].update(ratio=1.0)) == [("neighbour", "ratio")]
    assert neighbours_changed(lambda all_: all_[pp].update(peak_memory_bytes=None)) == [
        ("neighbour", "peak_memory_bytes")
    ]
    assert neighbours_changed(lambda all_: all_[pp].update(reason="memory: 1 GB over")) == [("neighbour", "reason")]


def test_a_neighbour_that_does_not_fit_says_by_how_much() -> None:
    """G1 with 50 GB: two stages are chosen, and one would need 76 GB."""
    document = G1 | {"cluster": G1["cluster"] | {"gpu_memory_bytes": 50e9}}
    plan = plan_of(document)
    (one,) = (dict(each) for each in plan["neighbours"] if each["value"] == 1)
    assert one["reason"] == "memory: 26 GB over"
    wrong = [each if each["value"] != 1 else one | {"reason": "memory: 25 GB over"} for each in plan["neighbours"]]
    assert codes(document, plan | {"neighbours": wrong}) == ["neighbour"]


def test_the_other_partition_beside_the_chosen_one_is_the_best_other() -> None:
    """G3: [5, 3] is chosen, [6, 2] takes 150 s and [4, 4] 156 s."""
    plan = plan_of(G3)
    place = next(place for place, one in enumerate(plan["neighbours"]) if one["field"] == "partition")
    assert plan["neighbours"][place]["value"] == (6, 2)
    plan["neighbours"] = [dict(one) for one in plan["neighbours"]]
    plan["neighbours"][place]["value"] = [4, 4]
    assert codes(G3, plan) == ["neighbour"]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"combinations": 9}, "combinations"),
        ({"legal": 5}, "legal"),
        ({"excluded": {}}, "excluded.global_batch"),
        ({"excluded": {"global_batch": 4, "heads": 1}}, "excluded.heads"),
        ({"excluded": {"global_batch": 4, "memory": 1}}, "excluded.memory"),
    ],
)
def test_counts_of_a_small_search_are_counted_again(change: Document, where: str) -> None:
    found = check(problem(G6), validate(LayoutSolution, plan_of(G6) | change))
    assert [(one.code, one.where) for one in found] == [("count_mismatch", where)]


def test_a_layout_that_fits_to_the_last_byte_is_neither_refuted_nor_missed() -> None:
    """A fifth of what G1 holds beside its states is lost: 72 + 4.8 GB on one stage, and just so much is there."""
    for room_bytes in (76.8e9, 76.8e9 * (1 - 1e-15), 76.8e9 * (1 + 1e-15)):
        document = G1 | {
            "cluster": G1["cluster"] | {"gpu_memory_bytes": room_bytes},
            "costs": G1["costs"] | {"fragmentation": 0.2},
        }
        plan_of(document)


def test_a_plan_that_names_its_rule_may_be_worse_than_the_best() -> None:
    document, plan = second_chosen()
    assert codes(document, plan | {"rule": "zero3"}) == []


def test_a_row_that_the_problem_does_not_offer_does_not_hide_what_is_wrong_with_others() -> None:
    plan = plan_of(G1)
    first, second = plan["alternatives"]
    wrong = [first | {"zero_stage": 3}, second | {"tail_s": 9.0}]
    assert codes(G1, plan | {"alternatives": wrong}) == ["outside_search", "tail_s_mismatch"]


def test_a_batch_that_admits_no_layout_leaves_nothing_to_check() -> None:
    with pytest.raises(InfeasibleError):
        solve(problem(G7), None, Limits())


@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_planned_at_random_stands_the_check(seed: int) -> None:
    given = random_problem(Random(seed))
    try:
        solution = solve(given, None, Limits())[0]
    except InfeasibleError:
        return
    assert check(given, solution) == []


def some_layouts(given: LayoutProblem, rng: Random) -> dict[Decision, Any]:
    """Some layouts that keep the rules, as the check and as the search know them; rules and cuts agree on the way."""
    found = {}
    tried = list(combinations(given))
    for combination in rng.sample(tried, min(len(tried), 150)):
        of = Decision(*(getattr(combination, name) for name in Decision._fields))
        assert first_rule(given, of) == broken_rule(given, combination)
        if first_rule(given, of) is None:
            ways = list(cut(given, combination))
            kinds = given.search.partitions
            assert {way.partition for way in ways} == partitions_again(given.model.num_layers, of.pp, of.vpp, kinds)
            for layout in rng.sample(ways, min(3, len(ways))):
                found[of._replace(partition=layout.partition)] = layout
    return found


@pytest.mark.parametrize("seed", range(60))
def test_a_second_computation_of_everything_agrees_with_the_first(seed: int) -> None:
    rng = Random(seed)
    given = random_problem(rng)
    layouts = some_layouts(given, rng)
    again = figures(given, layouts)
    for of, layout in layouts.items():
        assert faults(given, of) == []
        one = evaluate(given, layout)
        first = (one.sizes.dp, one.sizes.num_micro_batches, *(getattr(one, name) for name in METRICS[2:]))
        assert tuple(getattr(again[of], name) for name in METRICS) == pytest.approx(first, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    "shape",
    [Shape(p, v, m) for p in (1, 2, 3, 5, 8) for v in (1, 2, 3) for m in (1, 2, 5, 10, 24) if v == 1 or m % p == 0],
    ids=str,
)
def test_every_edge_of_the_task_graph_goes_up_and_every_task_is_there_once(shape: Shape) -> None:
    graph = graph_of(shape)
    assert graph.ascends
    p, v, m = shape
    each, counts = (sorted(part) for part in zip(*counted(graph.kind.tolist()).items(), strict=True))
    assert each == list(range(2 * p * v))
    assert counts == [m] * (2 * p * v)


def counted(kinds: list[int]) -> dict[int, int]:
    return {kind: kinds.count(kind) for kind in set(kinds)}


def test_the_check_counts_as_many_ports_as_the_planner() -> None:
    """Whatever part of a node is in a stage, and whatever stride a group has; ranks of the last node may be few."""
    asked = 0
    for gpus, node, pp in product(range(2, 49), (1, 2, 3, 4, 6, 8), (1, 2, 3, 4, 6)):
        for tp in (1, 2, 3, 4, 6, 8) if gpus % pp == 0 else ():
            if gpus // pp % tp == 0:
                given = problem(x(cluster__num_gpus=gpus, cluster__gpus_per_node=node))
                asked += 1
                planned = groups(given, Layout(tp, 1, pp, 1, 1, tp, 0, "none", 1, False))
                counted = groups_of(given, Decision(tp, 1, pp, 1, 1, tp, 0, "none", 1, False, ()))
                for ports, crosses, leaving in (
                    (planned.dense_ports, planned.dense_crosses, counted.dense_leaving),
                    (planned.expert_ports, planned.expert_crosses, counted.experts_leaving),
                ):
                    assert leaving == (ports if crosses else 0), (gpus, node, pp, tp)
    assert asked > 1000
