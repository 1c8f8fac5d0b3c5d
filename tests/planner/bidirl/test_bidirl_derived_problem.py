"""The derived form: what is looked up, what is required, and what its files and examples give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bidirl_cases import document as explicit_document
from bidirl_derived import EXAMPLES, derivation, derived, document

from planner.errors import BadInputError
from planner.paper import DeriveOptions
from planner.papers.bidirl.cost import derive
from planner.papers.bidirl.derived import BidirlDerivedProblem
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.search import best_split
from planner.papers.bidirl.time_kinds import Lengths, Linear, Stages
from planner.papers.bidirl.training_run import Empirical, Lognormal
from planner.validation import validate

TABLES = Path(__file__).resolve().parents[2] / "data" / "rl"


def test_the_default_example_is_the_page_s_own() -> None:
    found = json.loads((EXAMPLES / "default.json").read_text())
    del found["notes"]
    assert found == explicit_document()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_every_example_has_a_split(path: Path) -> None:
    found = json.loads(path.read_text())
    problem = derived(found) if "derive" in found else validate(BidirlProblem, found)
    assert best_split(problem.sorted()) is not None


def test_the_explicit_form_of_a_derived_problem_is_one_that_is_read() -> None:
    problem = derived(document()).sorted()
    again = validate(BidirlProblem, json.loads(problem.model_dump_json()))
    assert again.sorted() == problem


def test_deriving_again_from_the_account_gives_the_same() -> None:
    first = derivation(document())
    assert isinstance(first.derive, dict)
    written = {name: value for name, value in first.derive.items() if name != "resolved"}
    again = derivation({**document(), "derive": json.loads(json.dumps(written))})
    assert (again.problem, again.derive) == (first.problem, first.derive)


def test_memory_is_the_cluster_s_where_it_is_not_stated() -> None:
    posed = document()
    del posed["derive"]["gpu_memory_bytes"]
    with pytest.raises(BadInputError, match='missing field "gpu_memory_bytes"') as caught:
        derived(posed)
    assert caught.value.where == "derive.gpu_memory_bytes"
    posed["derive"]["cluster"] = {"preset": "dgx-h100", "nodes": 4}
    cluster = derived(posed).cluster
    assert (cluster.gpus, cluster.gpus_per_node) == (32, 8)
    assert cluster.gpu_memory_bytes > 79e9


def test_a_relaxation_names_the_fields_of_the_derived_form() -> None:
    found = derivation(document())
    assert found.relaxable["cluster.gpu_memory_bytes"] == ("derive.gpu_memory_bytes", 0.0)
    assert found.relaxable["cluster.gpus"] == ("derive.cluster.num_ranks", 0.0)
    assert found.multiples == {"derive.cluster.num_ranks": 8}


def test_a_weight_sync_is_measured_or_all_weights_over_a_bandwidth() -> None:
    posed = document()
    costs = derived(posed).costs
    assert costs.weight_sync_s == pytest.approx(2 * 8_030_261_248 / 2e10)
    assert costs.sync_sources is not None
    assert costs.sync_sources.modelled == 1.0
    posed["derive"]["weight_sync"] = {"measured_s": 0.5}
    assert derived(posed).costs.weight_sync_s == 0.5


@pytest.mark.parametrize(
    ("place", "value", "where", "said"),
    [
        (("switch",), {}, "derive.switch.rollout_on_train", 'missing field "rollout_on_train"'),
        (("switch",), None, "derive.switch", 'missing field "switch"'),
        (("colocated_switch_s",), None, "derive.colocated_switch_s", 'missing field "colocated_switch_s"'),
        (("weight_sync",), {}, "derive.weight_sync", 'expected "measured_s" or "bandwidth_bytes_per_s"'),
        (("weight_sync",), {"measured_s": 1.0, "bandwidth_bytes_per_s": 1e10}, "derive.weight_sync", "expected"),
        (("model",), "wan2.1-1.3b", "derive.model", "expected a language model"),
        (("model",), "llama-9", "derive.model", "llama"),
        (("prompt_tokens",), 0, "derive.prompt_tokens", "greater than or equal to 1"),
        (("train", "tp"), [2], "derive.train.tp", "goes with the other backend than fsdp"),
        (("train", "time", "rows"), [], "derive.train.time.rows", "expected 1 to"),
        (("train", "time", "path"), "x.csv", "derive.train.time", 'expected "rows" or "path", got both'),
        (("train", "time", "layout"), "fsdp3", "derive.train.time.layout", "got fsdp3"),
        (("rollout", "time", "kind"), "lengths", "derive.rollout.time.kind", "expected log or decode or stated"),
        (("cluster",), "no-such-cluster", "derive.cluster", "no-such-cluster"),
    ],
)
def test_what_is_missing_or_wrong_is_told(place: tuple[str, ...], value: Any, where: str, said: str) -> None:
    posed = document()
    inner = posed["derive"]
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    if value is None:
        del inner[place[-1]]
    with pytest.raises(BadInputError, match=said) as caught:
        derived(posed)
    assert caught.value.where == where


def test_a_direction_that_is_off_needs_no_switch_costs() -> None:
    posed = document()
    posed["hot_switch"] = {"rollout_on_train": False, "train_on_rollout": False}
    posed["derive"]["switch"] = {}
    assert derived(posed).costs.switch.rollout_on_train is None


def test_no_profile_prices_anything_here() -> None:
    problem = validate(BidirlDerivedProblem, document())
    with pytest.raises(BadInputError, match="expected neither --profile nor --extrapolate"):
        derive(problem, DeriveOptions(profile="h100-sxm"))


def responses(folder: Path, *lengths: object, name: str = "met.jsonl") -> dict[str, Any]:
    (folder / name).write_text("".join(json.dumps({"response_tokens": each}) + "\n" for each in lengths))
    return {"path": name}


def test_met_lengths_are_what_a_simulation_draws(tmp_path: Path) -> None:
    posed = document()
    posed["derive"]["responses"] = responses(tmp_path, 3000, 500, 20_000, 500.0)
    found = derivation(posed, tmp_path)
    # Cut at batch.max_response_tokens.
    assert found.problem.simulation.responses == Empirical(distribution="empirical", tokens=(500, 500, 3000, 8192))
    assert list(found.arrays) == ["met.jsonl"]
    assert isinstance(found.derive, dict)
    assert found.derive["resolved"]["mean_response_tokens"] == 3048.0
    drawn = found.problem.sorted().simulation.drawn
    assert drawn is not None
    assert len(drawn.work_factor) == 20
    assert set(drawn.max_response_tokens) == {8192.0}, "of 2048 draws one is the longest"


def test_a_lognormal_goes_through_the_lengths_where_that_is_asked_for(tmp_path: Path) -> None:
    posed = document()
    # Logarithms of 1000 / e, 1000 and 1000 e: median 1000, deviation sqrt(2 / 3).
    lengths = [367.87944117144233, 1000.0, 2718.281828459045]
    posed["derive"]["responses"] = {**responses(tmp_path, *lengths), "distribution": "lognormal", "cap": 5000}
    found = derived(posed, tmp_path).simulation.responses
    assert isinstance(found, Lognormal)
    assert (found.median, found.sigma, found.cap) == (pytest.approx(1000), pytest.approx((2 / 3) ** 0.5), 5000)


def test_the_mean_of_met_lengths_is_that_of_decode_steps(tmp_path: Path) -> None:
    posed = document()
    posed["derive"]["responses"] = responses(tmp_path, 1000, 3000)
    steps = [{"running": 1, "time_s": 0.01}, {"running": 8, "time_s": 0.02}]
    posed["derive"]["rollout"]["time"] = {"kind": "decode", "decode": {"rows": steps}, "prefill_s_per_token": 1e-5}
    (layout,) = derived(posed, tmp_path).costs.rollout_layouts
    assert layout.time.model_dump()["mean_response_tokens"] == 2000.0


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        ((5, 0), 'met.jsonl line 2: expected "response_tokens", tokens of a response above 0, got 0'),
        ((True,), "line 1: expected"),
        (("12",), "line 1: expected"),
        ((None,), "line 1: expected"),
        ((), "holds no responses"),
    ],
)
def test_a_line_without_a_length_is_told(lengths: tuple[object, ...], said: str, tmp_path: Path) -> None:
    posed = document()
    posed["derive"]["responses"] = responses(tmp_path, *lengths)
    with pytest.raises(BadInputError, match=said) as caught:
        derived(posed, tmp_path)
    assert caught.value.where == "derive.responses"


def test_a_log_in_a_file_gives_what_its_rows_give(tmp_path: Path) -> None:
    posed = document()
    time = posed["derive"]["train"]["time"]
    rows = time.pop("rows")
    (tmp_path / "logs").mkdir()
    text = "replicas,time_s\n" + "".join(f"{row['replicas']},{row['time_s']}\n" for row in rows)
    (tmp_path / "logs" / "steps.csv").write_text(text)
    time["path"] = "logs/steps.csv"
    found = derivation(posed, tmp_path)
    assert found.problem == derived(document())
    assert list(found.arrays) == ["steps.csv"]
    assert isinstance(found.derive, dict)
    assert found.derive["train"]["time"]["path"] == "steps.csv", "a plan keeps no path"
    time["path"] = "logs/other.csv"
    with pytest.raises(BadInputError, match=r"the file other\.csv is not in") as caught:
        derived(posed, tmp_path)
    assert caught.value.where == "derive.train.time"


def test_decode_steps_and_timers_may_be_files_too(tmp_path: Path) -> None:
    posed = document()
    (tmp_path / "decode.jsonl").write_text('{"running": 1, "time_s": 0.01}\n{"running": 9, "time_s": 0.018}\n')
    (tmp_path / "prefill.csv").write_text("tokens,time_s\n100,0.001\n")
    (tmp_path / "timers.csv").write_text("stage,chunks,time_s\nupdate,1,3.0\nupdate,3,5.0\n")
    posed["derive"]["rollout"]["time"] = {
        "kind": "decode",
        "layout": "tp2",
        "decode": {"path": "./decode.jsonl"},
        "prefill": {"path": "./prefill.csv"},
        "mean_response_tokens": 100.0,
    }
    posed["derive"]["train"]["time"] = {"kind": "timers", "layout": "fsdp4", "timers": {"path": "./timers.csv"}}
    found = derivation(posed, tmp_path)
    rollout, train = found.problem.costs.rollout_layouts[0].time, found.problem.costs.train_layouts[0].time
    assert isinstance(rollout, Lengths)
    assert isinstance(train, Stages)
    assert (rollout.step_base_s, rollout.step_per_sequence_s) == (pytest.approx(0.009), pytest.approx(0.001))
    assert (train.stages[0].fixed_s, train.stages[0].chunk_s) == (pytest.approx(2.0), pytest.approx(1.0))
    assert sorted(found.arrays) == ["decode.jsonl", "prefill.csv", "timers.csv"]
    assert "./" not in json.dumps(found.derive), "a plan keeps no path"


def published(posed: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The problem with times from a published table, its pool of shared GPUs in replicas of 2 and of 4."""
    name = "verl_fully_async_line355.csv"
    (folder / name).write_bytes((TABLES / name).read_bytes())
    for role, layout in (("rollout", "tp2"), ("train", "fsdp4")):
        posed["derive"][role]["time"] = {
            "kind": "log",
            "format": "verl",
            "path": name,
            "layout": layout,
            "gamma_s_per_token": 0.0,
        }
    return posed


