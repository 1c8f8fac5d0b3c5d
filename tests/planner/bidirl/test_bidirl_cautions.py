"""What a plan warns of, and when it does not."""

from __future__ import annotations

from typing import Any

from bidirl_cases import layout, linear, problem

from planner.papers.bidirl.cautions import FIRST, LAST, warnings
from planner.papers.bidirl.engines import solve
from solvers.report import Limits

ROLLOUT, TRAIN = "costs__rollout_layouts", "costs__train_layouts"
LENGTHS = {
    "kind": "lengths",
    "prompt_tokens": 100,
    "prefill_s_per_token": 0.0,
    "mean_response_tokens": 500.0,
    "concurrency": 64,
    "step_base_s": 0.01,
    "step_per_sequence_s": 0.001,
}


def warned(**changes: Any) -> dict[str, str]:
    """Messages by code, in order, of the page's problem with other values."""
    given = problem(**changes)
    found = warnings(given, solve(given, None, Limits())[0])
    assert len({one.code for one in found}) == len(found)
    assert all("\n" not in one.message and len(one.message) < 400 for one in found)
    return {one.code: one.message for one in found}


def fitted(low: int, high: int, p90: float) -> dict[str, Any]:
    fit = {"rows": 3, "from_replicas": low, "to_replicas": high, "median_error": 0.1, "p90_error": p90}
    return {ROLLOUT: [layout("tp2", 2, linear(10, 400) | {"fit": fit})]}


def table(*times_s: float) -> dict[str, Any]:
    time = {"kind": "table", "replicas": list(range(1, len(times_s) + 1)), "time_s": list(times_s)}
    return {TRAIN: [layout("fsdp2", 2, time, 60e9)]}


def test_the_page_s_problem_warns_of_stale_batches_alone() -> None:
    assert list(warned()) == ["stale_batches"]
    assert warned()["stale_batches"].startswith("batches are up to 1 version old")


def test_gigabytes_and_milliseconds_are_doubted() -> None:
    """60 for 60 GB; a rollout of at best 10 + 400,000 / 3 s beside a training of 310 s at 6 + 2 GPUs."""
    assert warned(**{TRAIN: [layout("fsdp2", 2, linear(10, 300), 60)]})["doubtful_unit"] == (
        '"fsdp2" holds 60 bytes: memory_bytes is in bytes'
    )
    found = warned(**{ROLLOUT: [layout("tp2", 2, linear(10, 400_000))]})
    assert found["doubtful_unit"].startswith("one role takes 133,343 s and the other 310 s")
    assert next(iter(found)) == "doubtful_unit"


def test_nothing_is_stale_on_policy_and_a_share_below_one() -> None:
    assert "stale_batches" not in warned(staleness=0.0, objective="period")
    assert warned(staleness=0.25, objective="period")["stale_batches"].startswith("25.00 % of a batch")


def test_the_slower_stage_says_little_where_the_stages_do_not_overlap() -> None:
    assert 'state objective "period"' in warned(staleness=0.5)["staleness_not_judged"]
    assert "staleness_not_judged" not in warned(staleness=0.5, objective="period")
    assert "staleness_not_judged" not in warned(staleness=1.0)


def test_a_fit_that_misses_its_rows_is_flagged() -> None:
    said = warned(**fitted(1, 4, 0.37))["poor_fit"]
    assert said.startswith("rollout times miss their 3 rows by 10.00 % in the median and 37.00 % at p90")
    assert "poor_fit" not in warned(**fitted(1, 4, 0.2))


def test_replicas_outside_the_measured_range_are_extrapolated() -> None:
    """4+4 GPUs: two replicas of rollout."""
    assert warned(**fitted(4, 8, 0.1))["extrapolated"].startswith("rollout on 2 replicas is priced by rows of 4 to 8")
    assert "extrapolated" in warned(**fitted(1, 1, 0.1))
    assert "extrapolated" not in warned(**fitted(2, 2, 0.1))


def test_a_layout_that_nearly_fills_what_it_may_is_named() -> None:
    """72 GB may be filled, nine tenths of them are 64.8."""
    said = warned(**{TRAIN: [layout("fsdp2", 2, linear(10, 300), 65e9)]})["near_capacity"]
    assert said.startswith('"fsdp2" holds 65 GB of the 72 GB that a GPU may fill:')
    assert "near_capacity" not in warned(**{TRAIN: [layout("fsdp2", 2, linear(10, 300), 64e9)]})
    full = warned(**{TRAIN: [layout("fsdp2", 2, linear(10, 300), 75e9)]}, cluster__memory_reserve_fraction=0.0)
    assert "with nothing reserved" in full["near_capacity"]


