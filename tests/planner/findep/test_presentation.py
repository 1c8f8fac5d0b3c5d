"""What a FinDEP plan shows: shares, memory by cause, warnings, summary, and pictures that leave no task out."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from planner.papers.findep import presentation
from planner.papers.findep.engines import solve
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.schedule import build_solution
from planner.papers.findep.solution import FindepSolution
from planner.papers.findep.solution import Timeline as Written
from planner.papers.findep.space import Decision
from planner.papers.findep.tasks import tasks_of
from planner.papers.findep.timeline import expand
from planner.reports.terminal import print_view
from planner.validation import validate
from planner.view import Table, Timeline
from solvers.report import Limits

EXAMPLE: dict[str, Any] = {
    "num_layers": 2,
    "num_experts": 4,
    "top_k": 2,
    "tokens_per_sample": 1,
    "attention": {"alpha_s": 1.0, "beta_s_per_sample": 1.0},
    "shared_expert": {"alpha_s": 0.0, "beta_s_per_sample": 1.0},
    "expert": {"alpha_s": 0.5, "beta_s_per_token": 0.5},
    "splits": [{"attention_gpus": 2, "expert_gpus": 2, "a2e": {"alpha_s": 0.5, "beta_s_per_token": 0.5}}],
    "memory": {
        "attention_capacity_bytes": 20.0,
        "attention_fixed_bytes": 4.0,
        "attention_bytes_per_sample": 2.0,
        "attention_workspace_bytes_per_sample": 1.0,
        "expert_capacity_bytes": 100.0,
        "expert_fixed_bytes": 10.0,
        "expert_bytes_per_expert": 20.0,
        "expert_buffer_bytes_per_token": 0.5,
    },
    "search": {"max_m_a": 4, "max_r1": 2, "max_r2": 4},
}
"""The problem of `plan example findep`: case G6."""


def problem(**changes: Any) -> FindepProblem:
    """The page's example with other fields."""
    return validate(FindepProblem, EXAMPLE | changes)


def linear(alpha_s: float, beta: float = 0.0, **more: Any) -> dict[str, Any]:
    return {"alpha_s": alpha_s, "beta_s_per_token": beta, **more}


def fixed(t_a: float, t_s: float | None, t_x: float, t_e: float, layers: int) -> FindepProblem:
    """Times that do not depend on the load, two GPUs a pool, one sample a micro-batch."""
    return problem(
        num_layers=layers,
        num_experts=2,
        top_k=1,
        attention={"alpha_s": t_a, "beta_s_per_sample": 0.0},
        shared_expert=None if t_s is None else {"alpha_s": t_s, "beta_s_per_sample": 0.0},
        expert=linear(t_e),
        splits=[{"attention_gpus": 2, "expert_gpus": 2, "a2e": linear(t_x)}],
        memory=None,
        search={"max_m_a": 1, "max_r1": 4, "max_r2": 1},
    )


def best(of: FindepProblem) -> FindepSolution:
    return solve(of, None, Limits())[0]


def decided(of: FindepProblem, m_a: int, r1: int, r2: int, order: Any = "AASS") -> FindepSolution:
    """The solution of a decision of one's own; its bound is no bound."""
    return build_solution(of, Decision(0, m_a, r1, r2, order, 0.0, 0.0), free_order_bound=1e9)


def codes(of: FindepProblem, solution: FindepSolution) -> list[str]:
    return [warned.code for warned in presentation.warnings(of, solution)]


def pictures(of: FindepProblem, solution: FindepSolution) -> list[Timeline]:
    return [section for section in presentation.view(of, solution).sections if isinstance(section, Timeline)]


def tables(of: FindepProblem, solution: FindepSolution) -> list[Table]:
    return [section for section in presentation.view(of, solution).sections if isinstance(section, Table)]


# --- shares and memory ---


def test_costs_without_a_source_are_stated() -> None:
    given = problem()
    assert presentation.shares(given, best(given)) == {
        "measured": 0.0,
        "interpolated": 0.0,
        "modelled": 0.0,
        "stated": 1.0,
    }


