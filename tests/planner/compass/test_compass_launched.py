"""What TransformerEngine leaves out, what it is told, and what its switches and degrees cost those who measured."""

from __future__ import annotations

from typing import Any

import pytest
from compass_cases import MILLI, Document, named, problem, solved
from compass_derived import derived, document

from planner.papers.compass.calls import calls
from planner.papers.compass.cautions import warnings
from planner.papers.compass.launch_settings import entry, flags
from planner.papers.compass.pictures import view
from planner.papers.compass.presentation import summary
from planner.papers.compass.problem import CompassProblem
from planner.view import Table

TE = {"launcher_rules": "transformer_engine"}
EXPERTS = {
    "model": "deepseek-v3",
    "extrapolate": "roofline",
    "sequence_tokens": 4096,
    "expert_parallel_size": 8,
}


def said(given: CompassProblem) -> dict[str, str]:
    return {warned.code: warned.message for warned in warnings(given, solved(given))}


def in_sequence_s(rules: str, **changes: Any) -> float:
    """A step with everything in sequence: the operators and what is known beside them."""
    made = derived(document(rules, **changes)).problem
    return solved(made).metrics.sequential_total_time_s + sum((made.beside_s or {}).values())


def priced_s(rules: str, **changes: Any) -> float:
    """The same by the prices themselves, where lines through them decide."""
    step: Any = derived(document(rules, **changes)).derive["resolved"]["step"]
    return float(sum(step["operators_in_sequence"].values()) + sum(step["beside_s"].values()))


@pytest.mark.parametrize("changes", [{}, {"micro_batches": 4}, {"passes": "forward"}])
def test_a_step_in_sequence_takes_the_same_under_all_rules(changes: dict[str, Any]) -> None:
    """Times are written with nine digits."""
    assert in_sequence_s("transformer_engine", **changes) == pytest.approx(in_sequence_s("none", **changes), rel=1e-7)


def test_latents_and_experts_are_left_out_of_the_operators_and_not_of_the_step() -> None:
    assert priced_s("transformer_engine", **EXPERTS) == pytest.approx(priced_s("none", **EXPERTS), rel=1e-7)


def test_the_collectives_of_pairs_that_are_left_out_are_named() -> None:
    beside = derived(document("transformer_engine")).problem.beside_s or {}
    assert beside["collectives of other GEMMs"] > 0
    assert "collectives of other GEMMs" not in (derived(document()).problem.beside_s or {})
    assert "experts and their dispatch" in (derived(document("transformer_engine", **EXPERTS)).problem.beside_s or {})


# --- switches and degrees -----------------------------------------------------------------------------------------

RING = named("fc1_fprop", "ag_gemm", 1.72 * MILLI, 8, 1.1 * MILLI)
FC2 = named("fc2_fprop", "gemm_rs", 1.72 * MILLI, 4, 1.39 * MILLI)
PROJ: Document = {
    name: value
    for name, value in named("proj_fprop", "gemm_rs", 0.66 * MILLI, 4, 1.0).items()
    if name != "inter_decom_table"
}


def test_an_operator_that_its_partner_keeps_in_sequence_for_want_of_data_is_named() -> None:
    text = said(problem(FC2, PROJ, **TE))["switch_partner"]
    assert text.startswith("fc2_fprop would be faster in chunks and stays in sequence")
    assert "with proj_fprop, which has no time in chunks (comm and gemm are not given" in text
    slower = named("proj_fprop", "gemm_rs", 0.66 * MILLI, 4, 9 * MILLI)
    assert "switch_partner" not in said(problem(FC2, slower, **TE)), "it has one, and that is why"


def measured(*degrees: int) -> Document:
    """An all-gather over 8 ranks with runs at some degrees."""
    fit = {"table_degree": degrees[0], "reliable": False, "sequential": "measured"}
    points = [{"degree": d, "time_s": 1.1 * MILLI} for d in degrees]
    return {**RING, "inter_decom_table": points, "table_sources": {"measured": 1.0}, "fit": fit}


def test_measured_degrees_that_cannot_be_started_are_named() -> None:
    text = said(problem(measured(2, 16), **TE))["degrees_not_started"]
    assert text == (
        "fc1_fprop: transformer_engine cannot start it in 2 or 16 chunks, as its times are for (it takes 4 or 8)"
    )
    assert "degrees_not_started" not in said(problem(measured(4, 8), **TE))
    assert "degrees_not_started" not in said(problem(measured(2, 16)))


def test_nobody_is_asked_for_more_degrees_than_there_are() -> None:
    assert "closed_form_unreliable" not in said(problem(measured(4, 8), **TE))
    assert "closed_form_unreliable" in said(problem(measured(4, 8)))


# --- what Megatron is told ----------------------------------------------------------------------------------------


def test_entries_have_the_launchers_keys() -> None:
    """p = 8: one shard a step in 8, two of them, aggregated, in 4; the pipeline in as many splits as chunks."""
    qkv = named("qkv_fprop", "ag_gemm", 1.0 * MILLI, 4, 0.8 * MILLI)
    proj = named("proj_fprop", "gemm_rs", 1.0 * MILLI, 16, 0.8 * MILLI)
    given = problem(RING, qkv, FC2, proj, **TE)
    made = {call.operator.id: entry(call) for call in calls(given, solved(given))}
    assert made == {
        "fc1_fprop": ("ring_exchange", "false", ""),
        "qkv_fprop": ("ring_exchange", "true", ""),
        "fc2_fprop": ("pipeline", "", "4"),
        "proj_fprop": ("pipeline", "", "16"),
    }
    [table] = [each for each in view(given, solved(given)).sections if isinstance(each, Table) and "cfg" in each.title]
    assert table.columns == ("operator", "method", "aggregate", "num_splits", "or off by")
    assert table.rows[0] == ("fc1_fprop", "ring_exchange", "false", "", "")


@pytest.mark.parametrize(
    ("operators", "expected"),
    [
        ([RING, FC2, PROJ], ["--tp-comm-overlap", "--disable-tp-comm-overlap-rs"]),
        ([FC2, named("proj_fprop", "gemm_rs", 1.0, 4, 0.5)], ["--tp-comm-overlap"]),
        (
            [named("qkv_fprop", "ag_gemm", 1.0, 8, 1.5), RING],
            ["--tp-comm-overlap", "tp_comm_overlap_disable_qkv"],
        ),
        (
            [named("qkv_fprop", "ag_gemm", 1.0, 8, 1.5), FC2],
            ["--tp-comm-overlap", "--disable-tp-comm-overlap-ag"],
        ),
        ([named("qkv_fprop", "ag_gemm", 1.0, 8, 1.5)], []),
    ],
)
def test_the_flags_are_those_of_megatron(operators: list[Document], expected: list[str]) -> None:
    given = problem(*operators, **TE)
    solution = solved(given)
    assert flags(calls(given, solution)) == expected
    told = f"start Megatron with {', '.join(expected)}" if expected else "start Megatron without --tp-comm-overlap"
    assert any(line.startswith(told) for line in summary(given, solution))
