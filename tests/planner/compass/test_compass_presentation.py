"""What is said and drawn of a Compass plan; expected figures follow from the golden cases of the page."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from compass_cases import G1, G2, G6, G7, MILLI, Document, g9, grid, named, operator, problem, solved

from planner.papers.compass.baselines import baselines
from planner.papers.compass.calls import calls, words
from planner.papers.compass.cautions import warnings
from planner.papers.compass.pictures import slower_stage, timeline, view
from planner.papers.compass.presentation import decisions, memory, metrics, shares, summary
from planner.papers.compass.problem import CompassProblem
from planner.view import Bars, Table, Timeline
from solvers.report import Limits

ROOT = Path(__file__).resolve().parents[3]
PICTURES = ROOT / "docs" / "pictures"

FC1, FC2 = G1 | {"id": "fc1", "count": 32}, G2 | {"id": "fc2", "count": 32}
SLOWED = {"contention": {"comm": 1.1, "gemm": 1.06}}


def sections(given: CompassProblem, kind: type) -> list[Any]:
    return [section for section in view(given, solved(given)).sections if isinstance(section, kind)]


def table(given: CompassProblem, title: str) -> Table:
    found: Table = next(section for section in sections(given, Table) if section.title.startswith(title))
    return found


def codes(given: CompassProblem) -> list[str]:
    return [warned.code for warned in warnings(given, solved(given))]


def lines(given: CompassProblem) -> str:
    return "\n".join(summary(given, solved(given)))


# --- what is said -------------------------------------------------------------------------------------------------


def test_the_summary_says_what_is_chosen_and_what_it_is_worth() -> None:
    # 32 (8.660 + 6.3775) ms against 32 (10.06 + 7.55) ms; fc1 saves 32 x 1.4 ms, 1.4 / 2.5725 of all.
    given = problem(FC1, FC2)
    assert summary(given, solved(given)) == [
        "2 operators, 64 calls a step: 2 in chunks (8)",
        "481.2 ms a step in these operators, 563.5 ms all in sequence: 1.171 times as fast",
        "most is gained by fc1 (8 chunks): 44.8 ms a step, 54.42 % of all",
        # T(4) of fc1 is 8.710, 0.58 % over T(8); T(16) of fc2 1.04 % over.
        "closest call: fc1, 4 chunks takes 0.58 % longer",
    ]


def test_what_is_known_beside_the_operators_dilutes_the_gain() -> None:
    # 563.52 + 400 against 481.2 + 400 ms
    given = problem(FC1, FC2, beside_s={"attention": 0.3, "weight gradients": 0.1})
    said = "(attention 300 ms, weight gradients 100 ms): 963.5 ms -> 881.2 ms, 1.093 times"
    assert f"with what is known beside them {said}" in lines(given)


def test_a_plan_without_gain_claims_none() -> None:
    given = problem(G6)
    assert "1 operator, 1 call a step: 1 in sequence" in lines(given)
    assert "1.000 times as fast" in lines(given)
    assert "most is gained" not in lines(given)


@pytest.mark.parametrize(("counts", "state"), [((1, 2), "on"), ((1, 1), "off")])
def test_the_switches_of_the_launcher_are_said(counts: tuple[int, int], state: str) -> None:
    assert f"switches of transformer_engine: reduce-scatter overlap {state}" in lines(g9(counts))


def test_what_a_switch_keeps_on_alone_is_named() -> None:
    gains = named("fc2_dgrad", "ag_gemm", 1.0, 8, 0.5)
    loses = named("qkv_fprop", "ag_gemm", 1.0, 8, 1.5)
    given = problem(gains, loses, launcher_rules="transformer_engine")
    assert "all-gather overlap on but for qkv_fprop" in lines(given)


def test_who_is_worse_off_by_a_switch_is_named_there_and_is_no_close_call() -> None:
    # proj_fprop takes 0.50 ms under the flag and 0.30 ms alone; with counts 1 and 1 fc2_fprop takes 1 ms, 0.8 ms alone
    assert "reduce-scatter overlap on (proj_fprop alone would not)" in lines(g9((1, 2)))
    assert "closest call: fc2_fprop, sequential takes 25.00 % longer" in lines(g9((1, 2)))
    assert "reduce-scatter overlap off (fc2_fprop alone would be on)" in lines(g9((1, 1)))


def test_decisions_are_words_by_operator() -> None:
    fused = G1 | {"id": "fused", "fused": [{"id": "double_ring", "time_s": 1 * MILLI}]}
    given = problem(fused, G6 | {"id": "alone"}, FC2)
    assert decisions(solved(given)) == {"operators": {"alone": "sequential", "fc2": "8 chunks", "fused": "double_ring"}}
    assert words("inter_decom", 4, None) == "4 chunks"


def test_metrics_hold_totals_speed_up_and_strategies() -> None:
    found = metrics(solved(problem(FC1, G6 | {"id": "alone"})))
    assert found["total_time_s"] == pytest.approx(32 * 8.66 * MILLI + 3.43 * MILLI)
    assert found["speedup"] == pytest.approx((32 * 10.06 + 3.43) / (32 * 8.66 + 3.43))
    assert found["operators"] == {"inter_decom": 1, "sequential": 1}


# --- shares and memory --------------------------------------------------------------------------------------------


def test_chunks_are_of_the_source_of_the_stage_that_shows() -> None:
    # G1 in 8 chunks: 8 collectives of 1.05 ms, and one GEMM chunk of 0.26 ms, of 8.66 ms
    from_table = {"sources": {"measured": 1.0}}
    given = problem(G1 | {"comm": G1["comm"] | from_table})
    found = shares(given, solved(given))
    assert found["measured"] == pytest.approx(8 * 1.05 / 8.66)
    assert found["stated"] == pytest.approx(0.26 / 8.66)


def test_a_table_a_kernel_and_a_stated_time_have_sources_of_their_own() -> None:
    # in 1.33 ms by its table, 1 ms fused, 3.43 ms stated
    given = problem(
        G7 | {"id": "a", "table_sources": {"interpolated": 1.0}},
        G1 | {"id": "b", "fused": [{"id": "ring", "time_s": 1 * MILLI, "sources": {"modelled": 1.0}}]},
        G6 | {"id": "c", "sequential_time_s": 3.43 * MILLI, "sequential_sources": {"measured": 1.0}},
    )
    found = shares(given, solved(given))
    whole = 1.33 + 1 + 3.43
    assert found["interpolated"] == pytest.approx(1.33 / whole)
    assert found["modelled"] == pytest.approx(1 / whole)
    assert found["measured"] == pytest.approx(3.43 / whole)
    assert found["stated"] == pytest.approx(0.0)


def test_memory_is_the_buffers_of_what_overlaps_by_cause() -> None:
    given = problem(
        FC1 | {"overlap_bytes": {"user buffer": 5.0, "flags": 1.0}},
        FC2 | {"overlap_bytes": {"user buffer": 7.0}},
        G6 | {"id": "alone", "overlap_bytes": 1000.0},
        memory_capacity_bytes=100.0,
    )
    rows = memory(given, solved(given))
    assert [(row.where, row.cause, row.bytes, row.capacity_bytes) for row in rows] == [
        ("each GPU", "flags", 1.0, 100.0),
        ("each GPU", "user buffer", 12.0, 100.0),
    ]
    assert "buffers of overlap: 13 B of 100 B a GPU" in lines(given)
    unlimited = given.model_copy(update={"memory_capacity_bytes": None})
    assert memory(unlimited, solved(unlimited)) == []


# --- warnings -----------------------------------------------------------------------------------------------------


def test_chunks_without_contention_are_warned_of() -> None:
    assert "contention_assumed" in codes(problem(FC1))
    assert "contention_assumed" not in codes(problem(FC1 | SLOWED))
    assert "contention_assumed" not in codes(problem(G7)), "a table holds what it holds"
    assert "contention_assumed" not in codes(problem(G6)), "nothing runs beside anything"
    said = {"contention_unmeasured": "said already"}
    assert [code for code in codes(problem(FC1, cautions=said)) if code.startswith("contention")] == [*said]


@pytest.mark.parametrize(
    ("operator", "ends"),
    [
        (G1 | {"max_degree": 4}, True),  # T(8) is less than T(4)
        (G1 | {"max_degree": 8}, False),  # T(16) is not less than T(8)
        (G1 | {"max_degree": 4, "split_extent": 256}, False),  # 256 / 64 has no divisor above 4
        (G7 | {"max_degree": 64}, True),  # the table ends at its best degree, 64 is legal
        (G7 | {"max_degree": 64, "split_extent": 32}, False),
    ],
)
def test_a_choice_at_the_end_of_its_degrees_is_warned_of(operator: Document, ends: bool) -> None:
    assert ("largest_degree" in codes(problem(operator))) == ends


def test_a_ring_has_no_more_degrees_to_ask_for() -> None:
    ring = named("fc1_fprop", "ag_gemm", 1.0, 8, 0.5)
    assert "largest_degree" not in codes(problem(ring, launcher_rules="transformer_engine"))
    assert "largest_degree" in codes(problem(ring))


def test_buffers_larger_than_a_gpu_are_warned_of() -> None:
    buffered = FC1 | {"overlap_bytes": 2e9}
    assert "buffers_exceed_memory" in codes(problem(buffered, memory_capacity_bytes=1e9))
    assert "buffers_exceed_memory" not in codes(problem(buffered, memory_capacity_bytes=2e9))


# --- what is drawn ------------------------------------------------------------------------------------------------


def test_the_tables_say_what_every_operator_does_and_why() -> None:
    given = problem(FC1, FC2, G6 | {"id": "alone"}, G7 | {"id": "tabled"})
    rows = {row[0]: row[1:] for row in table(given, "operators").rows}
    assert rows["fc1"] == ("32", "8 chunks", "8.66 ms", "1.162", "44.8 ms")
    assert rows["alone"] == ("1", "sequential", "3.43 ms", "", "")
    reasons = {row[0]: row[1:] for row in table(given, "why").rows}
    assert reasons["fc1"] == ("lines", "collective", "6.32", "-", "4 chunks", "+0.6%")
    assert reasons["fc2"] == ("lines", "GEMM", "8.66", "450", "16 chunks", "+1.0%")
    # T(8) of the table is 1.36 ms, 2.3 % over T(32)
    assert reasons["tabled"][0] == "table"
    assert reasons["tabled"][-2:] == ("8 chunks", "+2.3%")


def test_of_many_operators_those_are_shown_that_gain_the_most() -> None:
    small = [FC2 | {"id": f"x{place:02d}", "count": 1} for place in range(50)]
    found = table(problem(*small, FC1 | {"count": 1000}), "operators")
    assert found.title == "operators, the 40 of 51 that gain the most"
    assert found.rows[0][0] == "fc1"
    assert len(found.rows) == 40


@pytest.mark.parametrize("op", ["ag_gemm", "gemm_rs"])
@pytest.mark.parametrize("slowed", [{}, SLOWED])
@pytest.mark.parametrize("base", [G1, G2])
def test_the_timeline_ends_when_equation_2_says(base: Document, slowed: Document, op: str) -> None:
    given = problem(base | slowed | {"op": op})
    [call] = calls(given, solved(given))
    drawn = timeline(call)
    assert drawn.end == pytest.approx(call.choice.time_s)
    assert [track.name for track in drawn.tracks] == (
        ["collective", "GEMM"] if op == "ag_gemm" else ["GEMM", "collective"]
    )
    assert [len(track.spans) for track in drawn.tracks] == [call.choice.degree] * 2
    first, second = (track.spans for track in drawn.tracks)
    assert all(given.end <= used.start + 1e-12 for given, used in zip(first, second, strict=True))
    for spans in (first, second):
        assert all(a.end <= b.start + 1e-12 for a, b in pairwise(spans))


def test_the_operator_that_gains_the_most_is_drawn_and_rings_are_not() -> None:
    [drawn] = sections(problem(FC1, FC2), Timeline)
    assert drawn.title == "fc1 in 8 chunks: 8.66 ms"
    assert sections(problem(G6), Timeline) == []
    assert sections(g9((1, 2)), Timeline) == [], "there are no stages to draw"
    ring = G1 | {"id": "fc1_fprop", "gemm_name": "fc1_fprop", "tp_size": 8}
    assert sections(problem(ring, launcher_rules="transformer_engine"), Timeline) == []


def test_a_table_is_drawn_by_lines_and_says_so() -> None:
    # 64 rows in 32 chunks by the lines of G7: 10 + 31.25 us a collective, 10 + 25 us a GEMM, 31 x 41.25 + 76.25 us
    [drawn] = sections(problem(G7), Timeline)
    assert drawn.title == "x in 32 chunks: 1.33 ms by its table, 1.355 ms by its lines as drawn"


def test_the_bars_hold_the_step_by_strategy() -> None:
    fused = G1 | {"id": "fused", "fused": [{"id": "ring", "time_s": 1 * MILLI}]}
    [bars] = sections(problem(FC2, fused, G6 | {"id": "alone"}, beside_s={"attention": 0.1}), Bars)
    alone, planned = bars.bars
    assert amounts(alone.segments) == {
        "in sequence": pytest.approx(32 * 7.55 * MILLI + 10.06 * MILLI + 3.43 * MILLI),
        "beside": 0.1,
    }
    assert amounts(planned.segments) == {
        "in sequence": pytest.approx(3.43 * MILLI),
        "chunks": pytest.approx(32 * 6.3775 * MILLI),
        "fused": pytest.approx(1 * MILLI),
        "beside": 0.1,
    }
    assert bars.kinds == ("in sequence", "chunks", "fused", "beside")


def amounts(segments: Sequence[Any]) -> dict[str, float]:
    return {segment.kind: segment.amount for segment in segments}


def test_the_slower_stage_changes_at_the_crossing() -> None:
    [fc2] = problem(FC2 | {"split_extent": 1024, "split_multiple": 1}).operators
    assert [slower_stage(fc2, d) for d in (449, 451)] == ["GEMM", "collective"], "d× is 450"


# --- the picture of the page --------------------------------------------------------------------------------------


@pytest.fixture
def regimes() -> ModuleType:
    """The script as a module; it is no part of a package."""
    spec = importlib.util.spec_from_file_location("regimes", PICTURES / "regimes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_drawn_from_the_288_operators(regimes: ModuleType) -> None:
    drawn = (PICTURES / "regimes.svg").read_bytes()
    assert drawn == regimes.draw().encode(), "python docs/pictures/regimes.py draws it anew"
    assert len(grid()["operators"]) == 288
    # the page's count of strategies
    for said in ("12 in sequence", "92 in chunks", "112 fused, single ring", "72 fused, double ring"):
        assert f">{said}<".encode() in drawn


def test_the_page_shows_the_picture() -> None:
    page = (ROOT / "docs" / "papers" / "compass.md").read_text(encoding="utf-8")
    assert "(../pictures/regimes.svg)" in page


# --- ties, units, tables without lines ----------------------------------------------------------------------------


def test_a_tie_is_called_one_without_a_switch() -> None:
    """The page's G4: 2 and 4 chunks take 112 s each."""
    given = problem(operator(2.0, 100.0, 0.0, 16.0, 32))
    assert "closest call: x, 4 chunks ties" in lines(given)
    assert table(given, "why").rows[0][-2:] == ("4 chunks", "ties")