def test_shares_weigh_each_cost_by_the_time_that_its_tasks_are_busy() -> None:
    # G6: m_a 3, r1 2, r2 2. A layer: 2 x 4 s attention, 2 x 3 s shared, 4 x 2 s each link, 4 x 2.5 s experts: 40 s.
    split = {"attention_gpus": 2, "expert_gpus": 2, "a2e": linear(0.5, 0.5, sources={"modelled": 0.5, "stated": 0.5})}
    given = problem(
        attention={"alpha_s": 1.0, "beta_s_per_sample": 1.0, "sources": {"measured": 1.0}},
        expert=linear(0.5, 0.5, sources={"interpolated": 0.4, "modelled": 0.6}),
        splits=[split],
    )
    shares = presentation.shares(given, best(given))
    assert shares == pytest.approx(
        {"measured": 8 / 40, "interpolated": 4 / 40, "modelled": (6 + 8) / 40, "stated": (6 + 8) / 40}
    )
    own = problem(splits=[split | {"expert": linear(0.5, 0.5, sources={"measured": 1.0}), "e2a": linear(0.5, 0.5)}])
    # Experts and the way back are the split's own now; attention is stated.
    assert presentation.shares(own, best(own)) == pytest.approx(
        {"measured": 10 / 40, "interpolated": 0.0, "modelled": 4 / 40, "stated": (8 + 6 + 4 + 8) / 40}
    )


def test_memory_is_listed_by_pool_and_cause() -> None:
    # G6 by equation 10: 4, 2 x 3 x 2, 3 x 1; and 10, 2 experts x 20, 2 x 3 x 2 x 2 x 1 / 4 x 2 tokens of 0.5 bytes.
    given = problem()
    assert [
        (row.where, row.cause, row.bytes, row.capacity_bytes) for row in presentation.memory(given, best(given))
    ] == [
        ("attention GPU", "fixed", 4.0, 20.0),
        ("attention GPU", "resident samples", 12.0, 20.0),
        ("attention GPU", "workspace", 3.0, 20.0),
        ("expert GPU", "expert weights", 40.0, 100.0),
        ("expert GPU", "fixed", 10.0, 100.0),
        ("expert GPU", "tokens in flight", 6.0, 100.0),
    ]


def test_a_problem_without_memory_shows_none() -> None:
    given = problem(memory=None)
    assert presentation.memory(given, best(given)) == []
    assert [table.title for table in tables(given, best(given))] == ["resources"]
    assert not any(line.startswith("memory") for line in presentation.summary(given, best(given)))


# --- warnings ---


def memory_of(**changes: float) -> Any:
    """The example's memory on large devices, with other fields."""
    return EXAMPLE["memory"] | {"attention_capacity_bytes": 1000.0, "expert_capacity_bytes": 1000.0} | changes


@pytest.mark.parametrize(
    ("capacities", "pools"),
    [
        # 19 bytes of attention GPU and 56 of expert GPU: 85 % of 22.36 and of 65.89.
        ({}, []),
        ({"attention_capacity_bytes": 22.3}, ["attention GPU"]),
        ({"attention_capacity_bytes": 22.4}, []),
        ({"expert_capacity_bytes": 65.8}, ["expert GPU"]),
        ({"attention_capacity_bytes": 19, "expert_capacity_bytes": 56}, ["attention GPU", "expert GPU"]),
    ],
)
def test_a_pool_above_85_percent_is_near_capacity(capacities: dict[str, float], pools: list[str]) -> None:
    given = problem(memory=memory_of(**capacities))
    found = [w for w in presentation.warnings(given, decided(given, 3, 2, 2)) if w.code == "near_capacity"]
    assert [warned.message.split(" is ")[0].removeprefix("the ") for warned in found] == pools


