"""What a plan of Janus shows: shares, memory by cause, warnings, summary, why alternatives lose, the day in bars."""

from __future__ import annotations

import functools
import json
import math
from typing import Any

import pytest
from janus_cases import const, j, over_series, problem_of, scaled, series
from janus_experts_cases import placement_document

from planner.beside import Beside
from planner.papers.janus import pictures, presentation
from planner.papers.janus.arrivals import settings_digest
from planner.papers.janus.attach import attach
from planner.papers.janus.cautions import warnings
from planner.papers.janus.engines import solve
from planner.papers.janus.options import options
from planner.papers.janus.placing import solve_placement
from planner.papers.janus.problem import Arrivals, JanusProblem, PlacementProblem, ScalingProblem
from planner.papers.janus.shown.fewer import why_not_fewer
from planner.papers.janus.shown.near import near_table
from planner.papers.janus.shown.scaling import why_it_loses
from planner.papers.janus.shown.words import clock
from planner.papers.janus.solution import Alternative
from planner.papers.janus.summaries import summary
from planner.validation import validate
from planner.view import Bars, Table
from solvers.report import Limits

MEASURED, MODELLED = ({"sources": {name: 1.0}} for name in ("measured", "modelled"))
TRACED: dict[str, Any] = {
    "a_max": {"kind": "routing", "batch_grid": [1, 4, 16, 64]},
    "layers": [{"layer_id": 3, "routing": {"kind": "zipf", "tokens_per_rank": 1024, "exponent": 0.8, "seed": 1}}],
}


def shown(document: dict[str, Any]) -> tuple[Any, Any]:
    """Problem with its files read, and solution."""
    return _shown(json.dumps(document))


@functools.cache
def _shown(text: str) -> tuple[Any, Any]:
    problem = attach(validate(JanusProblem, json.loads(text)).sorted(), Beside(".")).problem
    return problem, solve(problem, None, Limits())[0]


def codes(document: dict[str, Any]) -> list[str]:
    return [warned.code for warned in warnings(*shown(document))]


def bars(document: dict[str, Any], title: str) -> Bars:
    return next(
        part for part in pictures.view(*shown(document)).sections if isinstance(part, Bars) and title in part.title
    )


def table(document: dict[str, Any], title: str) -> Table:
    return next(
        part for part in pictures.view(*shown(document)).sections if isinstance(part, Table) and title in part.title
    )


def placement(**changes: Any) -> dict[str, Any]:
    return placement_document(**changes)


# --- units, shares, memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "unit"),
    [
        (j(), "GPUs"),
        (series([100.0]), "GPU-hours"),
        (j(prices={"attention_per_hour": 1.0, "expert_per_hour": 2.0}, price_unit="EUR"), "EUR/h"),
        (series([100.0], prices={"attention_per_hour": 1.0, "expert_per_hour": 2.0}), "USD"),
        (j(devices=[{"id": "x", "prices": {"attention_per_hour": 1.0, "expert_per_hour": 2.0}}]), "USD/h"),
        (placement(), "co-activations"),
    ],
)
def test_the_unit_is_that_of_the_task_and_of_prices(document: dict[str, Any], unit: str) -> None:
    assert presentation.unit(validate(JanusProblem, document)) == unit


def test_shares_are_parts_of_a_tokens_time() -> None:
    # J4: 377.69 us of attention, 1557.90 of experts and 162.69 of exchange in a layer, 2098.29 together.
    problem, solution = shown(
        j(attention={"floor_s": 2e-4, "per_request_s": 1e-5, "per_cached_token_s": 2e-8, **MEASURED},
          moe={"per_expert_s": 5e-4, "base_s": 1e-4, **MODELLED})
    )  # fmt: skip
    found = presentation.shares(problem, solution)
    assert found == {
        "measured": pytest.approx(0.3776914810 / 2.0982860055),
        "interpolated": 0.0,
        "modelled": pytest.approx(1.5579049047 / 2.0982860055),
        "stated": pytest.approx(0.1626896898 / 2.0982860055),
    }


def test_shares_of_a_series_are_means_over_gpu_hours() -> None:
    """Times of a layer that are other in each interval: 1 of 5 parts of 5 GPU-hours and so on, by hand."""
    document = series([100.0, 600.0], moe={"per_expert_s": 5e-4, "base_s": 1e-4, **MEASURED})
    problem, solution = shown(document)
    parts, hours = [], []
    for demand, pools in zip([100.0, 600.0], solution.intervals, strict=True):
        alone = scaled(j(demand_tokens_per_s=demand))
        assert alone.total_instances == pools.attention_instances + pools.expert_instances
        layer = alone.layer
        parts.append(layer.moe_s / (layer.attention_s + layer.moe_s + layer.comm_s))
        hours.append(alone.total_instances)
    expected = sum(part * hour for part, hour in zip(parts, hours, strict=True)) / sum(hours)
    assert presentation.shares(problem, solution)["measured"] == pytest.approx(expected)


