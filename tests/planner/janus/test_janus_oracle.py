"""The search beside brute force: pools, ties, alternatives, operating points and refusals on random problems.

Brute force tries every pair of pools and finds each fixed point twice. Its own goldens are the page's.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise
from typing import Any

import janus_oracle as oracle
import pytest

from planner.errors import InfeasibleError
from planner.papers.janus.check import check
from planner.papers.janus.engines import solve
from planner.papers.janus.options import operating_point, options
from planner.papers.janus.problem import JanusProblem, SizingProblem
from planner.papers.janus.solution import ScalingSolution
from planner.validation import validate
from solvers.report import Limits

Document = dict[str, Any]


def searched(document: Document, method: str = "search") -> ScalingSolution:
    """The search's answer, which the check accepts."""
    problem = validate(JanusProblem, document)
    solution, _ = solve(problem, method, Limits())
    assert check(problem, solution) == []
    assert isinstance(solution, ScalingSolution)
    return solution


METHODS = ("search", "enumerate")


def compare(document: Document, seen: Counter[str]) -> None:
    """Nothing of the answers, or of the refusals, differs from brute force."""
    ranked = oracle.carriers(document)
    for method in METHODS:
        if ranked:
            compare_answer(document, method, ranked, seen)
        else:
            compare_refusal(document, method, seen)


def compare_answer(document: Document, method: str, ranked: list[oracle.Pools], seen: Counter[str]) -> None:
    solution = searched(document, method)
    listed = [(each.attention_instances, each.expert_instances, each.device) for each in solution.alternatives]
    assert listed == [(each.n_a, each.n_e, each.device) for each in ranked[:6]]
    for each, pools in zip(solution.alternatives, ranked, strict=False):
        assert math.isclose(each.batch, pools.batch, rel_tol=1e-9)
        assert math.isclose(each.tpot_s, pools.tpot_s, rel_tol=1e-9)
        assert math.isclose(each.objective, pools.objective, rel_tol=1e-9)
    seen["feasible"] += 1
    seen["with prices"] += solution.objective != solution.total_instances
    seen["of a device"] += solution.device is not None
    seen["launcher rules"] += document.get("launcher_rules") == "vllm_afd"
    seen["one request"] += solution.batch == 1
    seen["at the SLO"] += math.isclose(solution.tpot_s, document["slo_tpot_s"], rel_tol=1e-9)
    pairs = list(pairwise(ranked[:6]))
    seen["tied cost"] += any(math.isclose(one.objective, two.objective, rel_tol=1e-9) for one, two in pairs)
    seen["tied TPOT"] += any(
        one.total == two.total and math.isclose(one.tpot_s, two.tpot_s, rel_tol=1e-9) for one, two in pairs
    )
    seen["several roots"] += roots(dict(oracle.resolved(document))[solution.device], ranked[0], document) > 1


def roots(own: Document, pools: oracle.Pools, document: Document) -> int:
    """Fixed points of one pair: how often demand falls behind the batch or gets ahead of it."""
    points = oracle.breakpoints(own, pools.n_a, pools.n_e)
    demand = document["demand_tokens_per_s"]
    ahead = [point > demand * oracle.tpot(own, pools.n_a, pools.n_e, point) for point in points]
    return sum(one != other for one, other in pairwise(ahead))


def compare_refusal(document: Document, method: str, seen: Counter[str]) -> None:
    expected = oracle.refusal(document)
    with pytest.raises(InfeasibleError) as caught:
        solve(validate(JanusProblem, document), method, Limits())
    error = caught.value
    # Where no field of the page's helps, more GPUs may.
    more_gpus = expected.code in ("joint", "batch_limit") and error.code == "gpu_limit"
    assert error.code == expected.code or more_gpus
    if expected.required is not None:
        assert error.required is not None
        assert math.isclose(error.required, expected.required, rel_tol=1e-9)
    seen[error.code] += 1


KINDS = {
    "feasible",
    "with prices",
    "of a device",
    "launcher rules",
    "one request",
    "at the SLO",
    "tied cost",
    "tied TPOT",
    "several roots",
    "tpot_slo",
    "attention_memory",
    "launcher_rules",
}
"""What random problems have to have shown, so that agreement says something."""


def test_both_methods_agree_with_brute_force_on_random_problems() -> None:
    seen: Counter[str] = Counter()
    for seed in range(140):
        compare(oracle.random_problem(random.Random(seed)), seen)
    assert all(seen[kind] >= 2 * len(METHODS) for kind in KINDS), seen


def test_every_pair_of_j_has_the_operating_point_of_brute_force() -> None:
    problem = validate(JanusProblem, oracle.example())
    assert isinstance(problem, SizingProblem)
    [option] = options(problem)
    for n_a, n_e in oracle.all_pairs(oracle.example()):
        for demand in (1.0, 100.0, 600.0, 1500.0, 3000.0):
            point, batch = operating_point(option, n_a, n_e, demand), oracle.root(oracle.example(), n_a, n_e, demand)
            assert (point is None) == (batch is None)
            if point is not None and batch is not None:
                assert math.isclose(point.batch, batch, rel_tol=1e-9)
                assert math.isclose(point.tpot_s, oracle.tpot(oracle.example(), n_a, n_e, batch), rel_tol=1e-9)