def test_expert_slots_that_stay_idle_are_counted() -> None:
    # 5 experts on 2 GPUs: 3 on one, 2 on the other, 6 slots.
    given = problem(num_experts=5)
    warned = next(w for w in presentation.warnings(given, best(given)) if w.code == "idle_expert_slots")
    assert warned.message.startswith("1 of 6 expert slots idle, since the GPUs with 3 experts set the pace")
    assert "divides 5" in warned.message
    assert "idle_expert_slots" not in codes(problem(), best(problem()))


@pytest.mark.parametrize(
    ("changes", "m_a", "binds"),
    [
        ({"memory": None}, 4, True),
        ({"memory": None}, 3, False),  # not the end of the box
        ({"memory": memory_of()}, 4, True),
        # m_a 5 with r1 2 needs 4 + 10 x 2 + 5 = 29 bytes of the attention GPU.
        ({"memory": memory_of(attention_capacity_bytes=29)}, 4, True),
        ({"memory": memory_of(attention_capacity_bytes=28.9)}, 4, False),
        # ... and 10 + 40 + 10 of the expert GPU.
        ({"memory": memory_of(expert_capacity_bytes=60)}, 4, True),
        ({"memory": memory_of(expert_capacity_bytes=59.9)}, 4, False),
    ],
)
def test_the_search_box_binds_where_one_more_sample_would_fit(changes: Any, m_a: int, binds: bool) -> None:
    given = problem(**changes)
    assert ("search.max_m_a = 4" in box_message(given, decided(given, m_a, 2, 1))) == binds


def box_message(of: FindepProblem, solution: FindepSolution) -> str:
    return "".join(w.message for w in presentation.warnings(of, solution) if w.code == "search_box_binds")


def searching(m_a: int, r1: int, r2: int, **more: Any) -> dict[str, Any]:
    return {"memory": None, "search": {"max_m_a": m_a, "max_r1": r1, "max_r2": r2}, **more}


def test_the_search_box_binds_where_more_micro_batches_could_be_better() -> None:
    # Attention 1 s, dispatch, experts and combine 1 s each, G = 4 s, one layer: D = 4 s with one micro-batch, 5 s with
    # two and 3 + r1 s with r1: 2 tokens each, so 2 / 4, 4 / 5, 6 / 6, ...: the box ends it.
    given = fixed(1, None, 1, 1, 1)
    solution = best(given)
    assert (solution.r1, solution.objective) == (4, pytest.approx(8 / 7))
    assert "search.max_r1 = 4" in box_message(given, solution)
    # Within 7 s no more than four micro-batches pass.
    within = given.model_copy(update={"makespan_limit_s": 7.0})
    assert "max_r1" not in box_message(within, best(within))


def test_more_micro_batches_that_cannot_be_better_are_not_asked_for() -> None:
    # G6 with room for 12 resident samples: any other division of them into micro-batches gives less, as a wider search
    # finds.
    wide = problem(search={"max_m_a": 4, "max_r1": 8, "max_r2": 4})
    assert best(wide).r1 == 2
    assert box_message(problem(), best(problem())) == ""


def test_the_search_box_binds_where_smaller_chunks_could_be_better() -> None:
    # One layer, no fixed costs: 4 tokens in r2 chunks take 4 s of attention and 3 x 4 / r2 + (r2 - 1) x 4 / r2 more.
    free = linear(0.0, 1.0)
    costs = {"num_layers": 1, "attention": {"alpha_s": 0.0, "beta_s_per_sample": 1.0}, "shared_expert": None}
    split = {"attention_gpus": 2, "expert_gpus": 2, "a2e": linear(0.0, 0.5)}
    whole = problem(**searching(4, 1, 2, expert=linear(0.0, 0.5), splits=[split], **costs))
    assert best(whole).r2 == 2
    assert "search.max_r2 = 2" in box_message(whole, best(whole))
    # A chunk has a token at least: 4 tokens are 4 chunks.
    tokens = problem(**searching(4, 1, 4, expert=free, splits=[split], **costs))
    assert best(tokens).r2 == 4
    assert "max_r2" not in box_message(tokens, best(tokens))


