"""Kernels over a ring (page, equation 7 and section 3.6) against their steps; and what a reader is warned of."""

from __future__ import annotations

import pytest
from compass_cases import G1, Document, named, problem, solved

from planner.papers.compass.cautions import warnings
from planner.papers.compass.problem import CompassProblem
from planner.papers.compass.ring import fused_s, hop_s, ring_exchange_s, shard_gemm_s

TE = {"launcher_rules": "transformer_engine"}
STATED: Document = {**G1, "contention": {"comm": 1.0, "gemm": 1.001}}


def replayed_s(steps: int, gemm: float, hops: list[float]) -> float:
    """Step by step: hop i brings what step i + 1 multiplies, and each of both waits for its own last one."""
    arrived, multiplied = 0.0, gemm
    for hop in hops:
        arrived += hop
        multiplied = max(multiplied, arrived) + gemm
    assert len(hops) == steps - 1
    return multiplied


@pytest.mark.parametrize(("gemm", "hop"), [(3.0, 2.0), (2.0, 3.0), (1.0, 1.0), (1.0, 5.0)])
@pytest.mark.parametrize("p", [2, 3, 8])
def test_a_fused_ring_takes_what_its_steps_take(p: int, gemm: float, hop: float) -> None:
    assert fused_s(p, gemm, hop) == replayed_s(p, gemm, [hop] * (p - 1))


def test_a_shard_and_a_hop_are_their_share_of_the_whole() -> None:
    assert shard_gemm_s(0.8, 8, slowdown=1.25, tile_s=0.01) == pytest.approx(1.25 * 0.1 + 0.01)
    one = hop_s(8e9, 8, 50e9, 3e-6, directions=1)
    two = hop_s(8e9, 8, 50e9, 3e-6, directions=2)
    assert (one, two) == pytest.approx((0.02 + 3e-6, 0.01 + 3e-6))


def test_pairs_of_shards_start_with_one_hop_and_run_p_over_2_steps() -> None:
    assert ring_exchange_s(4, 1.0, 2.0, 3.0) == 1.0 + 3.0 + 3 * 3.0
    assert ring_exchange_s(4, 1.0, 4.0, 3.0) == 1.0 + 3.0 + 3 * 4.0
    assert ring_exchange_s(1, 1.0, 4.0, 3.0) == 4.0, "one step of both shards"


def codes(given: CompassProblem) -> list[str]:
    return [warned.code for warned in warnings(given, solved(given))]


def test_a_plan_of_stated_times_warns_of_nothing() -> None:
    assert codes(problem(STATED)) == []


def test_what_the_prices_say_is_passed_on() -> None:
    assert codes(problem(G1, cautions={"contention_unmeasured": "taken as 1"})) == ["contention_unmeasured"]


def test_a_fit_that_is_not_to_be_believed_is_named() -> None:
    doubted: Document = {**STATED, "fit": {"max_relative_error": 0.12, "regret": 0.03, "reliable": False}}
    given = problem({**doubted, "id": "y"}, {**STATED, "fit": {"reliable": True}})
    (warned,) = warnings(given, solved(given))
    assert warned.code == "closed_form_unreliable"
    assert "runs of y is" in warned.message
    assert "(errors up to 12.00 %, regret up to 3.00 %)" in warned.message


def test_a_fit_to_too_few_or_too_near_degrees_says_that_alone() -> None:
    """Four exact degrees, all within four times: nothing else is wrong with them."""
    points = [{"degree": d, "time_s": 0.01} for d in (4, 8, 16)]
    near: Document = {
        **STATED,
        "inter_decom_table": points,
        "fit": {"max_relative_error": 1e-6, "regret": 0.0, "table_degree": 4, "reliable": False},
    }
    (warned, *_) = warnings(problem(near), solved(problem(near)))
    assert "(runs at fewer than 4 degrees, or all within 8 times)" in warned.message
    spread: Document = {**near, "inter_decom_table": [*points, {"degree": 32, "time_s": 0.01}]}
    spread["fit"] = {"max_relative_error": 0.07, "regret": 0.0, "table_degree": 4, "reliable": False}
    (warned, *_) = warnings(problem(spread), solved(problem(spread)))
    assert "(errors up to 7.00 %)" in warned.message


def test_a_ring_that_is_priced_as_chunks_is_named_unless_a_table_prices_it() -> None:
    ring = {**STATED, "id": "qkv", "gemm_name": "qkv_fprop", "tp_size": 8}
    given = problem(ring, **TE)
    assert solved(given).choices[0].degree == 8
    assert codes(given) == ["ring_by_chunks"]
    assert codes(problem(named("qkv_fprop", "ag_gemm", 3.0, 8, 2.0), **TE)) == []
