"""Pools left out where the batch grid ends are told of; a grid that is not stated reaches as far as there is need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from janus_cases import j, problem_of, scaled, series

from planner.beside import Beside
from planner.errors import BadInputError
from planner.papers.janus.attach import attach
from planner.papers.janus.cautions import warnings
from planner.papers.janus.engines import solve
from planner.papers.janus.grid_end import left_out
from planner.papers.janus.options import options
from planner.papers.janus.problem import JanusProblem, SizingProblem
from planner.validation import validate
from solvers.report import Limits


def slow(grid: list[int], **changes: Any) -> dict[str, Any]:
    """One layer: 1 ms of attention a request, 5 ms of the rest; 1,000 tokens/s in 50 ms. More of each side is faster.

    With n_a instances and experts without time B = 1,000 (B/n_a ms + 5 ms): with two 10 requests, 10 ms a token.
    """
    return j(
        num_layers=1,
        slo_tpot_s=0.05,
        demand_tokens_per_s=1000.0,
        attention={"floor_s": 0.0, "per_request_s": 1e-3, "per_cached_token_s": 0.0},
        moe={"per_expert_s": 0.0, "base_s": 5e-3},
        comm={"kind": "constant", "time_s": 0.0},
        a_max={"kind": "balanced_bound", "batch_grid": grid},
        memory=None,
        **changes,
    )


def warned(document: dict[str, Any]) -> dict[str, str]:
    problem = problem_of(document)
    return {each.code: each.message for each in warnings(problem, solve(problem, None, Limits())[0])}


def test_pools_past_the_grid_are_told_of() -> None:
    """2A4E keep 10 requests in flight, past a grid to 8; 3A4E keep 7.5, as B = B/3 + 5: they are one GPU more."""
    document = slow([1, 4, 8])
    solution = scaled(document)
    assert (solution.attention_instances, solution.batch) == (3, pytest.approx(7.5))
    text = warned(document)["grid_ends"]
    assert "2A4E" in text
    assert "more than 8 requests" in text
    assert "extend it to 50," in text  # 1,000 tokens/s x 50 ms
    assert scaled(slow([1, 4, 50])).attention_instances == 2
    assert "grid_ends" not in warned(slow([1, 4, 50]))


def test_pools_that_are_late_where_the_grid_ends_are_not_missed() -> None:
    """At 8 requests two instances take 4 + 5 ms already, more than 8.5 ms, which three meet with 7.5 requests."""
    document = slow([1, 4, 8]) | {"slo_tpot_s": 0.0085}
    assert scaled(document).attention_instances == 3
    assert "grid_ends" not in warned(document)


def test_no_baseline_warns_of_the_grid() -> None:
    problem = problem_of(slow([1, 4, 8]))
    solution = scaled(slow([1, 4, 8])).model_copy(update={"cheapest": False})
    assert "grid_ends" not in {each.code for each in warnings(problem, solution)}


def test_a_series_looks_at_its_demands() -> None:
    document = slow([1, 4, 8])
    told = series([100.0, 1000.0], **{name: document[name] for name in document if name in WHAT})
    assert "2A4E" in warned(told)["grid_ends"]


WHAT = ("num_layers", "slo_tpot_s", "attention", "moe", "comm", "a_max", "memory")


def test_pools_that_a_longer_grid_would_give_were_left_out() -> None:
    """Of 20 demands: where a longer grid of the same values gives fewer GPUs, some were left out."""
    fewer = 0
    for demand in (200.0 + 52.0 * number for number in range(20)):
        short, longer = ({**slow(grid), "demand_tokens_per_s": demand} for grid in ([1, 4, 8], [1, 4, 8, 4096]))
        short["a_max"], longer["a_max"] = table(short), table(longer)
        solution = scaled(short)
        missed = left_out(options(problem_of(short)), [demand], [solution.objective])
        best = scaled(longer)
        # The longer table goes on as the short one ends, so that it is what the search for left out pools takes.
        assert (missed is not None) == (best.objective < solution.objective), demand
        if missed is not None:
            fewer += 1
            assert (missed.pools.n_a, missed.pools.n_e) == (best.attention_instances, best.expert_instances)
    assert 0 < fewer < 20


def table(document: dict[str, Any]) -> dict[str, Any]:
    grid = document["a_max"]["batch_grid"]
    return {"kind": "table", "batch_grid": grid, "expert_instances": [4], "values": [[2.0] * len(grid)]}


def traced(tokens: int, **changes: Any) -> SizingProblem:
    layer = {"layer_id": 0, "routing": {"kind": "zipf", "tokens_per_rank": tokens, "exponent": 0.5, "seed": 1}}
    document = j(a_max={"kind": "routing"}, layers=[layer], **changes)
    problem = attach(validate(JanusProblem, document).sorted(), Beside(".")).problem
    assert isinstance(problem, SizingProblem)
    return problem


def test_a_grid_of_a_trace_need_not_be_stated() -> None:
    """600 tokens/s in 22 ms are 13.2 requests; four times as many are 52.8, so powers of two up to 64."""
    assert traced(1024).a_max.batch_grid == (1, 2, 4, 8, 16, 32, 64)
    assert traced(33).a_max.batch_grid == (1, 2, 4, 8, 16, 32)
    with pytest.raises(BadInputError, match="a layer has 1 token, which is no trace"):
        traced(1)


def test_the_grid_of_arrivals_reaches_as_far_as_their_peak(tmp_path: Path) -> None:
    """300 tokens in 100 s and then 6,000 in as many: 60 tokens/s at the peak, in 1 s 60 requests, so up to 256."""
    trace = "TIMESTAMP,ContextTokens,GeneratedTokens\n0,100,300\n150,100,6000\n"
    (tmp_path / "t.csv").write_text(trace)
    layer = {"layer_id": 0, "routing": {"kind": "zipf", "tokens_per_rank": 4096, "exponent": 0.5, "seed": 1}}
    document = j(task="series", slo_tpot_s=1.0, a_max={"kind": "routing"}, layers=[layer])
    del document["demand_tokens_per_s"]
    document["arrivals"] = {"path": "t.csv", "interval_s": 100.0}
    problem = attach(validate(JanusProblem, document).sorted(), Beside(str(tmp_path))).problem
    assert isinstance(problem, SizingProblem)
    assert (problem.a_max.batch_grid or ())[-1] == 256