def test_a_placement_is_stated_alone() -> None:
    assert presentation.shares(*shown(placement())) == {
        "measured": 0.0, "interpolated": 0.0, "modelled": 0.0, "stated": 1.0,
    }  # fmt: skip


def test_memory_is_told_by_cause_and_sums_to_what_the_plan_states() -> None:
    causes = {"weights": 6e9, "reserve": 4e9}
    problem, solution = shown(j(memory={"attention_fixed_bytes": causes, "activation_bytes_per_request": 1e6}))
    rows = {row.cause: row.bytes for row in presentation.memory(problem, solution)}
    # 12.59 requests are 13, of 1,000 tokens of 1 MB each.
    assert rows == {"weights": 6e9, "reserve": 4e9, "kv_cache": 13e9, "activations": 13e6}
    assert sum(rows.values()) == solution.attention_memory_bytes


def test_memory_of_a_series_is_that_of_its_fullest_instance() -> None:
    problem, solution = shown(series([100.0, 600.0, 1500.0]))
    total = sum(row.bytes for row in presentation.memory(problem, solution))
    alone = [scaled(j(demand_tokens_per_s=demand)).attention_memory_bytes or 0.0 for demand in (100.0, 600.0, 1500.0)]
    assert total == max(alone) == 26e9
    assert alone.index(total) == 2


@pytest.mark.parametrize("document", [j(memory=None), placement()])
def test_without_memory_there_are_no_rows(document: dict[str, Any]) -> None:
    assert presentation.memory(*shown(document)) == []


# --- warnings -----------------------------------------------------------------------------------------------------


def test_the_pages_example_warns_of_nothing() -> None:
    assert codes(j()) == []
    assert codes(placement()) == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        # The plan takes 20.98286 ms: within 1 % of 21.
        ({"slo_tpot_s": 0.021}, "near_slo"),
        # 23 GB of 27 are 85.2 %, of 27.1 are 84.9 %.
        ({"memory": {"capacity_bytes": 2.7e10}}, "near_capacity"),
        ({"moe": {"holds_to_batch": 12.0}}, "beyond_memory_bound"),
        ({"attention": {"cautions": {"poor_fit": "far off"}}}, "poor_fit"),
        ({"demand_tokens_per_s": 10.0}, "one_request"),
        ({"a_max": {"kind": "balanced_bound", "batch_grid": [1, 4, 64]}, "slo_tpot_s": 0.04}, "bound_used"),
        ({"a_max": {"kind": "printed_bound", "batch_grid": [1, 4, 64]}, "slo_tpot_s": 0.04}, "bound_used"),
        # C = 20 > E = 16.
        ({"slots_per_instance": 20, "a_max": {"expert_instances": [1, 2, 8]}}, "spare_slots"),
        # Four GPUs of one pool, whose exchange takes nothing, are in time at 23.5 ms, where the pools are 7.
        ({"baselines": {"monolithic": {"allowed_gpus": [4], "comm_s": 0.0, "expert_bytes": 4e9}}, "slo_tpot_s": 0.0235},
         "one_pool_smaller"),
    ],
)  # fmt: skip
def test_each_warning_comes_of_its_cause(changes: dict[str, Any], code: str) -> None:
    assert code in codes(j(**changes))


def test_warnings_stop_at_their_thresholds() -> None:
    assert "near_slo" not in codes(j(slo_tpot_s=0.0213))
    assert "near_capacity" not in codes(j(memory={"capacity_bytes": 2.71e10}))
    assert "beyond_memory_bound" not in codes(j(moe={"holds_to_batch": 13.0}))
    one_pool = {"monolithic": {"allowed_gpus": [8], "comm_s": 3e-4, "expert_bytes": 4e9}}
    assert "one_pool_smaller" not in codes(j(baselines=one_pool))


def test_a_row_of_fewer_instances_is_said_to_stand_in() -> None:
    # Rows of 4 and 5 instances; 6 slots of 16 experts would take 3 instances, limits leave 8: at C = 2 it takes 8.
    rows = {"expert_instances": [4, 6], "values": [[1.5, 3.0, 4.5, 5.0], [1.3, 1.8, 2.4, 2.7]]}
    assert "beyond_the_table" in codes(j(a_max=rows, slots_per_instance=2))
    assert "beyond_the_table" not in codes(j(a_max=rows))