def test_a_launcher_that_leaves_no_choice_is_not_the_box() -> None:
    given = problem(**searching(1, 2, 1, launcher_rules="vllm_afd"))
    solution = best(given)
    assert (solution.r1, solution.r2) == (2, 1)
    assert "max_r" not in box_message(given, solution)


@pytest.mark.parametrize(
    ("rounding", "r2", "warned"),
    # m_a 1: 2 GPUs x top 2 x 1 token / 4 experts are 1 token an expert, in 2 chunks 0.5; whole tokens are never fewer.
    [("real", 1, False), ("real", 2, True), ("ceil", 2, False)],
)
def test_chunks_of_less_than_a_token_an_expert_are_warned_of(rounding: str, r2: int, warned: bool) -> None:
    given = problem(tokens_per_sample=1, search={"max_m_a": 4, "max_r1": 2, "max_r2": 4, "token_rounding": rounding})
    assert ("few_tokens" in codes(given, decided(given, 1, 1, r2))) == warned


def test_priced_experts_already_know_of_few_tokens() -> None:
    # Rows of whole batches hold that few tokens reach few experts; rounding up would count that twice.
    priced = linear(0.5, 0.5, sources={"interpolated": 1.0})
    assert "few_tokens" not in codes(problem(expert=priced), decided(problem(expert=priced), 1, 1, 2))
    own = problem(splits=[EXAMPLE["splits"][0] | {"expert": priced}])
    assert "few_tokens" not in codes(own, decided(own, 1, 1, 2))


def test_even_splits_that_lost_are_not_advised() -> None:
    # 4 experts on 3 GPUs leave 2 of 6 slots idle; 2 GPUs hold 2 each.
    uneven = {"attention_gpus": 2, "expert_gpus": 3, "a2e": linear(0.5, 0.5)}
    alone = problem(splits=[uneven])
    both = problem(splits=[*EXAMPLE["splits"], uneven])
    advice = [
        next(w.message for w in presentation.warnings(of, made) if w.code == "idle_expert_slots")
        for of, made in (
            (alone, decided(alone, 1, 1, 1)),
            (both, build_solution(both, Decision(1, 1, 1, 1, "AASS", 0.0, 0.0), free_order_bound=1e9)),
        )
    ]
    assert "offer a split whose expert_gpus divides 4" in advice[0]
    assert "none of the splits offered" in advice[1]


def test_every_warning_says_what_to_do() -> None:
    given = problem(num_experts=5, search={"max_m_a": 3, "max_r1": 2, "max_r2": 4}, memory=memory_of())
    tight = problem(memory=memory_of(attention_capacity_bytes=19))
    found = {
        warned.code: warned.message
        for of, solution in ((given, decided(given, 3, 2, 4)), (tight, decided(tight, 3, 2, 2)))
        for warned in presentation.warnings(of, solution)
    }
    advice = {
        "near_capacity": "larger reserve",
        "idle_expert_slots": "offer a split",
        "search_box_binds": "search.max_m_a = 3",
        "few_tokens": "search.token_rounding",
    }
    assert found.keys() == advice.keys()
    assert all(words in found[code] for code, words in advice.items())


# --- summary, decisions, metrics ---


def test_the_summary_says_what_was_decided_and_what_it_gives() -> None:
    given = problem()
    # G6. The bound on D is 31 s: 2 x 2 x (4 + 3), less 2 x 3 of the last layer's shared experts, and G - t_a with
    # G = 4 + 2 + 2.5 + 2 + 2.5. Other candidates have weaker ones.
    assert presentation.summary(given, best(given)) == [
        "2 attention GPUs (AG), 2 expert GPUs (EG); AASS: all attention of a layer, then its shared experts",
        "m_a 3 samples on each AG, r1 2 micro-batches, r2 2 chunks of 1.5 tokens an expert",
        "12 tokens pass 2 layers in 32 s; once steady a layer takes 14 s",
        "idle: AG 12.5%, A2E 50.0%, EG 37.5%, E2A 50.0%",
        "memory: attention GPU 19 B of 20 B, expert GPU 56 B of 100 B",
        "no order of the tasks, in this or any other plan of the search, can be more than 3.23 % better",
    ]


