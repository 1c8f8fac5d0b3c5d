"""Stage times from step logs, decode steps and trainer timers: what is found again, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from bidirl_derived import derivation, derived, document

from planner.errors import BadInputError
from planner.papers.bidirl.costs.line_fit import fit_line
from planner.papers.bidirl.costs.straight import straight
from planner.papers.bidirl.measurements import StepRow
from planner.papers.bidirl.time_kinds import Fit, Lengths, Linear, Stages

ROW = {"replicas": 4, "time_s": 10.0}


def rows_of(alpha: float, beta: float, gamma: float) -> list[StepRow]:
    """Batches that take exactly alpha + beta w / d + gamma L."""
    settings = [(2, 1.0, 1000.0), (4, 1.2, 4000.0), (8, 0.8, 2000.0), (16, 1.1, 500.0), (4, 0.9, 3000.0)]
    return [
        StepRow(replicas=d, work_factor=w, max_response_tokens=L, time_s=alpha + beta * w / d + gamma * L)
        for d, w, L in settings
    ]


@pytest.mark.parametrize(("alpha", "beta", "gamma"), [(5.0, 240.0, 0.005), (0.0, 800.0, 0.01), (12.0, 100.0, 0.0)])
def test_coefficients_are_found_again(alpha: float, beta: float, gamma: float) -> None:
    line = fit_line(rows_of(alpha, beta, gamma), alpha_s=None, gamma_s_per_token=None, max_tokens=1.0, where="x")
    found = (line.time.alpha_s, line.time.beta_s, line.time.gamma_s_per_token)
    assert found == pytest.approx((alpha, beta, gamma), rel=1e-7, abs=1e-6)
    assert line.time.fit is not None
    assert line.time.fit.p90_error < 1e-6


def test_no_coefficient_is_negative() -> None:
    # Times that rise with replicas: the best line that never rises is flat, at their mean.
    rows = [StepRow(replicas=d, time_s=10.0 + d) for d in (1, 2, 3)]
    line = fit_line(rows, alpha_s=None, gamma_s_per_token=0.0, max_tokens=1.0, where="x")
    assert (line.time.alpha_s, line.time.beta_s) == (12.0, 0.0)


def test_a_given_coefficient_is_kept() -> None:
    # 10 + 40 / d at d = 1 and 2 gives 50 and 30; with 20 given, least squares of 30 and 10 on 1 and 1/2 is 28.
    rows = [StepRow(replicas=1, time_s=50.0), StepRow(replicas=2, time_s=30.0)]
    line = fit_line(rows, alpha_s=20.0, gamma_s_per_token=0.0, max_tokens=1.0, where="x")
    assert (line.time.alpha_s, line.time.beta_s) == (20.0, pytest.approx(28.0))
    assert line.errors == pytest.approx((-2 / 50, 4 / 30))


@pytest.mark.parametrize(
    ("replicas", "gamma", "said"),
    [
        ((1, 2, 1, 2), None, "rows of 2 counts of replicas do not tell alpha_s, beta_s and gamma_s_per_token apart"),
        ((1, 2, 4), None, "the 3 rows do not tell alpha_s and beta_s and gamma_s_per_token apart"),
        ((4, 4, 4), 0.0, "the 3 rows do not tell alpha_s and beta_s apart"),
    ],
)
def test_rows_that_tell_too_little_are_refused(replicas: tuple[int, ...], gamma: float | None, said: str) -> None:
    rows = [StepRow(replicas=d, max_response_tokens=100.0, time_s=10.0 / d) for d in replicas]
    with pytest.raises(BadInputError, match=said) as caught:
        fit_line(rows, alpha_s=None, gamma_s_per_token=gamma, max_tokens=1.0, where="derive.rollout.time")
    assert (caught.value.code, caught.value.where) == ("missing_field", "derive.rollout.time")


def test_a_line_through_one_amount_is_all_slope_and_through_none_all_base() -> None:
    one, none = straight([4, 4], [8.0, 8.0]), straight([0, 0], [3.0, 5.0])
    assert (one.base_s, one.slope_s) == (0.0, 2.0)
    assert (none.base_s, none.slope_s) == (4.0, 0.0)


def test_rows_of_a_role_alone_are_its_own() -> None:
    posed = document()
    log = posed["derive"]["train"]["time"]
    log["rows"] = [{**row, "role": "train"} for row in log["rows"]] + [{**ROW, "role": "rollout", "time_s": 1e6}]
    times = {layout.id: layout.time for layout in derived(posed).costs.train_layouts}
    assert times == {layout.id: layout.time for layout in derived(document()).costs.train_layouts}
    log["rows"] = [{**ROW, "role": "rollout"}]
    with pytest.raises(BadInputError, match="no rows of role train"):
        derived(posed)


def test_layouts_without_rows_are_left_out_or_take_the_same_gpu_seconds() -> None:
    posed = document()
    every = {layout.id: layout.time for layout in derived(posed).costs.train_layouts}
    assert set(every) == {"fsdp1", "fsdp2", "fsdp4", "fsdp8", "fsdp16"}
    four, eight = every["fsdp4"], every["fsdp8"]
    assert isinstance(four, Linear)
    assert isinstance(eight, Linear)
    assert (eight.alpha_s, eight.beta_s) == (four.alpha_s, pytest.approx(four.beta_s / 2))
    # Measured on 1 to 6 replicas of 4 GPUs, which is 4 to 24 GPUs: 1 to 3 replicas of 8.
    assert isinstance(eight.fit, Fit)
    assert (eight.fit.from_replicas, eight.fit.to_replicas) == (1, 3)
    posed["derive"]["train"]["time"]["unmeasured"] = "leave_out"
    problem = derived(posed)
    assert [layout.id for layout in problem.costs.train_layouts] == ["fsdp4"]
    assert set(problem.cautions or {}) == {"rollout_same_gpu_seconds"}


def test_rows_that_name_no_layout_are_of_the_smallest_that_fits() -> None:
    posed = document()
    train = posed["derive"]["train"]["time"]
    del train["layout"]
    train["unmeasured"] = "leave_out"
    # Of 80 GB a tenth is reserved; fsdp2 needs 94.6 GB, fsdp4 58.4 GB.
    assert [layout.id for layout in derived(posed).costs.train_layouts] == ["fsdp4"]
    train["rows"] = [{**row, "layout": "fsdp8"} for row in train["rows"]]
    assert [layout.id for layout in derived(posed).costs.train_layouts] == ["fsdp8"]
    train["rows"][0]["layout"] = "fsdp3"
    with pytest.raises(BadInputError, match=r"expected one of the candidates fsdp1, fsdp2, .*, got fsdp3") as caught:
        derived(posed)
    assert caught.value.code == "unknown_layout"


def decode(**fields: Any) -> dict[str, Any]:
    steps = [{"running": n, "time_s": 0.01 + 2e-4 * n} for n in (1, 16, 64)]
    prefills = [{"tokens": n, "time_s": 0.005 + 1e-5 * n} for n in (512, 4096)]
    told = {"kind": "decode", "layout": "tp2", "decode": {"rows": steps}, "prefill": {"rows": prefills}}
    return {**told, "alpha_s": 3.0, "mean_response_tokens": 2500.0, **fields}


def test_decode_steps_and_prefills_give_a_rollout_by_lengths() -> None:
    posed = document()
    posed["derive"]["rollout"]["time"] = decode()
    (layout,) = derived(posed).costs.rollout_layouts
    time = layout.time
    assert isinstance(time, Lengths)
    assert (time.alpha_s, time.prompt_tokens, time.concurrency, time.mean_response_tokens) == (3.0, 1024, 64, 2500)
    found = (time.step_base_s, time.step_per_sequence_s, time.prefill_s_per_token)
    assert found == pytest.approx((0.01, 2e-4, 1e-5), rel=1e-6)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"mean_response_tokens": None}, "needed where derive.responses is not given"),
        ({"mean_response_tokens": 9000.0}, "expected at most batch.max_response_tokens = 8,192, got 9000"),
        ({"prefill": None}, 'expected "prefill" or "prefill_s_per_token"'),
        ({"decode": {"rows": [{"running": 4, "time_s": 0.01}]}}, "at 2 numbers of running sequences at least"),
        ({"prefill": {"rows": [{"layout": "tp4", "tokens": 4, "time_s": 0.01}]}}, "no rows of prefills of tp2"),
        ({"decode": {}}, 'expected "rows" or "path", got neither'),
    ],
)
def test_decode_steps_that_tell_too_little_are_refused(fields: dict[str, Any], said: str) -> None:
    posed = document()
    posed["derive"]["rollout"]["time"] = decode(**fields)
    with pytest.raises(BadInputError, match=said):
        derived(posed)


def test_more_sequences_than_were_measured_are_worth_a_word() -> None:
    posed = document()
    posed["derive"]["rollout"] |= {"time": decode(), "concurrency": 65, "tp": [2, 4]}
    assert "at most 64 running sequences" in (derived(posed).cautions or {})["decode_beyond_rows"]


def test_timers_give_training_by_stages() -> None:
    posed = document()
    rows = [
        *({"stage": "update", "chunks": n, "time_s": 2.0 + 0.5 * n} for n in (8, 16, 32)),
        {"stage": "old_log_prob", "chunks": 16, "time_s": 4.0},
        *({"stage": "optimizer", "chunks": 0, "time_s": t} for t in (0.7, 0.9)),
    ]
    posed["derive"]["train"]["time"] = {
        "kind": "timers",
        "layout": "fsdp4",
        "timers": {"rows": rows},
        "chunks": {"old_log_prob": 128},
    }
    problem = derived(posed)
    (layout,) = problem.costs.train_layouts
    assert isinstance(layout.time, Stages)
    found = {stage.name: (stage.fixed_s, stage.chunks, stage.chunk_s) for stage in layout.time.stages}
    assert found["update"] == (pytest.approx(2.0), 256, pytest.approx(0.5))
    assert found["old_log_prob"] == (0.0, 128, pytest.approx(0.25))
    assert found["optimizer"] == (pytest.approx(0.8), 0, 0.0)
    assert "old_log_prob" in (problem.cautions or {})["stages_without_fixed"]
    posed["derive"]["train"]["time"]["chunks"] = {"upate": 3}
    with pytest.raises(BadInputError, match=r"expected stages that there are timers of, .*, got upate"):
        derived(posed)


def test_a_poor_line_is_worth_a_word() -> None:
    posed = document()
    # 2 s whatever the chunks, then 8 s: the line through them is off by far more than a fifth.
    rows = [{"stage": "update", "chunks": n, "time_s": t} for n, t in ((1, 2.0), (2, 8.0), (3, 2.0), (4, 8.0))]
    posed["derive"]["train"]["time"] = {"kind": "timers", "layout": "fsdp4", "timers": {"rows": rows}}
    found = derivation(posed)
    assert "update (fsdp4)" in (found.problem.cautions or {})["stage_fit_poor"]
    assert found.cost_error is not None
    assert found.cost_error["p90"] > 0.2
    posed["derive"]["train"]["time"]["timers"]["rows"] = [{**row, "time_s": 2.0 * row["chunks"]} for row in rows]
    assert "stage_fit_poor" not in (derived(posed).cautions or {})


def test_stated_times_are_kept_and_name_candidates() -> None:
    posed = document()
    stated = {"kind": "linear", "alpha_s": 1.0, "beta_s": 100.0}
    posed["derive"]["rollout"]["time"] = {"kind": "stated", "times": {"tp2": stated}}
    (layout,) = derived(posed).costs.rollout_layouts
    assert layout.time == Linear(alpha_s=1.0, beta_s=100.0)
    posed["derive"]["rollout"]["time"]["times"]["tp3"] = stated
    with pytest.raises(BadInputError, match="got tp3"):
        derived(posed)