def test_tables_of_drawn_tokens_and_few_windows_say_so() -> None:
    # 1,024 tokens are 64 windows of 16 but 16 of 64; 127 tokens are 7 of 16. One of ten layers is traced.
    assert codes(j(**TRACED)) == ["drawn_tokens", "few_layers_traced"]
    short = {"kind": "zipf", "tokens_per_rank": 127, "exponent": 0.8, "seed": 1}
    assert codes(j(**TRACED | {"layers": [{"layer_id": 3, "routing": short}]}))[:2] == ["few_windows", "drawn_tokens"]
    assert "few_layers_traced" not in codes(j(num_layers=1, slo_tpot_s=0.0022, **TRACED))
    real = {"kind": "mask", "source_rank": [0] * 256, "expert_ids": [[t % 16, (t * 7 + 3) % 16] for t in range(256)]}
    assert "drawn_tokens" not in codes(j(**TRACED | {"layers": [{"layer_id": 3, "routing": real}]}))


def read_arrivals(**given: float) -> dict[str, Any]:
    """Arrivals as a plan keeps them, whose series was read."""
    told = validate(Arrivals, {"path": "t.csv", "sha256": "0" * 64, "requests": 5} | given)
    kept: dict[str, Any] = told.model_copy(update={"settings_sha256": settings_digest(told)}).model_dump()
    return kept


def test_a_context_shorter_than_the_traces_is_warned_of() -> None:
    given = read_arrivals(mean_context_tokens=1200.0)
    assert "context_shorter" in codes(series([100.0], arrivals=given))
    assert "context_shorter" not in codes(series([100.0], arrivals=given, context_tokens=1200))
    assert "context_shorter" not in codes(series([100.0], arrivals=given | {"mean_context_tokens": None}))


def test_a_series_whose_one_pool_is_cheaper_says_so() -> None:
    told = {"monolithic": {"allowed_gpus": [2, 4], "comm_s": 0.0, "expert_bytes": 4e9}}
    assert "one_pool_smaller" in codes(series([100.0], slo_tpot_s=0.03, baselines=told))


def test_spare_slots_of_a_placement_are_warned_of() -> None:
    assert codes(placement(slots_per_instance=6)) == ["spare_slots"]


# --- why others lose, what lies near ------------------------------------------------------------------------------


def other(**changes: Any) -> Alternative:
    plan = {"attention_instances": 2, "expert_instances": 6, "objective": 8.0, "batch": 10.0, "tpot_s": 0.02}
    return Alternative(**plan | changes)


PRICED = {"prices": {"attention_per_hour": 1.0, "expert_per_hour": 1.0}}


@pytest.mark.parametrize(
    ("document", "changes", "why"),
    [
        (j(), {"attention_instances": 3, "objective": 9.0}, "1 GPU more"),
        (j(), {"attention_instances": 4, "objective": 10.0, "tpot_s": 0.01}, "2 GPUs more, though 50.0% faster"),
        (j(), {"tpot_s": 0.0202}, "same GPUs, a token 1.00% slower"),
        (j(), {"attention_instances": 3, "expert_instances": 5},
         "same GPUs and time, more attention instances, which hold state"),
        (j(), {"device": "z"}, "same in all, the later device by name"),
        (j(**PRICED), {"objective": 9.5}, "costs 1.5 USD/h more"),
        (j(**PRICED), {"attention_instances": 3}, "same price, 1 GPU more"),
        (j(**PRICED), {"tpot_s": 0.0202}, "same price and GPUs, a token 1.00% slower"),
    ],
)  # fmt: skip
def test_an_alternative_loses_by_the_first_rule_that_tells_them_apart(
    document: dict[str, Any], changes: dict[str, Any], why: str
) -> None:
    problem = validate(JanusProblem, document)
    assert isinstance(problem, ScalingProblem)
    assert why_it_loses(problem, other(), other(**changes)) == why


def test_the_alternatives_of_j_are_shown_with_why_each_loses() -> None:
    rows = table(j(), "best first").rows
    assert [row[0] for row in rows] == ["1A6E", "2A6E", "1A7E", "1A8E", "2A7E", "3A6E"]
    assert rows[0][-1] == "the plan"
    # 18.727 of 20.983 ms are 10.8 % less.
    assert rows[1][-1] == "1 GPU more, though 10.8% faster"
    assert rows[2][-1] == "1 GPU more"