def test_a_bound_that_is_met_leaves_nothing_to_gain() -> None:
    given = fixed(2, 1, 1, 3, 1)
    solution = best(given)
    met = solution.model_copy(update={"free_order_bound": solution.objective})
    assert presentation.summary(given, met)[-1].endswith("can be better")


def test_tokens_per_second_are_told_where_the_objective_is_another() -> None:
    given = problem(objective="tokens_per_s_per_gpu")
    assert "0.375 tokens/s" in presentation.summary(given, best(given))[2]


def test_without_shared_experts_the_order_says_nothing() -> None:
    given = fixed(2, None, 1, 3, 4)
    solution = best(given)
    assert "both orders are one" in presentation.summary(given, solution)[0]
    assert all("shared expert" not in picture.kinds for picture in pictures(given, solution))
    assert [row[1] for row in tables(given, solution)[0].rows] == ["attention", "dispatch", "experts", "combine"]


def test_a_layer_takes_half_of_a_cycle_of_two() -> None:
    # G3: layers end at 28, 50, 73, 95, ...: 45 s for two.
    given = fixed(5, 6, 7, 2, 8)
    solution = decided(given, 1, 2, 1)
    assert "once steady a layer takes 22.5 s" in presentation.summary(given, solution)[2]
    assert presentation.metrics(solution)["period_s"] == pytest.approx(45)
    assert presentation.metrics(solution)["cycle_layers"] == 2


def test_decisions_are_what_a_runtime_is_told() -> None:
    assert presentation.decisions(best(problem())) == {
        "attention_gpus": 2,
        "expert_gpus": 2,
        "m_a": 3,
        "r1": 2,
        "r2": 2,
        "order": "AASS",
    }


def test_metrics_are_plain_values() -> None:
    for given in (problem(), problem(memory=None)):
        metrics = presentation.metrics(best(given))
        assert json.loads(json.dumps(metrics)) == metrics
        assert {
            "makespan_s",
            "objective",
            "free_order_bound",
            "utilisation",
            "tokens_per_expert_chunk",
        } <= metrics.keys()


# --- pictures ---


def test_a_short_schedule_is_one_picture_of_all_its_tasks() -> None:
    given = problem()
    solution = best(given)
    (picture,) = pictures(given, solution)
    assert (picture.title, picture.start, picture.end) == ("schedule, layers 1 to 2", 0.0, 32.0)
    seen = {
        (track.name, span.kind, span.label, span.start) for track in picture.tracks for span in track.spans
    }  # fmt: skip
    expected = set()
    for layer in expand(solution.timeline, 2):
        for i in range(2):
            expected.add(("AG", "attention", "01"[i], layer.attention[i]))
            expected.add(("AG", "shared expert", "AB"[i], layer.shared[i]))
            expected |= {("A2E", "transfer", "01"[i], start) for start in layer.a2e[i]}
            expected |= {("EG", "expert", "01"[i], start) for start in layer.expert[i]}
            expected |= {("E2A", "transfer", "01"[i], start) for start in layer.e2a[i]}
    assert seen == expected
    assert [track.note for track in picture.tracks] == ["idle 12.5%", "idle 50.0%", "idle 37.5%", "idle 50.0%"]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(problem(num_layers=60, memory=None), id="B with 60 layers"),
        pytest.param(problem(num_layers=20, num_experts=5, memory=None), id="five experts"),
        pytest.param(fixed(5, 6, 7, 2, 8), id="G3, a cycle of two layers"),
        pytest.param(fixed(1, 3, 4, 3, 12), id="G4"),
        pytest.param(fixed(1, None, 9, 1, 30), id="a slow link"),
    ],
)
@pytest.mark.parametrize("order", ["AASS", "ASAS"])
def test_a_steady_cycle_holds_each_task_of_its_layers_once(given: FindepProblem, order: str) -> None:
    solution = decided(given, 1, 2, 1, order)
    steady = solution.timeline.steady
    assert steady is not None
    start, cycle = pictures(given, solution)
    assert start.title == f"start, layers 1 to 2 of {given.num_layers}"
    assert cycle.end == pytest.approx(steady.period_s)
    # What is cut at one side comes in at the other: busy seconds are those of the layers of one cycle.
    for track in cycle.tracks:
        busy = sum(min(span.end, cycle.end) - max(span.start, cycle.start) for span in track.spans)
        work = sum(task.count * task.seconds for task in tasks_of(given, solution) if task.resource == track.name)
        assert busy == pytest.approx(work * steady.cycle_layers)


