"""Traces of requests: read line by line, refused by line, binned into the series of a problem."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.beside import Beside
from planner.documents import digest
from planner.envelope import dump_model
from planner.errors import BadInputError
from planner.papers.janus.arrivals import mean_context_tokens, period_s, resolved, series_of
from planner.papers.janus.problem import Arrivals, JanusProblem, SeriesProblem
from planner.traces import Requests, read_requests
from planner.validation import validate

TRACES = Path(__file__).parents[2] / "data" / "traces"
PLACE = "arrivals.path"

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
BURST = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"


def problem(**arrivals: Any) -> SeriesProblem:
    """The page's problem as a series of arrivals."""
    way = {"alpha_s": 1e-5, "beta_s_per_byte": 1e-11}
    document = {
        "paper": "janus", "task": "series", "num_layers": 10, "num_experts": 16, "top_k": 2, "slots_per_instance": 5,
        "slo_tpot_s": 0.022, "context_tokens": 1000,
        "attention": {"floor_s": 2e-4, "per_request_s": 1e-5, "per_cached_token_s": 2e-8},
        "moe": {"per_expert_s": 5e-4, "base_s": 1e-4},
        "comm": {"kind": "two_phase", "gpus_per_node": 4, "bytes_per_request": 8192.0, "gather": way, "network": way,
                 "multicast": way, "reduce": way},
        "a_max": {"kind": "balanced_bound", "batch_grid": [1, 4, 16, 64]},
        "limits": {"max_attention_instances": 8, "max_expert_instances": 8, "max_total_instances": 12},
        "arrivals": arrivals,
    }  # fmt: skip
    made = validate(JanusProblem, document)
    assert isinstance(made, SeriesProblem)
    return made


def requests(*rows: tuple[float, int, int]) -> Requests:
    time, taken, given = zip(*rows, strict=True)
    return Requests(np.array(time, np.float64), np.array(taken, np.int64), np.array(given, np.int64))


def read(path: Path, text: str | bytes) -> Requests:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_requests(path, PLACE)


def refused(path: Path, text: str | bytes) -> BadInputError:
    with pytest.raises(BadInputError) as raised:
        read(path, text)
    assert raised.value.where == PLACE
    return raised.value


# --- the three layouts --------------------------------------------------------------------------------------------


def test_azure_rows_keep_all_seven_digits_and_need_no_last_newline(tmp_path: Path) -> None:
    found = read(tmp_path / "a.csv", AZURE + "2023-11-16 23:59:59.9999999,374,44\n2023-11-17 00:00:01.5000000,396,109")
    # Seconds since 1970 in a double keep 2.4e-7.
    assert found.arrival_s == pytest.approx([0.0, 1.5000001], abs=3e-7)
    assert found.input_tokens.tolist() == [374, 396]
    assert found.output_tokens.tolist() == [44, 109]


def test_azure_rows_of_2024_state_their_offset_from_utc(tmp_path: Path) -> None:
    rows = "2024-05-10 02:00:00.25+02:00,1,2\n2024-05-10 00:00:01+00:00,3,4\n2024-05-10 00:00:02Z,5,6\n"
    assert read(tmp_path / "a.csv", AZURE + rows).arrival_s.tolist() == pytest.approx([0.0, 0.75, 1.75])


def test_burstgpt_rows_are_seconds_and_failed_requests_have_no_output(tmp_path: Path) -> None:
    found = read(tmp_path / "b.csv", BURST + "5,ChatGPT,472,18,490,API log\r\n45.5,GPT-4,1087,0,1087,API log\r\n")
    assert found.arrival_s.tolist() == [0.0, 40.5]
    assert found.input_tokens.tolist() == [472, 1087]
    assert found.output_tokens.tolist() == [18, 0]


def test_mooncake_lines_are_milliseconds_and_their_hashes_are_passed_over(tmp_path: Path) -> None:
    lines = [
        {"timestamp": 3000, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14]},
        {"timestamp": 6001, "input_length": 10, "output_length": 5},
    ]
    found = read(tmp_path / "m.jsonl", "\n".join(map(json.dumps, lines)))
    assert found.arrival_s.tolist() == [0.0, pytest.approx(3.001)]
    assert found.output_tokens.tolist() == [490, 5]