def test_pools_near_the_plan_are_in_time_or_say_what_they_miss() -> None:
    def cells(document: dict[str, Any]) -> dict[tuple[str, str], str]:
        problem, solution = shown(document)
        found = near_table(problem, solution)
        return {
            (row[0], name): cell for row in found.rows for name, cell in zip(found.columns[1:], row[1:], strict=True)
        }

    near = cells(j())
    assert near["1A", "6E"] == "20.98 ms *"
    assert near["2A", "6E"] == "18.73 ms"
    assert near["2A", "4E"] == "27.61 ms late"
    assert ("0A", "6E") not in near
    # J5: at 30.66 ms the plan is 1A4E, three instances have too few slots.
    assert cells(j(slo_tpot_s=0.0307))["1A", "3E"] == "no slots"
    assert cells(j(limits={"max_total_instances": 8}))["2A", "7E"] == "limits"
    # One instance holds 13 requests, 23 GB; two hold 6, 16 GB.
    assert cells(j(memory={"capacity_bytes": 2.2e10}))["1A", "6E"] == "no memory"
    assert cells(j(launcher_rules="vllm_afd", slo_tpot_s=0.03))["3A", "4E"] == "rules"
    short = {"batch_grid": [1, 4, 13], "values": [[1.5, 3.0, 4.5], [1.3, 2.2, 3.2], [1.2, 1.8, 2.4]]}
    assert cells(j(a_max=short))["1A", "4E"] == "past grid"


def test_why_fewer_gpus_are_too_few() -> None:
    def why(document: dict[str, Any]) -> str:
        problem, solution = shown(document)
        return why_not_fewer(options(problem), solution.total_instances, problem.demand_tokens_per_s)

    # J4: 27.61339 ms are the best of at most 6.
    assert why(j()) == "the fastest pools of up to 6, 2A4E, take 27.61 ms a token"
    assert why(j(slo_tpot_s=0.04)) == "5 are the fewest that hold all experts beside an attention instance"
    # 1A6E are in time but need 23 GB.
    assert why(j(memory={"capacity_bytes": 2.2e10})) == (
        "pools of up to 7 that make tokens in time, such as 1A6E, lack the memory"
    )
    short = {"batch_grid": [1, 4, 13], "values": [[1.5, 3.0, 4.5], [1.3, 2.2, 3.2], [1.2, 1.8, 2.4]]}
    # On this grid 2A6E keep 12.2 requests in flight, and with fewer GPUs none stay below its end, 13.
    assert why(j(a_max=short)) == "no allowed pools of up to 7 reach a steady batch within batch_grid"


# --- pictures, summary, decisions ---------------------------------------------------------------------------------


def test_bars_of_a_token_add_up_to_its_time_and_mark_the_slo() -> None:
    drawn = bars(j(), "output token")
    solution = scaled(j())
    assert drawn.limit == 0.022
    for bar, one in zip(drawn.bars, solution.alternatives, strict=True):
        assert math.fsum(segment.amount for segment in bar.segments) == pytest.approx(one.tpot_s)


