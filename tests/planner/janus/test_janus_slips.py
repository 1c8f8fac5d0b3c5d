"""What looks like a slip of who wrote the problem: another unit, another model's counts, another task's field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from janus_cases import j, over_series, problem_of, scaled, series
from janus_experts_cases import placement_document
from threadpoolctl import threadpool_info, threadpool_limits

from planner.beside import Beside
from planner.errors import BadInputError, InfeasibleError
from planner.paper import Warned
from planner.papers.janus import sizing
from planner.papers.janus.attach import attach
from planner.papers.janus.cautions import warnings
from planner.papers.janus.check import check
from planner.papers.janus.engines import solve
from planner.papers.janus.experts.spectral import eigenvalue_bound
from planner.papers.janus.problem import JanusProblem
from planner.papers.janus.solution import ScalingSolution
from planner.papers.janus.summaries import summary
from planner.validation import validate
from solvers.report import Limits


def loads(values: list[float], **changes: Any) -> dict[str, Any]:
    routing = {"kind": "loads", "expert_load": values} | changes
    return j(layers=[{"layer_id": 3, "routing": routing}])


def warned(document: dict[str, Any]) -> dict[str, str]:
    """Messages by code."""
    problem = attach(validate(JanusProblem, document).sorted(), Beside(".")).problem
    found: list[Warned] = warnings(problem, solve(problem, None, Limits())[0])
    return {each.code: each.message for each in found}


def refusal(document: dict[str, Any]) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        attach(validate(JanusProblem, document), Beside("."))
    return caught.value


# --- units --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"slo_tpot_s": 22}, "slo_tpot_s is read as 22 s for every token"),
        ({"memory": {"attention_fixed_bytes": 10}}, "memory.attention_fixed_bytes is read as 10 B"),
        # J has ten layers: a megabyte a token, written in megabytes.
        ({"memory": {"kv_bytes_per_token": 1}}, "memory.kv_bytes_per_token is read as 1 B over 10 layers"),
        ({"devices": [{"id": "a", "memory": {"capacity_bytes": 8e10, "attention_fixed_bytes": 10.5,
                                             "kv_bytes_per_token": 1e6}}]},
         "devices.a.memory.attention_fixed_bytes is read as"),
    ],
)  # fmt: skip
def test_amounts_that_are_none_in_their_unit_are_said_as_they_are_read(changes: dict[str, Any], said: str) -> None:
    assert said in warned(j(**changes))["suspicious_units"]


def test_slow_tokens_small_caches_and_nothing_at_all_are_no_slips() -> None:
    at_the_edge = {"attention_fixed_bytes": 1e6, "kv_bytes_per_token": 640.0}
    assert "suspicious_units" not in warned(j(slo_tpot_s=5, memory=at_the_edge))
    assert "suspicious_units" not in warned(j(memory={"attention_fixed_bytes": 0, "kv_bytes_per_token": 0}))
    assert "suspicious_units" not in warned(j(memory=None))


# --- loads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "place", "said"),
    [
        ([0.0] * 16, "layers.0.routing.expert_load", "some load above 0"),
        # An expert is asked at most once a token, and there are half as many tokens as assignments.
        ([1e15] + [0.0] * 15, "layers.0.routing.expert_load.0", "(1 of 16 experts have any)"),
        # Two experts for two a token have as many each.
        ([0.0, 5.0, 4.0] + [0.0] * 13, "layers.0.routing.expert_load.1", "(2 of 16 experts have any)"),
    ],
)
def test_loads_that_no_routing_has_are_refused(values: list[float], place: str, said: str) -> None:
    error = refusal(loads(values))
    assert (error.code, error.where) == ("out_of_range", place)
    assert said in error.message


def test_counts_of_a_file_and_of_a_placement_are_looked_at_too(tmp_path: Path) -> None:
    (tmp_path / "counts.json").write_text('[{"0": 30, "1": 20, "2": 9}]')
    routing = {"kind": "loads", "path": "counts.json"}
    with pytest.raises(BadInputError, match="more than one in 2") as caught:
        attach(validate(JanusProblem, j(layers=[{"layer_id": 0, "routing": routing}])), Beside(str(tmp_path)))
    assert caught.value.where == "layers.0.routing.expert_load.0"
    drawn = {"routing": {"kind": "loads", "expert_load": [9.0, 1.0, 1.0, 1.0, 1.0]}, "top_k": 2}
    document = placement_document(**drawn)
    for name in ("expert_load", "coactivation"):
        document.pop(name, None)
    assert refusal(document).where == "routing.expert_load.0"


def test_an_expert_of_every_token_is_no_slip() -> None:
    # Of 30 assignments 15 are one expert's: it is in every one of the 15 tokens.
    assert "experts_without_load" not in warned(loads([15.0] + [1.0] * 15))


def test_experts_without_load_are_counted() -> None:
    message = warned(loads([3.0, 3.0, 3.0, 1.0] + [0.0] * 12))["experts_without_load"]
    assert message.startswith("12 of the 16 experts of layer 3 have no load: ")
    assert "experts_without_load" in warned(loads([1.0] * 8 + [0.0] * 8))
    assert "experts_without_load" not in warned(loads([1.0] * 9 + [0.0] * 7))
    few = {"kind": "mask", "source_rank": [0, 0, 0], "expert_ids": [[0, 1], [2, 3], [4, 5]]}
    document = loads([3.0, 3.0] + [0.0] * 14)
    document["layers"].append({"layer_id": 1, "routing": few})
    message = warned(document)["experts_without_load"]
    assert message.startswith("14 of the 16 experts of layer 3 have no load, and of 1 other layer as well half or more")


# --- what is missing, and words -----------------------------------------------------------------------------------


def test_a_series_with_one_demand_is_told_what_takes_its_place() -> None:
    error = refusal(j(task="series"))
    assert (error.code, error.where) == ("missing_field", "series")
    assert "demand_tokens_per_s" in error.message
    document = series([100.0]) | {"demand_tokens_per_s": 1.0}
    assert refusal(document).code == "unknown_field"


def test_a_table_too_late_for_a_devices_slots_names_the_device() -> None:
    error = refusal(j(devices=[{"id": "small"}, {"id": "roomy", "slots_per_instance": 20}]))
    assert error.where == "a_max.expert_instances.0"
    assert '20 slots each of device "roomy"' in error.message


def test_one_is_said_in_the_singular() -> None:
    with pytest.raises(InfeasibleError, match=r"^1 expert instance of 4 slots cannot hold 16 experts"):
        solve(
            validate(JanusProblem, placement_document(num_experts=16, expert_instances=1, slots_per_instance=4,
                                                      expert_load=[1.0] * 16, coactivation=[], batches=[])),
            None, Limits())  # fmt: skip
    document = series([100.0, 100.0])
    lines = summary(problem_of(document), over_series(document))
    assert lines[0].startswith("2 intervals, 2 h: 5 GPUs, ")
    assert "the same pools all the time" in lines
    error = refusal(loads([1.0] * 16, tokens_per_rank=3))
    assert "tokens_per_rank x top_k 2 = 6" in error.message


def test_a_layer_of_a_file_that_is_not_named_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "counts.json").write_text('[{"0": 1, "1": 1}, {"0": 1, "1": 1}]')
    layers = [{"layer_id": 0, "routing": {"kind": "loads", "path": "counts.json"}}]
    with pytest.raises(BadInputError, match='holds 2 layers: expected "layer" of 0 to 1, got none'):
        attach(validate(JanusProblem, j(layers=layers)), Beside(str(tmp_path)))


# --- alternatives, progress, threads ------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [1, 5])
def test_alternatives_cut_short_are_refuted(kept: int) -> None:
    solution = scaled(j())
    assert len(solution.alternatives) == 6
    short = solution.model_copy(update={"alternatives": solution.alternatives[:kept]})
    assert {violation.code for violation in check(problem_of(j()), short)} == {"alternatives_incomplete"}


def test_fewer_alternatives_are_all_where_no_other_pools_carry_the_demand() -> None:
    # J within 7 GPUs: (1, 6) alone.
    document = j(limits={"max_total_instances": 7})
    solution = scaled(document)
    assert len(solution.alternatives) == 1
    assert check(problem_of(document), solution) == []


def test_a_long_search_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "TOLD", 2)
    told: list[tuple[float, str]] = []
    heard = Limits(progress=lambda done, what: told.append((done, what)))
    document = series([100.0, 200.0, 300.0, 600.0, 900.0])
    solution, _ = solve(problem_of(document), None, heard)
    assert [done for done, _ in told] == [0.0, 0.4, 0.8]
    assert told[1][1] == "2 of 5 demands"
    assert solution == over_series(document)
    traced = loads([1.0] * 16)
    problem = attach(validate(JanusProblem, traced), Beside(".")).problem
    solution, _ = solve(problem, None, heard)
    assert isinstance(solution, ScalingSolution)
    assert told[-1] == (0.0, f"experts on {solution.expert_instances} instances")


def test_eigenvalues_are_found_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    threads: list[int] = []
    found = np.linalg.eigh

    def counting(matrix: Any) -> Any:
        calls.append(len(matrix))
        threads.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return found(matrix)

    monkeypatch.setattr(np.linalg, "eigh", counting)
    together = np.ones((4, 4)) - np.eye(4)
    with threadpool_limits(limits=2, user_api="blas"):
        before = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
        eigenvalue_bound(np.ones(4, np.int64), 2, together)
        after = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert calls and set(threads) <= {1}
    assert after == before
