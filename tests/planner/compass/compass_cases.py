"""Operators of the page's golden cases, and random ones, as documents and typed."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from numpy.random import Generator

from planner.papers.compass.engines import solve
from planner.papers.compass.problem import CompassProblem
from planner.papers.compass.solution import CompassSolution
from planner.validation import validate
from solvers.report import Limits

Document = dict[str, Any]
T = TypeVar("T")

MICRO, MILLI = 1e-6, 1e-3
GRID = Path(__file__).resolve().parents[3] / "benchmarks" / "overlap_grid.py"


def operator(
    a_c: float, v_c: float, a_g: float, v_g: float, extent: int, multiple: int = 1, **changes: Any
) -> Document:
    """One operator as the page writes them: (a_c, v_c | a_g, v_g; E/e), seconds."""
    return {
        "id": "x",
        "op": "ag_gemm",
        "split_extent": extent,
        "split_multiple": multiple,
        "max_degree": 10**9,
        "comm": {"startup_s": a_c, "payload_s": v_c},
        "gemm": {"startup_s": a_g, "payload_s": v_g},
    } | changes


G1 = operator(50 * MICRO, 8 * MILLI, 10 * MICRO, 2 * MILLI, 4096, 64)
G2 = operator(30 * MICRO, 1.5 * MILLI, 20 * MICRO, 6 * MILLI, 4096, 64, op="gemm_rs")
G3 = operator(80 * MICRO, 2 * MILLI, 5 * MICRO, 2.6 * MILLI, 2048, 16)
G4 = operator(2.0, 100.0, 0.0, 16.0, 32)
G5 = operator(10 * MICRO, 2 * MILLI, 2 * MICRO, 1.2 * MILLI, 90)
G6 = operator(20 * MICRO, 3 * MILLI, 10 * MICRO, 0.4 * MILLI, 1024, contention={"comm": 1.5, "gemm": 1.0})
G7 = operator(
    10 * MICRO,
    1 * MILLI,
    10 * MICRO,
    0.8 * MILLI,
    64,
    inter_decom_table=[
        {"degree": d, "time_s": t * MILLI} for d, t in ((2, 1.60), (4, 1.52), (8, 1.36), (16, 1.45), (32, 1.33))
    ],
)


def named(name: str, op: str, sequential_s: float, degree: int, time_s: float, count: int = 1) -> Document:
    """An operator of TransformerEngine with one degree in its table and no stages."""
    return {
        "id": name,
        "op": op,
        "gemm_name": name,
        "count": count,
        "tp_size": 8,
        "split_extent": 4096,
        "max_degree": 64,
        "sequential_time_s": sequential_s,
        "inter_decom_table": [{"degree": degree, "time_s": time_s}],
    }


def g9(counts: tuple[int, int]) -> CompassProblem:
    """The reduce-scatter pair of the page, with its counts."""
    proj = named("proj_fprop", "gemm_rs", 0.30 * MILLI, 2, 0.50 * MILLI, counts[0])
    fc2 = named("fc2_fprop", "gemm_rs", 1.00 * MILLI, 4, 0.80 * MILLI, counts[1])
    return problem(proj, fc2, launcher_rules="transformer_engine")


def problem(*operators: Document, **changes: Any) -> CompassProblem:
    """A validated problem in canonical form."""
    return validate(CompassProblem, {"operators": list(operators)} | changes).sorted()


def solved(given: CompassProblem, method: str | None = None) -> CompassSolution:
    """Its plan."""
    return solve(given, method, Limits())[0]


def grid() -> Document:
    """The 288 operators, from the list that the benchmarks share."""
    spec = importlib.util.spec_from_file_location("overlap_grid", GRID)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    document: Document = module.grid_document()
    return document


def pick(draw: Generator, values: Sequence[T]) -> T:
    """One of them."""
    return values[int(draw.integers(len(values)))]


def random_operator(draw: Generator, identity: str, free: bool = False) -> Document:
    """One with everything an operator may have; ``free``: stages alone, so that the closed form applies.

    Small whole times make ties common, others none.
    """
    extent = pick(draw, (60, 64, 90, 96, 97, 360, 720, 1024))
    if draw.random() < 0.5:
        a_c, v_c, a_g, v_g = (float(draw.integers(low, high)) for low, high in ((0, 4), (0, 30), (0, 4), (1, 30)))
    else:
        a_c, v_c, a_g, v_g = (float(x) for x in 10 ** draw.uniform((-6, -4, -6, -4), (-3, -1, -3, -1)))
    mu = [1.0, 1.0] if draw.random() < 0.5 else (1 + draw.exponential(0.3, 2)).tolist()
    made = operator(
        a_c,
        v_c,
        a_g,
        v_g,
        extent,
        pick(draw, (1, 1, 2, 7)),
        id=identity,
        op=pick(draw, ("ag_gemm", "gemm_rs", "gemm_ar", "a2a_gemm")),
        max_degree=pick(draw, (1, 3, 16, 64, 4096)),
        count=int(draw.integers(1, 5)),
        contention={"comm": mu[0], "gemm": mu[1]},
    )
    if free:
        return made
    whole_s = a_c + v_c + a_g + v_g
    if draw.random() < 0.4:
        times = draw.choice([0.5, 0.75, 0.75, 1.0], 2) * whole_s
        made["fused"] = [{"id": name, "time_s": float(t)} for name, t in zip("ba", times, strict=True)]
    legal = [
        d
        for d in range(2, min(made["max_degree"], extent) + 1)
        if extent % made["split_multiple"] == 0 and extent // made["split_multiple"] % d == 0
    ]
    if legal and draw.random() < 0.4:
        listed = sorted(int(d) for d in draw.choice(legal, min(len(legal), 3), replace=False))
        made["inter_decom_table"] = [
            {"degree": d, "time_s": pick(draw, (0.5, 0.7, 0.9, 1.1)) * whole_s} for d in listed
        ]
    if draw.random() < 0.2:
        made["sequential_time_s"] = pick(draw, (0.5, 0.75, 1.0)) * whole_s
    return made
