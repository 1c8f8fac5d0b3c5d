"""Demand scaled to a peak or a mean, and what is said of a trace that is repeated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from janus_cases import j

from planner import api
from planner.beside import Beside
from planner.errors import BadInputError
from planner.papers.janus.attach import attach
from planner.papers.janus.cautions import warnings
from planner.papers.janus.engines import solve
from planner.papers.janus.problem import JanusProblem, SeriesProblem
from planner.papers.janus.summaries import summary
from planner.plan import Plan
from planner.sensitivity.answers import AtValue
from planner.validation import validate
from solvers.report import Limits

TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n0,100,300\n100,100,900\n"
"""Two requests 100 s apart, so it lasts 200 s: 3 tokens/s in the first half, 9 in the second, 6 in the mean."""


def read(folder: Path, trace: str = TRACE, **arrivals: Any) -> SeriesProblem:
    (folder / "t.csv").write_text(trace)
    document = j(task="series")
    del document["demand_tokens_per_s"]
    document["arrivals"] = {"path": "t.csv", "interval_s": 100.0} | arrivals
    problem = attach(validate(JanusProblem, document).sorted(), Beside(str(folder))).problem
    assert isinstance(problem, SeriesProblem)
    return problem


@pytest.mark.parametrize(
    ("given", "demands"),
    [
        ({}, [3.0, 9.0]),
        ({"scale": 10.0}, [30.0, 90.0]),
        ({"peak_tokens_per_s": 450.0}, [150.0, 450.0]),
        ({"mean_tokens_per_s": 600.0}, [300.0, 900.0]),
        ({"scale": 1.0, "mean_tokens_per_s": 600.0}, [300.0, 900.0]),
    ],
)
def test_demand_is_scaled(tmp_path: Path, given: dict[str, float], demands: list[float]) -> None:
    assert [interval.demand_tokens_per_s for interval in read(tmp_path, **given).series] == demands


def test_only_one_scale_is_taken(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="each of scale and peak_tokens_per_s scales the demand") as raised:
        read(tmp_path, scale=2.0, peak_tokens_per_s=9.0)
    assert raised.value.where == "arrivals.peak_tokens_per_s"


def test_no_demand_is_not_scaled(tmp_path: Path) -> None:
    silent = TRACE.replace(",300", ",0").replace(",900", ",0")
    with pytest.raises(BadInputError, match="there is no demand to scale") as raised:
        read(tmp_path, silent, mean_tokens_per_s=5.0)
    assert raised.value.where == "arrivals.mean_tokens_per_s"


def planned(folder: Path, **arrivals: Any) -> Plan:
    document = j(task="series") | {"paper": "janus", "arrivals": {"path": "t.csv", "interval_s": 100.0} | arrivals}
    del document["demand_tokens_per_s"]
    path = folder / "problem.json"
    path.write_text(json.dumps(document))
    (folder / "t.csv").write_text(TRACE)
    return api.solve(str(path))


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"peak_tokens_per_s": 500.0}, "peak_tokens_per_s", 1500.0),
        ({"peak_tokens_per_s": 500.0}, "interval_s", 50.0),
        ({"scale": 50.0}, "scale", 150.0),
        ({"scale": 50.0}, "tile_to_s", 700.0),
    ],
)
def test_what_is_asked_of_arrivals_is_read_again(
    tmp_path: Path, given: dict[str, float], name: str, value: float
) -> None:
    plan = planned(tmp_path, **given)
    answer = api.what_if(plan, f"arrivals.{name}={value}")
    assert isinstance(answer, AtValue)
    fresh = planned(tmp_path, **given | {name: value}).solution.objective
    assert answer.outcome.objective == fresh != plan.solution.objective


def test_only_who_asks_about_arrivals_needs_their_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(planned(tmp_path, scale=50.0).to_bytes())
    (tmp_path / "t.csv").unlink()
    assert api.check(str(path)).violations == ()
    with pytest.raises(BadInputError, match="--data DIR") as raised:
        api.what_if(api.load(str(path)), "arrivals.scale=150")
    assert raised.value.where == "arrivals.path"


def told(problem: SeriesProblem) -> tuple[str, dict[str, str]]:
    solution = solve(problem, None, Limits())[0]
    return "\n".join(summary(problem, solution)), {each.code: each.message for each in warnings(problem, solution)}


def test_a_trace_that_is_repeated_is_warned_of(tmp_path: Path) -> None:
    """Of its 200 s 800 are made: four times."""
    lines, said = told(read(tmp_path, tile_to_s=800.0, peak_tokens_per_s=450.0))
    assert "repeated 4 times" in said["tiled"]
    assert "peak of 450 tokens/s (mean 300 tokens/s) at 00:01:40 after the first request" in lines
    assert "demand scaled to a peak of 450 tokens/s" in lines
    assert "tiled" not in told(read(tmp_path, tile_to_s=200.0))[1]
    assert "tiled" not in told(read(tmp_path))[1]
