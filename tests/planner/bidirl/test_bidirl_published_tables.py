"""Tables of verl and NeMo-RL are read as they are published, odd cells and all, and fits to them are told as poor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planner.errors import BadInputError
from planner.papers.bidirl.costs.line_fit import Line, fit_line
from planner.papers.bidirl.logs.nemo_rl import read_throughputs
from planner.papers.bidirl.logs.pools import Pools
from planner.papers.bidirl.logs.verl_modes import read_mode_runs
from planner.papers.bidirl.logs.verl_steps import StepTimes, read_step_times
from planner.papers.bidirl.logs.verl_syncs import read_delta_sync_times, read_sync_times
from planner.papers.bidirl.measurements import StepRow

TABLES = Path(__file__).resolve().parents[2] / "data" / "rl"
REAL = os.environ.get("PLAN_REAL_DATA")

HOUR_S, DAY_S = 3600.0, 86_400.0


def of_update(row: StepTimes) -> float:
    return row.update_actor_s


def of_generation(row: StepTimes) -> float:
    assert row.gen_s is not None
    return row.gen_s


def fitted(rows: list[StepTimes], seconds: object) -> Line:
    """alpha + beta / GPUs through one stage of the colocated runs."""
    assert callable(seconds)
    runs = [(row.pools.shared, seconds(row)) for row in rows if row.pools is not None and row.pools.shared]
    return fit_line(
        [StepRow(replicas=gpus, time_s=time_s) for gpus, time_s in runs],
        alpha_s=None,
        gamma_s_per_token=0.0,
        max_tokens=1.0,
        where="rows",
    )


def test_the_fit_to_published_updates_has_the_errors_of_the_page() -> None:
    # Page, golden case 8: 269.80, 133.41 and 113.81 s on 32, 64 and 128 GPUs.
    line = fitted(read_step_times(TABLES / "verl_fully_async_line355.csv"), of_update)
    assert line.time.alpha_s == pytest.approx(45.6150, abs=5e-5)
    assert line.time.beta_s == pytest.approx(6951.77, abs=5e-3)
    assert [round(100 * error, 1) for error in line.errors] == [-2.6, 15.6, -12.2]


def test_the_fit_to_published_generation_is_poor_and_says_so() -> None:
    # Page, golden case 8: 357.41, 150.72 and 177.85 s; the last rises with GPUs, which no such line does.
    line = fitted(read_step_times(TABLES / "verl_fully_async_line355.csv"), of_generation)
    assert line.time.alpha_s == pytest.approx(74.5050, abs=5e-5)
    assert line.time.beta_s == pytest.approx(8456.50, abs=5e-3)
    assert [round(100 * error, 1) for error in line.errors] == [-5.2, 37.1, -21.0]
    fit = line.time.fit
    assert fit is not None
    assert (fit.rows, fit.from_replicas, fit.to_replicas) == (3, 32, 128)
    assert fit.median_error == pytest.approx(0.210, abs=5e-4)
    # numpy's 90th percentile of three lies 4/5 of the way from the second to the third: 21.0 + 0.8 * 16.1.
    assert fit.p90_error == pytest.approx(0.339, abs=1e-3)


def test_rows_left_out_of_a_fit_are_further_off_than_rows_in_it() -> None:
    line = fitted(read_step_times(TABLES / "verl_fully_async_line355.csv"), of_generation)
    assert line.unseen is not None
    assert line.unseen.rows == 3
    assert line.unseen.mape > sum(abs(error) for error in line.errors) / 3


def test_durations_with_days_and_speed_ups_beside_them_are_read() -> None:
    colocated, split = read_step_times(TABLES / "verl_fully_async_line355.csv")[:2]
    assert colocated.run_s == {
        100: 13 * HOUR_S + 44 * 60,
        200: DAY_S + 3 * HOUR_S + 43 * 60,
        300: 2 * DAY_S + 9 * HOUR_S + 22 * 60,
        400: 3 * DAY_S + 17 * HOUR_S + 5 * 60,
    }
    assert split.run_s[100] == 7 * HOUR_S + 58 * 60


def test_pools_are_told_apart_from_a_shared_one() -> None:
    pools = [row.pools for row in read_step_times(TABLES / "verl_fully_async_line355.csv")]
    assert pools[:2] == [Pools(shared=32), Pools(rollout=16, train=16)]
    # The page the table is of: "rollout using 96 GPUs and trainer using 32 GPUs".
    assert read_step_times(TABLES / "verl_fully_async_line446.csv")[1].pools == Pools(rollout=96, train=32)


def test_what_was_not_run_is_none_and_no_zero() -> None:
    colocated, split = read_step_times(TABLES / "verl_fully_async_line355.csv")[:2]
    assert (colocated.old_log_prob_s, split.old_log_prob_s) == (107.71, None)


def test_a_row_without_times_is_left_out() -> None:
    assert [row.line for row in read_step_times(TABLES / "verl_fully_async_line372.csv")] == [2, 3, 5]


def test_steps_shorter_than_their_stages_overlap() -> None:
    # 294.77 s of a step against 21.26 + 313.81; 749 against 321 + 88 + 286, which are not all of it.
    rows = read_step_times(TABLES / "verl_fully_async_line355.csv")
    assert [row.overlapped for row in rows[:2]] == [False, True]
    assert [row.overlapped for row in read_step_times(TABLES / "verl_one_step_off_line61.csv")] == [
        False,
        True,
        False,
        True,
    ]


def test_runs_of_a_table_that_does_not_count_their_steps_are_read() -> None:
    # "15h34m" with +23 % in full-width parentheses beside it.
    second = read_step_times(TABLES / "verl_one_step_off_line61.csv")[1]
    assert second.run_s == {0: 15 * HOUR_S + 34 * 60}
    assert (second.gen_s, second.generate_sequences_s) == (None, 458.0)


def test_modes_and_their_changes_are_read() -> None:
    rows = read_mode_runs(TABLES / "verl_v1_async_line257.csv")
    assert [row.pools for row in rows] == [Pools(shared=4), Pools(shared=4), Pools(shared=2, rollout=2)]
    assert [(row.steps, row.tokens_per_s) for row in rows] == [(150, 12_053), (150, 18_852), (150, 18_829)]
    assert [row.run_s for row in rows] == pytest.approx([22.79 * HOUR_S, 14.72 * HOUR_S, 14.10 * HOUR_S])


def test_weight_syncs_are_ranges_of_seconds() -> None:
    rows = read_delta_sync_times(TABLES / "verl_delta_weight_sync_line151.csv")
    assert [tuple(row.seconds) for row in rows[:2]] == [(3.9, 4.9), (5.5, 6.0)]
    assert tuple(rows[-1].seconds) == (246.0, 266.0)
    counted = read_sync_times(TABLES / "verl_fully_async_line456.csv")
    assert [row.seconds.low_s for row in counted] == [0.12, 0.02, 15.76, 4.38, 58.57, 23.70]
    assert counted[2].ranks == (16, 16)


def test_layouts_and_thousands_of_nemo_rl_are_read() -> None:
    rows = read_throughputs(TABLES / "nemo_rl_perf_summary_line54.csv")
    assert len(rows) == 10
    assert (rows[0].max_sequence_tokens, rows[0].generation) == (1536, {"TP": 32, "PP": 1})
    assert rows[0].training == {"TP": 1, "CP": 1, "EP": 16, "PP": 16}, "VPP is n/a"
    assert [row.staleness for row in rows[6:9]] == [0, 1, 8]
    assert rows[9].mean_sequence_tokens == 31_599


def test_another_table_is_refused_by_the_column_it_lacks() -> None:
    with pytest.raises(BadInputError, match=r"line 1: expected a table with the columns step, .*: no step") as caught:
        read_step_times(TABLES / "nemo_rl_perf_summary_line54.csv", "log")
    assert (caught.value.code, caught.value.where) == ("missing_field", "log")


@pytest.mark.parametrize(
    ("cell", "by", "said"),
    [
        ("357.41", "XXX.XX", 'line 2: expected gen, a number, got "XXX.XX"'),
        ("790.10", "-", 'line 2: expected step, a number, got "-"'),
        ("13h 44m", "13h 44", 'line 2: expected total_time_100_step, a duration such as 1d 3h 43m, got "13h 44"'),
        ("16:16", "16:16:16", 'line 3: expected resource allocation, .*, got "16:16:16"'),
        ("16:16", "0:0", 'line 3: expected resource allocation of at least one, got "0:0"'),
        ("107.71", "1,07.71", "line 2: expected 11 fields, got 12"),
        ("107.71", '"1,07.71"', 'line 2: expected old_log_prob, a number, got "1,07.71"'),
    ],
)
def test_a_broken_cell_is_told_with_its_line(cell: str, by: str, said: str, tmp_path: Path) -> None:
    text = (TABLES / "verl_fully_async_line355.csv").read_text()
    assert cell in text
    path = tmp_path / "table.csv"
    path.write_text(text.replace(cell, by, 1))
    with pytest.raises(BadInputError, match=said):
        read_step_times(path)


@pytest.mark.skipif(not REAL, reason="PLAN_REAL_DATA names no folder of published tables")
def test_every_published_table_of_times_is_read() -> None:
    folder = Path(REAL or "") / "rl"
    steps = [path for path in sorted(folder.glob("verl_*.csv")) if path.stem.rpartition("_line")[2] not in OTHERS]
    assert len(steps) == 6
    assert all(read_step_times(path) for path in steps)
    assert len(read_throughputs(folder / "nemo_rl_perf_summary_line73.csv")) == 1
    assert len(read_delta_sync_times(folder / "verl_delta_weight_sync_line169.csv")) == 16


OTHERS = {"151", "169", "257", "324", "456"}
"""Lines of the tables that are of syncs, of modes, and of no times at all."""