def test_times_of_a_published_table_are_those_of_its_colocated_runs(tmp_path: Path) -> None:
    costs = derived(published(document(), tmp_path), tmp_path).costs
    (rollout,), (train,) = costs.rollout_layouts, costs.train_layouts
    assert isinstance(rollout.time, Linear)
    assert isinstance(train.time, Linear)
    # Page, golden case 8, with 2 GPUs a replica: beta is of GPUs there.
    assert rollout.time.alpha_s == pytest.approx(74.5050, abs=5e-5)
    assert rollout.time.beta_s == pytest.approx(8456.50 / 2, abs=5e-3)
    # 269.80 + 107.71, 133.41 + 70.26 and 113.81 + 53.92 s on 8, 16 and 32 replicas, by least squares.
    x, y = np.array([1 / 8, 1 / 16, 1 / 32]), np.array([377.51, 203.67, 167.73])
    beta, alpha = np.polyfit(x, y, 1)
    assert (train.time.alpha_s, train.time.beta_s) == (pytest.approx(alpha), pytest.approx(beta))
    assert train.time.fit is not None
    assert (train.time.fit.from_replicas, train.time.fit.to_replicas) == (8, 32)


def test_a_published_table_in_other_replicas_is_told_with_its_line(tmp_path: Path) -> None:
    posed = published(document(), tmp_path)
    posed["derive"]["train"] |= {"shard": [3]}
    posed["derive"]["train"]["time"]["layout"] = "fsdp3"
    with pytest.raises(BadInputError, match="line 2: expected a multiple of the 3 GPUs of a replica, got 32"):
        derived(posed, tmp_path)
    del posed["derive"]["train"]["time"]["path"]
    with pytest.raises(BadInputError, match="expected"):
        derived(posed, tmp_path)


def test_the_error_of_the_costs_is_that_of_the_worst_fit() -> None:
    posed = document()
    fits = [
        layout.time.fit
        for layout in (*derived(posed).costs.rollout_layouts, *derived(posed).costs.train_layouts)
        if layout.time.kind == "linear" and layout.time.fit is not None
    ]
    assert derivation(posed).cost_error == {
        "median": max(fit.median_error for fit in fits),
        "p90": max(fit.p90_error for fit in fits),
    }
    stated = {"kind": "stated", "times": {"tp2": {"kind": "linear", "beta_s": 1.0}}}
    posed["derive"]["rollout"]["time"] = stated
    posed["derive"]["train"]["time"] = {**stated, "times": {"fsdp4": {"kind": "linear", "beta_s": 1.0}}}
    assert derivation(posed).cost_error is None