def test_requests_out_of_order_are_put_in_order_and_ties_stay_as_written(tmp_path: Path) -> None:
    found = read(tmp_path / "b.csv", BURST + "9,x,1,1,2,l\n2,x,2,2,4,l\n9,x,3,3,6,l\n")
    assert found.arrival_s.tolist() == [0.0, 7.0, 7.0]
    assert found.input_tokens.tolist() == [2, 1, 3]


def test_blank_lines_and_a_byte_order_mark_are_passed_over(tmp_path: Path) -> None:
    text = "\ufeff" + AZURE + "\n2023-11-16 18:15:46,1,2\n\n"
    assert read(tmp_path / "a.csv", text).output_tokens.tolist() == [2]


def test_a_cell_may_be_quoted_and_then_hold_a_comma(tmp_path: Path) -> None:
    text = BURST.replace("Model", '"Model"') + '5,"Chat,GPT",472,18,490,l\n7,"say ""hi""","3",4,7,"l"\n'
    found = read(tmp_path / "a.csv", text)
    assert found.arrival_s.tolist() == [0, 2]
    assert (found.input_tokens.tolist(), found.output_tokens.tolist()) == ([472, 3], [18, 4])


def test_dates_in_the_right_unit_are_read(tmp_path: Path) -> None:
    line = '{{"timestamp": {}, "input_length": 1, "output_length": 1}}\n'
    assert read(tmp_path / "s.csv", AZURE + "1700000000,1,1\n1700000060.5,1,1\n").arrival_s.tolist() == [0, 60.5]
    milliseconds = "".join(map(line.format, (1_700_000_000_000, 1_700_000_060_500)))
    assert read(tmp_path / "ms.jsonl", milliseconds).arrival_s.tolist() == [0, 60.5]
    # A trace of its own clock may last longer than what would be a date in seconds at its beginning.
    assert read(tmp_path / "long.jsonl", "".join(map(line.format, (0, 1_700_000_000)))).arrival_s[-1] == 1_700_000


