"""``plan check --against``: step times of others' logs, format by format, and what is said of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.errors import BadInputError
from planner.measured import summarize
from planner.steps.lines import StepTimes
from planner.steps.log import FORMATS, read_step_times

Run = Callable[..., Any]

MEGATRON = (
    "node-14:  iteration {step:8d}/       5 | consumed samples:         2048 | elapsed time per iteration (ms): {ms} |"
    " learning rate: 1.200E-07 | global batch size:  2048 | number of nan iterations:   0 |"
)
NEMO = "Training epoch 0, iteration {step}/99 | lr: 1e-07 | global_step: {step} | train_step_timing in s: {s} | loss: 2"
VERL = "(TaskRunner pid=1) step:{step} - actor/entropy:0.5 - timing_s/gen:1.5 - timing_s/step:{s} - perf/throughput:4"
NEMO_RL = "  • Total step time: {s}s"


def written(folder: Path, *lines: str, name: str = "train.log") -> str:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.fixture
def plan_file(problem: dict[str, Any], tmp_path: Path) -> str:
    """A plan of 4.5 s."""
    path = tmp_path / "plan.json"
    api.dump(api.solve(problem), str(path))
    return str(path)


# --- formats ------------------------------------------------------------------------------------------------------


LOGS = {
    "megatron": ("banner", MEGATRON.format(step=1, ms="2500.0"), "noise", MEGATRON.format(step=2, ms="1250.5")),
    "nemo": (NEMO.format(step=1, s="2.5"), NEMO.format(step=2, s="1.2505")),
    "nemo-rl": ("Step 1/2", NEMO_RL.format(s="2.5"), "  • policy_training: 1.2s (50.0%)", NEMO_RL.format(s="1.2505")),
    "verl": (VERL.format(step=1, s="2.5"), VERL.format(step=2, s="1.2505")),
    "jsonl": ('{"step": 1, "step_time_s": 2.5}', '{"val_loss": 3}', "", '{"step": 2, "step_time_s": 1.2505}'),
    "csv": ("step,loss,iteration_time (ms)", "1,2.0,2500", "2,1.9,1250.5"),
}


@pytest.mark.parametrize("form", FORMATS)
def test_each_format_gives_seconds_and_step_numbers(tmp_path: Path, form: str) -> None:
    times = read_step_times(written(tmp_path, *LOGS[form]))
    assert times.form == form
    assert times.step_s == pytest.approx((2.5, 1.2505))
    assert times.steps == ((None, None) if form == "nemo-rl" else (1, 2))


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("step_time_s", 2.0),
        ("step_time_ms", 0.002),
        ("train/step_time_seconds", 2.0),
        ("Step Time (ms)", 0.002),
        ("iter_time_us", 2e-6),
        ("elapsed_time_per_iteration_ms", 0.002),
        ("train_step_timing in s", 2.0),
        ("time_metrics/end_to_end(s)", 2.0),  # torchtitan
        ("perf/time_per_step", 2.0),  # verl: seconds, though it does not say so
        ("timing_s/step", 2.0),
    ],
)
def test_a_name_says_the_unit(tmp_path: Path, name: str, seconds: float) -> None:
    times = read_step_times(written(tmp_path, json.dumps({name: 2})))
    assert times.step_s == pytest.approx((seconds,))
    assert times.field == name
    assert read_step_times(written(tmp_path, f"loss,{name}", "1,2", name="a.csv")).step_s == pytest.approx((seconds,))


@pytest.mark.parametrize(
    "other", ["val/step_time_s", "eval/step_time_s", "valid_step_time_s", "metrics/test/step_time_s"]
)
def test_validation_steps_are_no_training_steps(plan: Run, plan_file: str, tmp_path: Path, other: str) -> None:
    train = {"train/step_time_s": 5}
    log = written(tmp_path, *map(json.dumps, ({other: 1}, {other: 1, **train}, train)))
    times = read_step_times(log)
    assert (times.field, times.step_s, times.without) == ("train/step_time_s", (5.0, 5.0), 1)
    assert "1 row without that time" in plan("check", plan_file, "--against", log).out
    csv = written(tmp_path, f"{other},step_time_s", "1,5", "1,", name="a.csv")
    assert (read_step_times(csv).step_s, read_step_times(csv).without) == ((5.0,), 1)


def test_two_names_of_one_time_are_one(tmp_path: Path) -> None:
    # verl writes both, from one clock.
    row = json.dumps({"timing_s/step": 161.07, "perf/time_per_step": 161.0701})
    assert read_step_times(written(tmp_path, row)).step_s == (161.07,)


def test_of_a_single_step_it_is_said_that_nothing_was_left_out(plan: Run, plan_file: str, tmp_path: Path) -> None:
    out = plan("check", plan_file, "--against", written(tmp_path, '{"step_time_s": 5}')).out
    assert "1 step, too few to leave a warm-up out" in out


def test_colours_progress_bars_and_broken_bytes_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    line = MEGATRON.format(step=1, ms="\x1b[32m2500.0\x1b[0m").encode()
    path.write_bytes(b" 50%|#####     |\r100%|##########|\r\n\xff\xfe\n" + line + b"\r\n")
    assert read_step_times(str(path)).step_s == (2.5,)


@pytest.mark.parametrize("first", ["{", "{'lr': 1e-4}", 'he said "a, b', "x" * 200_000 + ",y"])
def test_a_console_may_begin_with_anything(tmp_path: Path, first: str) -> None:
    times = read_step_times(written(tmp_path, "", first, "}", NEMO.format(step=1, s="2.5")))
    assert (times.form, times.step_s) == ("nemo", (2.5,))


def test_the_closing_list_of_nemo_is_no_step(tmp_path: Path) -> None:
    closing = "[NeMo I 2025-03-04 02:58:29 perf_metrics_utils:56] train_step_timing in s: [11.85, 6.98, 5.36]"
    assert read_step_times(written(tmp_path, NEMO.format(step=1, s="2.5"), closing)).step_s == (2.5,)


@pytest.mark.skipif("PLAN_REAL_DATA" not in os.environ, reason="PLAN_REAL_DATA is not set")
def test_a_real_log_of_megatron_deepspeed(plan: Run, plan_file: str) -> None:
    # grep "elapsed time" in the file: 76015.3, 75254.0, 75249.6, 75182.4, 74494.9 ms; the median of the last four.
    log = str(Path(os.environ["PLAN_REAL_DATA"]) / "memory_p2p" / "megatron_deepspeed.log")
    against = plan("check", plan_file, "--against", log, "--format", "json").document[0]["against"]
    assert (against["form"], against["measured"]["steps"], against["measured"]["warm_up"]) == ("megatron", 4, 1)
    assert against["measured"]["median_s"] == pytest.approx((75.2496 + 75.1824) / 2)


# --- traps --------------------------------------------------------------------------------------------------------


BAD = [
    (("hello", "world"), "missing_field", "holds no step time: expected the console log of Megatron"),
    ((), "missing_field", "holds no step time"),
    (('{"step": 1, "step_time": 2}',), "missing_field", 'line 1: "step_time" says no unit'),
    (("step,step_time", "1,2"), "missing_field", 'line 1: "step_time" says no unit'),
    (('{"step_time_s": 1}', "{oops"), "not_json", "line 2: the line is not JSON"),
    (('{"step_time_s": 1}', "[2]"), "wrong_type", "line 2: expected a JSON object"),
    (('{"step_time_s": "2"}',), "wrong_type", "line 1: expected a number"),
    (('{"step_time_s": true}',), "wrong_type", "line 1: expected a number"),
    (('{"step_time_s": NaN}',), "not_finite", "line 1: the line holds NaN"),
    (('{"step_time_s": 1, "step_time_s": 2}',), "duplicate_id", 'line 1: the line has the key "step_time_s" twice'),
    (('{"step_time_s": 0}',), "out_of_range", "line 1: expected a step time > 0, got 0"),
    ((MEGATRON.format(step=1, ms="nan"),), "not_finite", "line 1: nan is no step time"),
    ((MEGATRON.format(step=1, ms="-3.0"),), "out_of_range", "line 1: expected a step time > 0"),
    ((MEGATRON.format(step=1, ms="XXX.XX"),), "wrong_type", 'line 1: "XXX.XX" is no number'),
    (("step,step_time_s", "1,2", "2"), "wrong_type", "line 3: expected 2 columns, got 1"),
    (("step,step_time_s", "1,fast"), "wrong_type", 'line 2: "fast" is no number'),
    (("step,step_time_s", '1,"2'), "not_json", "line 2: not CSV"),
    (("step,step_time_s", "1,5_5"), "wrong_type", 'line 2: "5_5" is no number'),
    ((MEGATRON.format(step=1, ms="5_5"),), "wrong_type", '"5_5" is no number'),
    (("step;step_time_s", "1;5"), "wrong_type", "line 1: the columns are separated by semicolons"),
    (("step\tstep_time_s", "1\t5"), "wrong_type", "line 1: the columns are separated by tabs"),
    (("step_time_s,loss,step_time_s", "1,2,3"), "duplicate_id", 'line 1: two columns are called "step_time_s"'),
    (("loss,step_time_s,loss", "1,2,3"), "duplicate_id", 'line 1: two columns are called "loss"'),
    (
        ("step,step_time_s,iter_time_ms", "1,2,2000", "2,2,3000"),
        "out_of_range",
        'line 3: "step_time_s" says 2 s and "iter_time_ms" 3 s',
    ),
    (
        ('{"step_time_s": 2, "train/step_time_s": 2}', '{"step_time_s": 2, "train/step_time_s": 3}'),
        "out_of_range",
        'line 2: "step_time_s" says 2 s and "train/step_time_s" 3 s',
    ),
    (('{"val/step_time_s": 2}',), "missing_field", 'only validation step times ("val/step_time_s")'),
    (("step,eval_step_time_ms", "1,2"), "missing_field", 'only validation step times ("eval_step_time_ms")'),
    (('{"step": 1, "train": {"step_time_s": 2}}',), "missing_field", '"train.step_time_s" is in an object inside'),
    (('{"step_time_s": 1}', '{"a":' * 100_000), "too_large", "line 2: nested too deeply"),
    (('{"a":' * 100_000,), "too_large", "line 1: nested too deeply"),
    (("step,step_time_s", "1,1e308"), "out_of_range", "line 2: expected a step time from 1e-07 to 1e+07 s"),
    (('{"step_time_s": 1e-320}',), "out_of_range", "line 1: expected a step time from 1e-07 to 1e+07 s"),
    (('{"step_time_ms": 1e-5}',), "out_of_range", "line 1: expected a step time from 1e-07 to 1e+07 s, got 1e-08 s"),
    ((MEGATRON.format(step=1, ms="1e300"),), "out_of_range", "expected a step time from"),
    (
        ('{"step": 3, "step_time_s": 1}', '{"step": 2, "step_time_s": 1}', '{"step": 1, "step_time_s": 1}'),
        "out_of_range",
        "the step numbers go back 2 times",
    ),
    (("x" * (2**20 + 1),), "too_large", "line 1: longer than 1048576 characters"),
]


@pytest.mark.parametrize(("lines", "code", "message"), BAD)
def test_a_bad_log_is_refused_with_line_and_reason(
    plan: Run, plan_file: str, tmp_path: Path, lines: tuple[str, ...], code: str, message: str
) -> None:
    ran = plan("check", plan_file, "--against", written(tmp_path, *lines), "--error-format", "json")
    assert (ran.code, ran.out) == (2, "")
    assert (ran.error["code"], ran.error["where"]) == (code, "--against")
    assert message in ran.error["message"]


def test_a_csv_without_step_times_names_its_columns(tmp_path: Path) -> None:
    # What TensorBoard exports.
    with pytest.raises(BadInputError, match="no column of step times among Wall time, Step, Value"):
        read_step_times(written(tmp_path, "Wall time,Step,Value", "1.7e9,1,0.5", name="run.csv"))


def test_a_log_that_is_not_there(plan: Run, plan_file: str) -> None:
    ran = plan("check", plan_file, "--against", "nowhere.log")
    assert ran.code == 2
    assert "cannot read nowhere.log: No such file" in ran.err


def test_too_many_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.steps.lines.MAX_STEPS", 2)
    with pytest.raises(BadInputError, match="more than 2 steps"):
        read_step_times(written(tmp_path, *['{"step_time_s": 1}'] * 3))


# --- what is said -------------------------------------------------------------------------------------------------


def times(*step_s: float, steps: tuple[int | None, ...] | None = None) -> StepTimes:
    return StepTimes("jsonl", "step_time_s", step_s, steps or (None,) * len(step_s))


def test_a_tenth_of_the_steps_is_warm_up_at_least_one() -> None:
    # 20 steps: two left out, 18 of 1 s stay. The median of all is 1 s too.
    found = summarize(times(9.0, 5.0, *[1.0] * 18))
    assert (found.steps, found.warm_up, found.median_s, found.spikes) == (18, 2, 1.0, 0)
    # Three steps: one left out.
    found = summarize(times(9.0, 1.0, 2.0))
    assert (found.warm_up, found.median_s, found.median_with_warm_up_s) == (1, 1.5, 2.0)
    # Of a single step nothing can be left out.
    assert (summarize(times(9.0)).steps, summarize(times(9.0)).warm_up) == (1, 0)


def test_spikes_are_counted_and_leave_the_median_alone() -> None:
    found = summarize(times(1.0, *[1.0] * 8, 30.0))
    assert (found.median_s, found.spikes) == (1.0, 1)


def test_quantiles_are_interpolated() -> None:
    # After warm-up 1, 2, ... 11: p10 = 1 + 0.1 * 10 = 2, p90 = 10.
    found = summarize(times(99.0, *[float(value) for value in range(1, 12)]))
    assert (found.p10_s, found.median_s, found.p90_s) == (2.0, 6.0, 10.0)


def test_a_restart_warms_up_again() -> None:
    # Steps 1, 2, 3, then again from 3: the first of each run is warm-up.
    found = summarize(times(9.0, 1.0, 1.0, 8.0, 1.0, steps=(1, 2, 3, 3 - 1, 3)))
    assert (found.restarts, found.warm_up, found.steps, found.median_s) == (1, 2, 3, 1.0)


def test_of_a_step_that_several_ranks_print_the_longest_counts() -> None:
    found = summarize(times(5.0, 5.0, 1.0, 2.0, 1.0, 2.0, steps=(1, 1, 2, 2, 3, 3)))
    assert (found.repeats, found.steps, found.median_s) == (3, 2, 2.0)


def test_lines_that_stand_for_several_steps_are_said_to(plan: Run, plan_file: str, tmp_path: Path) -> None:
    log = written(tmp_path, *[MEGATRON.format(step=step, ms="4500.0") for step in (10, 20, 30)])
    assert "one line for every 10 steps" in plan("check", plan_file, "--against", log).out


def test_the_prediction_stands_beside_the_measurement(plan: Run, plan_file: str, tmp_path: Path) -> None:
    # 4.5 s predicted, 5 s measured: 10 % too short.
    log = written(tmp_path, *['{"step_time_s": 5.0}'] * 11)
    ran = plan("check", plan_file, "--against", log)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith(f"{plan_file}: ok, 4.5 s")
    assert lines[1] == f"  {log} (jsonl, step_time_s): 10 steps after 1 of warm-up"
    assert lines[2] == (
        "  predicted 4.5 s; measured 5 s in the median (p10 5 s, p90 5 s; 5 s with warm-up): "
        "the prediction is 10.00 % too short"
    )
    assert lines[3].startswith("  compared: the layers' products, attention and collectives of one step")
    assert "100% stated, not measured on the device" in lines[4]


def test_a_factor_of_a_thousand_is_asked_about(plan: Run, plan_file: str, tmp_path: Path) -> None:
    log = written(tmp_path, *['{"step_time_ms": 4.6}'] * 3)
    assert "is the log's time in the unit its name says?" in plan("check", plan_file, "--against", log).out


def test_a_refuted_plan_is_not_compared(plan: Run, plan_file: str, tmp_path: Path) -> None:
    document = json.loads(Path(plan_file).read_bytes())
    document["certificate"]["objective"] = 1.0
    Path(plan_file).write_text(json.dumps(document))
    log = written(tmp_path, '{"step_time_s": 5.0}')
    ran = plan("check", plan_file, "--against", log, "--format", "json")
    assert ran.code == 5
    assert "against" not in ran.document[0]


def test_a_paper_that_predicts_no_step_time_is_refused(
    plan: Run, plan_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from planner.papers import zellige

    monkeypatch.setattr(zellige, "PAPER", replace(zellige.PAPER, step=""))
    ran = plan("check", plan_file, "--against", written(tmp_path, '{"step_time_s": 5.0}'))
    assert ran.code == 2
    assert "a zellige plan predicts no step time" in ran.err


def test_a_log_may_come_from_standard_input(plan: Run, plan_file: str) -> None:
    ran = plan("check", plan_file, "--against", "-", stdin=b'{"step_time_s": 4.5}\n')
    assert ran.code == 0
    assert "the prediction is met" in ran.out