def test_the_start_shows_the_first_two_layers_whole_and_what_overlaps_them() -> None:
    given = problem(num_layers=60, memory=None)
    solution = decided(given, 4, 2, 2)
    start = pictures(given, solution)[0]
    assert start.end == pytest.approx(40)  # G2: two layers end at 40
    attention = [span.label for span in start.tracks[0].spans]
    assert attention[:8] == list("01AB01AB")
    assert attention[8:] == ["0"]  # the third layer's first, from 36 on


def test_an_end_that_is_unlike_the_rest_has_its_own_picture() -> None:
    given = problem(num_layers=8, memory=None)
    solution = decided(given, 4, 2, 2)
    layers = list(expand(solution.timeline, 8))
    assert [picture.title.split(",")[0] for picture in pictures(given, solution)] == ["start", "steady"]
    written = Written(
        prologue=solution.timeline.prologue, steady=solution.timeline.steady, epilogue=(layers[6], layers[7])
    )
    end = pictures(given, solution.model_copy(update={"timeline": written}))[-1]
    assert end.title == "end, layers 7 to 8"
    assert end.end == pytest.approx(solution.makespan_s - min(layers[6].attention))
    assert sum(span.kind == "attention" for span in end.tracks[0].spans) == 4


def test_numbers_of_micro_batches_come_round() -> None:
    given = problem(memory=None, search={"max_m_a": 1, "max_r1": 64, "max_r2": 1})
    (picture,) = pictures(given, decided(given, 1, 40, 1))
    labels = [span.label for span in picture.tracks[0].spans]
    assert "".join(labels[:40]) == "0123456789abcdefghijklmnopqrstuvwxyz0123"
    assert "".join(labels[40:80]) == "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMN"


def test_the_table_of_resources_adds_up_to_the_makespan() -> None:
    # G6, of 32 s: attention 2 x 2 x 4, shared 2 x 2 x 3, each link 2 x 4 x 2, experts 2 x 4 x 2.5.
    given = problem()
    assert tables(given, best(given))[0].rows == (
        ("AG", "attention", "4 s", "2", "50.0%", "12.5%"),
        ("", "shared expert", "3 s", "2", "37.5%", ""),
        ("A2E", "dispatch", "2 s", "4", "50.0%", "50.0%"),
        ("EG", "experts", "2.5 s", "4", "62.5%", "37.5%"),
        ("E2A", "combine", "2 s", "4", "50.0%", "50.0%"),
    )


@pytest.mark.parametrize("layers", [1, 2, 60])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_view_fits_eighty_columns_of_any_encoding(
    layers: int, encoding: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = problem(num_layers=layers)
    monkeypatch.setattr(type(sys.stdout), "encoding", encoding)
    print_view(presentation.view(given, best(given)))
    printed = capsys.readouterr().out
    printed.encode(encoding)
    assert max(map(len, printed.splitlines())) <= 80
    assert sum(line.startswith(("AG ", "A2E ", "EG ", "E2A ")) for line in printed.splitlines()) >= 4 + 4