def test_stated_times_that_no_overlap_explains_are_warned_of() -> None:
    """G7 with its table in milliseconds, and with one in hundredths of its seconds."""
    points = G7["inter_decom_table"]
    for factor, told in ((1e3, True), (0.01, True), (1.0, False)):
        scaled = [{"degree": point["degree"], "time_s": point["time_s"] * factor} for point in points]
        assert ("times_disagree" in codes(problem(G7 | {"inter_decom_table": scaled}))) == told


def test_a_tiny_time_is_so_many_times_as_fast() -> None:
    given = problem(G7 | {"inter_decom_table": [{"degree": 2, "time_s": 1e-30}]})
    assert "1.82e+27 times as fast" in lines(given)


def test_operators_without_lines_are_gated_by_their_table_and_the_baseline_says_so() -> None:
    quick, slow = named("fc1_fprop", "ag_gemm", 3.0, 8, 2.0), named("qkv_fprop", "ag_gemm", 3.0, 8, 4.0)
    found = {one.name: one for one in baselines(problem(quick, slow), Limits())}
    for name in ("gated", "naive_closed_form"):
        assert found[name].objective == 2.0 + 3.0
        assert found[name].note.endswith("; by the table where there are no lines")
    assert found["gated"].note.startswith("d = tp_size")
    lined = {one.name: one for one in baselines(problem(FC1), Limits())}
    assert lined["gated"].note == "d = tp_size"