# --- hostile files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("", "out_of_range", "holds no request"),
        (AZURE, "out_of_range", "holds no request"),
        ("a,b,c\n1,2,3\n", "missing_field", "x line 1: expected a header with TIMESTAMP"),
        ("Timestamp,Timestamp,Request tokens,Response tokens\n", "duplicate_id", "two columns are called timestamp"),
        (AZURE + "2023-11-16 18:15:46,1\n", "out_of_range", "x line 2: expected 3 columns, as in the header, got 2"),
        (AZURE + "2023-11-16 18:15:46,1,2\n2023-13-16 18:15:46,1,2\n", "out_of_range", "x line 3: expected a date"),
        (AZURE + "2023-11-16 18:15:46,1,2\n17,1,2\n", "out_of_range", "x line 3: expected a date"),
        (AZURE + "soon,1,2\n", "out_of_range", 'x line 2: expected seconds, or a date and time from 0 on, got "soon"'),
        (BURST + "-1,x,1,2,3,l\n", "out_of_range", "x line 2: expected seconds"),
        (BURST + "nan,x,1,2,3,l\n", "out_of_range", "x line 2: expected seconds"),
        (BURST + "1e3,x,1,2,3,l\n", "out_of_range", "x line 2: expected seconds"),
        (AZURE + "2023-11-16 18:15:46,1,-2\n", "out_of_range", "in column generatedtokens, got"),
        (AZURE + "2023-11-16 18:15:46,1.5,2\n", "out_of_range", "in column contexttokens, got"),
        (AZURE + "2023-11-16 18:15:46,1,99999999999\n", "out_of_range", "in column generatedtokens, got"),
        (AZURE + "2023-11-16 18:15:46,\u0661,2\n", "out_of_range", "in column contexttokens, got"),
        (AZURE.encode() + b"2023-11-16 18:15:46,1,\xff\n", "wrong_type", "x line 2: no UTF-8 text"),
        (AZURE + "1" * (2**20 + 1), "too_large", "x line 2: longer than"),
        (AZURE + "1700000000000,1,2\n", "out_of_range", "x line 2: expected seconds, got"),
        (AZURE + '"2023-11-16 18:15:46,1,2\n', "wrong_type", "x line 2: quotes that no CSV line has"),
        (AZURE + '"5"6,1,2\n', "wrong_type", "x line 2: quotes that no CSV line has"),
        ('{"timestamp": 1700000900, "input_length": 1, "output_length": 1}\n'
         '{"timestamp": 1700000000, "input_length": 1, "output_length": 1}\n', "out_of_range",
         'x: expected "timestamp" in milliseconds, got 1,700,000,000 at the least'),
        ('{"timestamp": 1700000000000000, "input_length": 1, "output_length": 1}', "out_of_range", "0 to 1e14"),
        ('{"timestamp": 1, "input_length": 1}\n', "missing_field", 'x line 1: missing field "output_length"'),
        ('{"timestamp": 1.5, "input_length": 1, "output_length": 1}', "out_of_range", "whole milliseconds"),
        ('{"timestamp": true, "input_length": 1, "output_length": 1}', "out_of_range", "whole milliseconds"),
        ('{"timestamp": -1, "input_length": 1, "output_length": 1}', "out_of_range", "whole milliseconds"),
        ('{"timestamp": 1, "input_length": "1", "output_length": 1}', "out_of_range", '"input_length", a whole'),
        ('{"timestamp": 1, "input_length": 1, "output_length": false}', "out_of_range", '"output_length", a whole'),
        ('{"timestamp": 1, "timestamp": 2, "input_length": 1, "output_length": 1}', "duplicate_id", "twice"),
        ('{"timestamp": 1, "input_length": NaN, "output_length": 1}', "not_finite", "x line 1"),
        ('{"timestamp": 0, "input_length": 1, "output_length": 1}\n[1]\n', "wrong_type", "x line 2: expected an obj"),
        ('{"timestamp": 0, "input_length": 1, "output_length": 1}\n{"a": \n', "not_json", "x line 2"),
        ('{"a": ' + "[" * 100_000, "not_json", "x line 1"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_request_is_named(tmp_path: Path, text: str | bytes, code: str, said: str) -> None:
    error = refused(tmp_path / "x", text)
    assert error.code == code
    assert said in error.message


def test_no_bytes_of_a_trace_end_in_another_error_than_bad_input(tmp_path: Path) -> None:
    names = ("azure_conv_first200.csv", "mooncake_conversation_first40.jsonl")
    good = [b"\n".join((TRACES / name).read_bytes().split(b"\n")[:4]) for name in names]
    rng = random.Random(5)
    kinds = set()
    for number in range(400):
        data = bytearray(rng.choice(good))
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(len(data))
            data[place : place + rng.randrange(3)] = bytes(rng.randrange(256) for _ in range(rng.randrange(3)))
        try:
            found = read(tmp_path / f"{number}", bytes(data))
        except BadInputError as error:
            kinds.add(error.code)
        else:
            kinds.add("read")
            assert (np.diff(found.arrival_s) >= 0).all()
            assert found.arrival_s[0] == 0
            assert found.output_tokens.min() >= 0
    assert {"read", "out_of_range"} <= kinds


# --- the series ---------------------------------------------------------------------------------------------------


def test_the_demand_of_an_interval_is_its_output_tokens_over_its_seconds() -> None:
    # Requests at 0, 5, 12, 27: 3 gaps in 27 s, so the trace lasts 36 s; bins of 10 s: 100 + 50, 30, 20, nothing in
    # 30..36, which is more than half an interval.
    found = series_of(requests((0, 1, 100), (5, 1, 50), (12, 1, 30), (27, 1, 20)), Arrivals(path="x", interval_s=10.0))
    assert [one["start_s"] for one in found] == [0.0, 10.0, 20.0, 30.0]
    assert [one["duration_s"] for one in found] == [10.0, 10.0, 10.0, 6.0]
    assert [one["demand_tokens_per_s"] for one in found] == [15.0, 3.0, 2.0, 0.0]


def test_a_short_rest_belongs_to_the_interval_before() -> None:
    # 24 s after the mean gap of 8 s: two intervals of 10 s would leave 4 s.
    found = series_of(requests((0, 1, 10), (8, 1, 10), (16, 1, 28)), Arrivals(path="x", interval_s=10.0))
    assert [(one["start_s"], one["duration_s"]) for one in found] == [(0.0, 10.0), (10.0, 14.0)]
    assert [one["demand_tokens_per_s"] for one in found] == [2.0, 2.0]


def test_a_tiled_trace_repeats_from_where_it_ends_and_is_scaled() -> None:
    # A request a second for 4 s, with 1, 2, 3, 4 tokens, repeated over 10 s in intervals of 5 s:
    # seconds 0..9 have 1 2 3 4 1 | 2 3 4 1 2 tokens.
    rows = requests((0, 1, 1), (1, 1, 2), (2, 1, 3), (3, 1, 4))
    found = series_of(rows, Arrivals(path="x", interval_s=5.0, tile_to_s=10.0, scale=3.0))
    assert [one["demand_tokens_per_s"] for one in found] == [pytest.approx(3 * 11 / 5), pytest.approx(3 * 12 / 5)]


def test_tokens_are_kept_however_a_trace_is_cut() -> None:
    rng = np.random.default_rng(1)
    rows = Requests(np.append(0.0, np.sort(rng.uniform(0, 500, 99))), np.ones(100, np.int64), rng.integers(0, 99, 100))
    for interval in (0.7, 3.0, 100.0, 9999.0):
        found = series_of(rows, Arrivals(path="x", interval_s=interval))
        served = sum(one["duration_s"] * one["demand_tokens_per_s"] for one in found)
        assert served == pytest.approx(float(rows.output_tokens.sum()), rel=1e-7)
        assert found[-1]["start_s"] + found[-1]["duration_s"] == pytest.approx(period_s(rows, interval))


def test_requests_that_come_all_at_once_fill_one_interval() -> None:
    found = series_of(requests((0, 1, 40), (0, 1, 2)), Arrivals(path="x", interval_s=10.0))
    assert found == [{"start_s": 0.0, "duration_s": 10.0, "demand_tokens_per_s": 4.2}]


def test_the_mean_context_counts_a_request_as_long_as_it_decodes() -> None:
    # (100 + 5) for 10 tokens and (1000 + 15) for 30: (1050 + 30450) / 40.
    assert mean_context_tokens(requests((0, 100, 10), (1, 1000, 30))) == 787.5
    assert mean_context_tokens(requests((0, 100, 0))) is None


def test_a_tile_shorter_than_the_trace_and_too_many_intervals_are_refused() -> None:
    rows = requests((0, 1, 1), (10, 1, 1))
    with pytest.raises(BadInputError, match="expected at least what the trace lasts, 20 s") as raised:
        series_of(rows, Arrivals(path="x", tile_to_s=19.0))
    assert raised.value.where == "arrivals.tile_to_s"
    with pytest.raises(BadInputError, match="at most 100,000 intervals") as raised:
        series_of(rows, Arrivals(path="x", interval_s=1e-5))
    assert (raised.value.code, raised.value.where) == ("too_large", "arrivals.interval_s")


# --- in a problem -------------------------------------------------------------------------------------------------


def test_a_resolved_problem_names_its_file_and_needs_it_no_more() -> None:
    files: dict[str, str] = {}
    made = resolved(problem(path="azure_conv_first200.csv", interval_s=20.0), Beside(str(TRACES)), files)
    # 200 requests in 61.263537 s last 61.571394 s: 3 intervals, the last with the rest. 31 requests with 2,900 tokens
    # come in the first 20 s (counted with datetime and csv), 47,050 in all.
    assert [one.start_s for one in made.series] == [0.0, 20.0, 40.0]
    assert made.series[-1].duration_s == pytest.approx(21.571394, abs=1e-6)
    assert made.series[0].demand_tokens_per_s == 145.0
    assert sum(one.duration_s * one.demand_tokens_per_s for one in made.series) == pytest.approx(47050)
    told = made.arrivals
    assert told is not None
    assert (told.path, told.requests, files) == ("azure_conv_first200.csv", 200, {told.path: told.sha256})
    again: dict[str, str] = {}
    assert resolved(made, Beside("/nowhere"), again) is made
    assert again == {}


def test_resolving_twice_gives_the_same_bytes() -> None:
    made = [
        resolved(problem(path="mooncake_conversation_first40.jsonl", interval_s=2.0), Beside(str(TRACES)), {})
        for _ in range(2)
    ]
    assert digest(dump_model(made[0])) == digest(dump_model(made[1]))
    # Summed line by line: 13,482.287.
    assert made[0].arrivals is not None
    assert made[0].arrivals.mean_context_tokens == 13482.287
    # Ticks at 0, 3, 5.999, 9 and 12 s: nobody comes from 6 to 8 s.
    assert [one.demand_tokens_per_s > 0 for one in made[0].series][:5] == [True, True, True, False, True]


def test_a_trace_is_read_once_however_often_its_problem_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(AZURE + "2023-11-16 18:15:46,1,2\n")
    beside = Beside(str(tmp_path))
    first = resolved(problem(path="t.csv"), beside, {})
    [kept] = [value for key, value in beside.kept.items() if key == ("requests", first.arrivals.sha256)]  # type: ignore[union-attr]
    again = resolved(problem(path="t.csv", scale=2.0), beside, {})
    assert again.series[0].demand_tokens_per_s == 2 * first.series[0].demand_tokens_per_s
    assert beside.kept["requests", first.arrivals.sha256] is kept  # type: ignore[union-attr]


def test_another_file_no_file_and_a_series_beside_arrivals_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as raised:
        resolved(problem(path="azure_conv_first200.csv", sha256="0" * 64), Beside(str(TRACES)), {})
    assert (raised.value.code, raised.value.where) == ("array_mismatch", PLACE)
    with pytest.raises(BadInputError) as raised:
        resolved(problem(path="none.csv"), Beside(str(tmp_path)), {})
    assert (raised.value.code, raised.value.where) == ("missing_field", PLACE)
    both = problem(path="azure_conv_first200.csv").model_copy(
        update={"series": resolved(problem(path="azure_conv_first200.csv"), Beside(str(TRACES)), {}).series}
    )
    with pytest.raises(BadInputError, match="state one of them"):
        resolved(both, Beside(str(TRACES)), {})


@pytest.mark.skipif("PLAN_REAL_DATA" not in os.environ, reason="PLAN_REAL_DATA is not set")
@pytest.mark.parametrize(
    ("name", "count", "context"),
    [
        ("azure2023/AzureLLMInferenceTrace_conv.csv", 19_366, 1_226.979),
        ("mooncake/conversation_trace_first3000.jsonl", 3_000, 14_810.060),
    ],
)
def test_whole_real_traces_are_read_and_tiled_to_a_day(name: str, count: int, context: float) -> None:
    folder = Path(os.environ["PLAN_REAL_DATA"]) / "traces"
    if not (folder / name).exists():
        pytest.skip(f"{name} is not there")
    made = resolved(problem(path=name, tile_to_s=86_400.0), Beside(str(folder)), {})
    assert len(made.series) == 96
    assert made.arrivals is not None
    assert (made.arrivals.path, made.arrivals.requests) == (Path(name).name, count)
    assert made.arrivals.mean_context_tokens == pytest.approx(context, rel=1e-6)
    # A conversation service is never idle for a quarter of an hour.
    assert min(one.demand_tokens_per_s for one in made.series) > 500