@pytest.mark.parametrize("intervals", [3, 32, 33, 100])
def test_a_day_of_any_length_is_at_most_32_bars_that_hold_its_gpu_hours(intervals: int) -> None:
    demands = [100.0 + 14.0 * (place * 37 % 100) for place in range(intervals)]
    document = series(demands)
    drawn = bars(document, "GPUs")
    each = -(-intervals // 32)
    assert len(drawn.bars) == -(-intervals // each) <= 32
    lengths = [min(each, intervals - start) for start in range(0, intervals, each)]
    hours = sum(
        length * sum(segment.amount for segment in bar.segments)
        for bar, length in zip(drawn.bars, lengths, strict=True)
    )
    solution = over_series(document)
    assert hours == pytest.approx(solution.gpu_hours)
    assert drawn.limit == max(pool.attention_instances + pool.expert_instances for pool in solution.intervals)


def test_gpu_hours_stand_beside_the_baselines() -> None:
    told = {"monolithic": {"allowed_gpus": [2, 4, 8, 16], "comm_s": 3e-4, "expert_bytes": 4e9}}
    drawn = bars(series([100.0, 600.0, 1500.0], baselines=told), "GPU-hours")
    # The page: 5 + 7 + 10, three hours of 10, and one pool of 8 in each hour.
    amounts = {bar.label: bar.segments[0].amount for bar in drawn.bars}
    assert amounts == {"plan": 22.0, "peak all day": 30.0, "one pool": 24.0}
    assert [bar.note for bar in drawn.bars] == ["22", "30 (+36.4%)", "24 (+9.1%)"]


def test_pools_used_are_told_with_their_hours() -> None:
    rows = table(series([100.0, 600.0, 120.0], [2.0, 1.0, 0.5]), "pools used").rows
    assert [row[:4] for row in rows] == [
        ("1A4E", "5", "2.5", "120 tokens/s"),
        ("1A6E", "7", "1", "600 tokens/s"),
    ]


def test_a_placement_shows_what_instances_hold_and_carry() -> None:
    # J11: [0, 1, 4] has w(0, 1) = 5; [1, 2, 3] has w(1, 2) + w(2, 3) = 6. Half of the 9 tokens of expert 1 on each.
    drawn = bars(placement(), "together")
    assert [bar.segments[0].amount for bar in drawn.bars] == [5.0, 6.0]
    rows = table(placement(), "instances").rows
    assert rows[0] == ("0", "3 of 3", "13.5", "0.900", "5", "0, 1, 4")
    assert rows[1] == ("1", "3 of 3", "16.5", "1.100", "6", "1, 2, 3")
    assert table(placement(), "copies").rows == (("1", "2", "9", "0, 1"),)
    assert table(placement(), "batches").rows == (("0", "2", "4", "2", "2"),)


def test_a_summary_has_eight_lines_at_most_and_names_the_source_of_a_max() -> None:
    lines = summary(*shown(j(**TRACED)))
    assert len(lines) <= 8
    # 12.67 requests lie between 4, of which there are 256 windows, and 16, of which there are 64.
    assert any("table from 64 windows (mean)" in line for line in lines)
    bound = summary(*shown(j(a_max={"kind": "balanced_bound", "batch_grid": [1, 4, 64]}, slo_tpot_s=0.04)))
    assert any(line.endswith("balanced bound") for line in bound)
    assert any(line.endswith("table as stated") for line in summary(*shown(j())))
    given = read_arrivals(tile_to_s=7200.0, scale=3.0)
    whole = summary(*shown(series([100.0, 600.0], arrivals=given, **TRACED)))
    assert len(whole) <= 8
    assert "arrivals: 5 requests of t.csv, repeated over 2 h, demand times 3" in whole


def test_decisions_are_what_a_launcher_is_told() -> None:
    assert presentation.decisions(scaled(j())) == {"attention_instances": 1, "expert_instances": 6}
    _, solution = shown(j(devices=[{"id": "only"}]))
    assert presentation.decisions(solution)["device"] == "only"
    told = presentation.decisions(over_series(series([100.0, 600.0])))
    assert told == {
        "intervals": {
            "0": {"attention_instances": 1, "expert_instances": 4},
            "1": {"attention_instances": 1, "expert_instances": 6},
        }
    }


def test_experts_are_told_in_words_by_layer_and_pool() -> None:
    problem = validate(JanusProblem, placement())
    assert isinstance(problem, PlacementProblem)
    solution, _ = solve_placement(problem, None, Limits())
    assert presentation.decisions(solution) == {
        "experts": {
            "0": "instance 0", "1": "instances 0, 1", "2": "instance 1", "3": "instance 1", "4": "instance 0",
        }
    }  # fmt: skip
    _, traced = shown(j(**TRACED))
    maps = presentation.decisions(traced)["expert_maps"]
    assert isinstance(maps, dict)
    assert list(maps) == [str(traced.expert_instances)]
    assert len(maps[str(traced.expert_instances)]["3"]) == 16


def test_metrics_are_figures_of_the_solution() -> None:
    solution = scaled(j())
    found = presentation.metrics(solution)
    assert found["tpot_s"] == solution.tpot_s
    assert found["objective"] == 7
    day = presentation.metrics(over_series(series([100.0, 600.0, 1500.0])))
    assert (day["gpu_hours"], day["fewest_instances"], day["most_instances"]) == (22.0, 5, 10)


def test_the_solution_of_another_task_has_no_view() -> None:
    with pytest.raises(TypeError, match="no solution of this task"):
        pictures.view(problem_of(j()), over_series(series([100.0])))


def test_a_constant_exchange_says_nothing_of_nodes() -> None:
    document = const(1e-3, 5e-4, [1, 20, 80], [4.0, 4.0, 4.0], 200.0)
    assert {row[2] for row in table(document, "pools").rows} == {"-"}


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "00:00"), (5400, "01:30"), (90_000, "1d 01:00"), (86_400, "1d 00:00"), (75, "00:01:15"), (59.6, "00:01")],
)
def test_times_of_a_series_are_told_by_the_clock(seconds: float, said: str) -> None:
    assert clock(seconds) == said