def test_brute_force_finds_the_pages_answer() -> None:
    # J4: (1, 6) of 15 feasible pairs among 30, then (2, 6) and (1, 7).
    ranked = oracle.carriers(oracle.example())
    assert [(pools.n_a, pools.n_e) for pools in ranked[:3]] == [(1, 6), (2, 6), (1, 7)]
    assert (len(ranked), len(oracle.all_pairs(oracle.example()))) == (15, 30)
    assert ranked[0].batch == pytest.approx(12.589716033232275, rel=1e-12)
    assert ranked[0].tpot_s == pytest.approx(0.020982860055387124, rel=1e-12)
    assert ranked[1].tpot_s == pytest.approx(0.018727, abs=5e-7)


@pytest.mark.parametrize(
    ("document", "batch", "tpot_s"),
    [
        (oracle.const(1e-3, 5e-4, [1, 100], [4.0, 4.0], 200.0), 11.0, 0.055),  # J1: 10 x 5.5e-3 x 200
        (oracle.const(1e-3, 5e-4, [1, 100], [4.0, 4.0], 10.0), 1.0, 0.055),  # J2: 0.55 <= 1
        (oracle.const(1e-4, 0.0, [1, 10, 20, 40, 80], [1.0, 1.5, 7.0, 9.0, 9.5], 450.0), 6.266667, 0.0139259),  # J3
    ],
)
def test_of_several_fixed_points_the_smallest_is_found_both_ways(
    document: Document, batch: float, tpot_s: float
) -> None:
    found = oracle.root(document, 1, 4, document["demand_tokens_per_s"])
    assert found == pytest.approx(batch, rel=1e-6)
    solution = searched(document)
    assert (solution.batch, solution.tpot_s) == (pytest.approx(batch, rel=1e-6), pytest.approx(tpot_s, rel=1e-5))


@pytest.mark.parametrize(
    ("change", "code", "required"),
    [
        ({"slo_tpot_s": 0.01}, "tpot_slo", 0.01490411),  # J6
        ({"slo_tpot_s": 0.05, "memory": {"capacity_bytes": 1.05e10}}, "attention_memory", 1.2e10),  # J7
        ({"limits": {"max_expert_instances": 3}}, "expert_slots", 4),  # J8
    ],
)
def test_what_the_page_refuses_is_refused_with_what_is_needed(
    change: dict[str, Any], code: str, required: float
) -> None:
    document = oracle.example()
    for name, value in change.items():
        document[name] = document[name] | value if isinstance(value, dict) else value
    assert oracle.refusal(document).code == code
    with pytest.raises(InfeasibleError) as caught:
        solve(validate(JanusProblem, document), None, Limits())
    assert (caught.value.code, caught.value.required) == (code, pytest.approx(required, rel=1e-6))


def test_a_little_demand_takes_the_smallest_pools() -> None:
    solution = searched(oracle.example() | {"demand_tokens_per_s": 1e-6, "slo_tpot_s": 1.0})
    assert (solution.attention_instances, solution.expert_instances, solution.batch) == (1, 4, 1.0)


def test_one_expert_instance_has_no_deviation() -> None:
    # n_e = 1: ln 1 = 0 leaves the mean and one more. At B = 64 all 4 experts are active: min(4, 2 B, 4 + 1).
    document = oracle.example() | {
        "num_experts": 4,
        "slots_per_instance": 4,
        "a_max": {"kind": "balanced_bound", "batch_grid": [1, 64]},
        "slo_tpot_s": 1.0,
    }
    assert oracle.activated(document, 1, 64.0) == 4
    compare(document, Counter())
    assert searched(document).expert_instances == 1


def test_placements_of_small_layers_are_those_of_brute_force() -> None:
    draw = random.Random(3)
    for _ in range(4):
        E, instances = draw.randint(2, 5), draw.randint(2, 3)
        slots = -(-E // instances) + draw.randint(0, 1)
        together = {(i, j): float(draw.randint(0, 9)) for i in range(E) for j in range(i + 1, E) if draw.random() < 0.8}
        loads = [float(draw.randint(0, 20)) for _ in range(E)]
        batches = [[draw.sample(range(E), draw.randint(1, E)) for _ in range(3)]]
        document = {
            "task": "placement",
            "num_experts": E,
            "expert_instances": instances,
            "slots_per_instance": slots,
            "expert_load": loads,
            "coactivation": [[i, j, weight] for (i, j), weight in sorted(together.items())],
            "batches": batches,
        }
        problem = validate(JanusProblem, document)
        copies = oracle.ruled_replicas(loads, instances, slots)
        best = oracle.best_coactivation(copies, instances, slots, together)
        solution, _ = solve(problem, None, Limits())
        assert check(problem, solution) == []
        assert solution.objective == best, document


def test_of_two_equally_fast_ways_the_direct_one_is_named() -> None:
    # Two nodes of four: the second direct message takes as long as the multicast would, and rounding says no more.
    document = oracle.example()
    document["comm"]["multicast"] = document["comm"]["network"]
    solution = searched(document)
    assert solution.expert_instances in (5, 6, 7, 8)
    assert solution.layer.comm_case == 1