def test_a_table_that_rises_is_named_with_its_first_rise() -> None:
    said = warned(**table(310.0, 160.0, 170.0))["table_not_falling"]
    assert said.startswith('train "fsdp2" takes 170 s on 3 and 160 s on 2 replicas:')
    assert "table_not_falling" not in warned(**table(310.0, 160.0, 160.0))


def test_a_longest_response_that_rules_the_rollout_is_named() -> None:
    """6+2 GPUs: 10 + 400/3 + 2048 gamma; the last is 122.88 of 266.21 s at 0.06, 163.84 of 307.17 s at 0.08."""
    assert "tail_dominated" not in warned(**{ROLLOUT: [layout("tp2", 2, linear(10, 400, 0.06))]})
    said = warned(**{ROLLOUT: [layout("tp2", 2, linear(10, 400, 0.08))]})["tail_dominated"]
    assert said.startswith("the longest response is 53.34 % of the rollout")


def test_decode_steps_of_the_longest_response_are_compared_with_those_of_the_work() -> None:
    """64 groups of 8 on 2 or more replicas: at most 256 sequences in 4 rounds of 500 steps, below 2048."""
    said = warned(**{ROLLOUT: [layout("tp2", 2, LENGTHS)]})["tail_dominated"]
    assert "the longest response takes 2,048 decode steps, the work of a replica" in said
    many = LENGTHS | {"concurrency": 1}
    assert "tail_dominated" not in warned(**{ROLLOUT: [layout("tp2", 2, many)]})


def test_groups_that_replicas_cannot_share_alike_are_counted() -> None:
    """5 groups on 2 replicas: 3 on the fullest, 20 % above 2.5."""
    few = {ROLLOUT: [layout("tp2", 2, LENGTHS)], TRAIN: [layout("fsdp4", 4, linear(10, 300))]}
    said = warned(batch__prompt_groups=5, **few)["uneven_replicas"]
    assert said.startswith("5 groups on 2 replicas: the fullest has 3, 20.00 % above the mean")
    assert "uneven_replicas" not in warned(batch__prompt_groups=4, **few)
    assert "uneven_replicas" not in warned(batch__prompt_groups=5)


def test_a_direction_that_never_pays_limits_the_splits_for_nothing() -> None:
    dear = {"rollout_on_train": {"in_s": 500, "out_s": 0}, "train_on_rollout": {"in_s": 1, "out_s": 1, "grad_s": 0}}
    said = warned(costs__switch=dear)["lending_never_pays"]
    assert said.startswith("rollout_on_train: no backlog")
    off = {"rollout_on_train": False, "train_on_rollout": False}
    assert "lending_never_pays" not in warned(costs__switch=dear, hot_switch=off)


def test_a_policy_that_the_plan_does_not_follow_and_that_is_faster_is_named() -> None:
    """Free switches between the roles: all GPUs in turn take 10 + 100 + 10 + 75 = 195 s a step."""
    said = warned(costs__colocated_switch_s=0.0)["faster_policy"]
    assert said.startswith("colocated ends the replay after 3900 s, rollout_on_train at this split after 3957 s")
    assert "faster_policy" not in warned(costs__colocated_switch_s=6.0)


def test_a_run_that_only_fills_and_drains_says_so() -> None:
    assert warned(simulation={"steps": 2})["short_run"].startswith("2 replayed steps only fill and drain")
    assert "short_run" not in warned(simulation={"steps": 3})


def test_what_the_prices_say_stands_between_what_is_worse_and_what_is_not() -> None:
    cautions = {"rows_guessed": "one row was guessed"}
    assert list(warned(cautions=cautions, staleness=0.5)) == ["staleness_not_judged", "rows_guessed", "stale_batches"]
    assert warned(cautions={"poor_fit": "by others"}, **fitted(1, 4, 0.5))["poor_fit"] == "by others"


def test_codes_stand_in_one_order() -> None:
    assert not set(FIRST) & set(LAST)
