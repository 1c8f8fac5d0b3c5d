"""The scan equals brute force on every input; the closed form, its regimes and the lower bound are what they claim."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from compass_cases import Document, named, operator, problem, random_operator, solved

from planner.papers.compass.baselines import baselines
from planner.papers.compass.candidates import candidates
from planner.papers.compass.certificate import bounds, least_s
from planner.papers.compass.check import check
from planner.papers.compass.closed_form import comm_bound, crossing, gemm_bound, proposed_degrees, real_optimum
from planner.papers.compass.degrees import divisors, legal_degrees
from planner.papers.compass.engines import METHODS
from planner.papers.compass.problem import AG_NAMES, RS_NAMES, CompassProblem, Operator
from planner.papers.compass.times import Costs, costs_of, inter_decom_s
from solvers.pipeline import Pipeline, Run
from solvers.report import Limits

Way = tuple[str, int, str | None]

SCALED = (1e-9, 1e12)


def brute(given: CompassProblem, made: Operator) -> dict[Way, float]:
    """Everything an operator may do by the page's words, every degree tried, in the order of ties."""
    te = given.launcher_rules == "transformer_engine"
    found: dict[Way, float] = {}
    comm, gemm, mu = made.comm, made.gemm, made.contention

    def seconds(d: int) -> float:
        if comm is None or gemm is None:
            return math.nan
        t_c, t_g = comm.startup_s + comm.payload_s / d, gemm.startup_s + gemm.payload_s / d
        return t_c + t_g + (d - 1) * max(mu.comm * t_c, mu.gemm * t_g)

    if "sequential" in made.allowed_strategies:
        found["sequential", 1, None] = seconds(1) if made.sequential_time_s is None else made.sequential_time_s
    if "inter_decom" in made.allowed_strategies:
        table = None if made.inter_decom_table is None else {p.degree: p.time_s for p in made.inter_decom_table}
        for d in range(2, min(made.max_degree, made.split_extent) + 1):
            legal = made.split_extent % made.split_multiple == 0
            legal = legal and (made.split_extent // made.split_multiple) % d == 0
            if te and made.op == "ag_gemm":
                legal = legal and made.tp_size is not None and d in (made.tp_size, made.tp_size / 2)
            legal = legal and not (te and made.op in ("gemm_ar", "a2a_gemm"))
            if legal and (table is None or d in table) and (table is not None or comm is not None):
                found["inter_decom", d, None] = seconds(d) if table is None else table[d]
    if "intra_fusion" in made.allowed_strategies and not te:
        for kernel in sorted(made.fused, key=lambda kernel: kernel.id):
            found["intra_fusion", 1, kernel.id] = kernel.time_s
    return found


def first_best(found: dict[Way, float]) -> Way:
    least = min(found.values())
    return next(way for way, time_s in found.items() if time_s <= least * (1 + 1e-9))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_equals_brute_force_with_tables_ties_and_fused_kernels(method: str) -> None:
    draw = np.random.default_rng(1)
    given = problem(*(random_operator(draw, f"o{i:04}") for i in range(1500)))
    solution = solved(given, method)
    for made, choice in zip(given.operators, solution.choices, strict=True):
        found = brute(given, made)
        assert (choice.strategy, choice.degree, choice.variant) == first_best(found), made
        assert choice.time_s == pytest.approx(found[first_best(found)], rel=1e-12)
    assert check(given, solution) == []
    strategies = {choice.strategy for choice in solution.choices}
    assert strategies == {"sequential", "inter_decom", "intra_fusion"}


def launched(names: list[str], way: tuple[Way, ...]) -> bool:
    """Whether some setting of the launcher's four options makes just these operators overlap (page, section 3.6)."""
    on = {name for name, one in zip(names, way, strict=True) if one[0] != "sequential"}
    for rs, ag, no_qkv, no_fc1 in itertools.product((False, True), repeat=4):
        started = set(RS_NAMES) if rs else set()
        if ag:
            started |= set(AG_NAMES) - ({"qkv_fprop"} if no_qkv else set()) - ({"fc1_fprop"} if no_fc1 else set())
        if started & set(names) == on:
            return True
    return False


def random_layer(draw: np.random.Generator) -> CompassProblem:
    """Some of the six names, few degrees, times in steps so that settings of a switch often tie."""
    names = [name for name in AG_NAMES + RS_NAMES if draw.random() < 0.8] or ["proj_fprop"]
    operators: list[Document] = []
    for name in names:
        op = "ag_gemm" if name in AG_NAMES else "gemm_rs"
        made = named(name, op, float(draw.integers(2, 6)), 4, float(draw.integers(2, 6)), int(draw.integers(1, 3)))
        if draw.random() < 0.5:
            made["inter_decom_table"].append({"degree": 8, "time_s": float(draw.integers(2, 6))})
        if draw.random() < 0.1:
            made["allowed_strategies"] = ["inter_decom", "intra_fusion"]
        operators.append(made)
    return problem(*operators, launcher_rules="transformer_engine")


def test_switches_are_settled_as_by_enumeration_of_all_settings() -> None:
    draw = np.random.default_rng(2)
    for _ in range(150):
        given = random_layer(draw)
        names = [str(made.gemm_name) for made in given.operators]
        offered = [brute(given, made) for made in given.operators]
        least = min(
            sum(made.count * found[one] for made, found, one in zip(given.operators, offered, way, strict=True))
            for way in itertools.product(*offered)
            if launched(names, way)
        )
        for method in METHODS:
            solution = solved(given, method)
            assert solution.metrics.total_time_s == pytest.approx(least, rel=1e-12)
            assert check(given, solution) == []


def test_baselines_are_legal_under_switches_and_never_better_than_the_plan() -> None:
    draw = np.random.default_rng(3)
    for _ in range(60):
        given = random_layer(draw)
        best = solved(given).metrics.total_time_s
        for baseline in baselines(given, Limits()):
            if baseline.objective is None:
                assert not baseline.feasible
                assert baseline.note
                continue
            assert baseline.solution is not None
            assert check(given, baseline.solution) == [], baseline.name
            assert baseline.objective >= best * (1 - 1e-9), baseline.name


def test_baselines_are_never_better_than_the_plan_and_their_plans_pass_the_check() -> None:
    draw = np.random.default_rng(4)
    given = problem(*(random_operator(draw, f"o{i:04}") | {"tp_size": 8} for i in range(400)))
    best = solved(given).metrics.total_time_s
    found = baselines(given, Limits())
    assert [one.name for one in found] == [
        "sequential",
        "launcher_default",
        "fixed_d",
        "decompose_only",
        "fuse_only",
        "naive_closed_form",
        "gated",
    ]
    for baseline in found:
        assert baseline.solution is not None
        assert baseline.objective is not None
        assert check(given, baseline.solution) == [], baseline.name
        assert best * (1 - 1e-9) <= baseline.objective


def test_the_closed_form_proposes_what_the_scan_finds_on_10500_operators() -> None:
    draw = np.random.default_rng(5)
    for start in range(0, 10_500, 3500):
        operators = [random_operator(draw, f"o{i:05}", free=True) for i in range(start, start + 3500)]
        given = problem(*(one | {"allowed_strategies": ["inter_decom", "sequential"]} for one in operators))
        costs = costs_of(given.operators)
        degrees = [legal_degrees(made) for made in given.operators]
        proposed = proposed_degrees(costs, degrees)
        different = 0
        for index, legal in enumerate(degrees):
            times = inter_decom_s(costs.of(index), np.array(legal, dtype=np.float64))
            tied = times <= times.min(initial=np.inf) * (1 + 1e-9)
            scanned = legal[int(tied.argmax())] if legal else None
            different += scanned != proposed[index]
        assert different == 0


def random_costs(seed: int, number: int) -> Costs:
    draw = np.random.default_rng(seed)
    a_c, v_c, a_g, v_g = 10 ** draw.uniform(-6, -2, (4, number))
    mu = 1 + draw.exponential(0.2, (2, number)) * (draw.random(number) < 0.5)
    return Costs(a_c, v_c, a_g, v_g, *mu)


def test_the_larger_curve_is_the_time_of_equation_2_at_every_degree() -> None:
    costs = random_costs(6, 2000)
    for d in (1, 2, 3, 17, 512):
        larger = np.maximum(comm_bound(costs).at(d), gemm_bound(costs).at(d))
        assert larger == pytest.approx(inter_decom_s(costs, d), rel=1e-12)


def test_the_regimes_of_the_page_give_the_real_optimum_of_8000_operators() -> None:
    """The table of section 3.3, row by row; roots below 1 are clamped to 1."""
    costs = random_costs(7, 8000)
    found = real_optimum(costs)
    third, fourth, cross = comm_bound(costs).optimum(), gemm_bound(costs).optimum(), crossing(costs)
    payload_comm = costs.mu_c * costs.v_c >= costs.mu_g * costs.v_g
    startup_comm = costs.mu_c * costs.a_c >= costs.mu_g * costs.a_g
    seen = set()
    for i in range(8000):
        low, high = (third[i], fourth[i]) if payload_comm[i] else (fourth[i], third[i])
        if payload_comm[i] == startup_comm[i]:
            expected = low
        else:
            at = max(float(cross[i]), 1.0)
            expected = low if low <= at else max(high, at)
        seen.add((bool(payload_comm[i]), bool(startup_comm[i])))
        costs_i = costs.of(i)
        assert float(inter_decom_s(costs_i, found[i])) == pytest.approx(
            float(inter_decom_s(costs_i, expected)), rel=1e-8
        )
    assert len(seen) == 4


def test_the_bound_of_equation_9_is_never_above_the_best_choice() -> None:
    draw = np.random.default_rng(8)
    given = problem(*(random_operator(draw, f"o{i:04}") for i in range(2000)))
    offered = candidates(given)
    least, best = least_s(given, offered), offered.least_s()
    assert (least <= best * (1 + 1e-12)).all()
    assert (least > 0).all()
    # It is a bound on real degrees: often met, and seldom far.
    assert np.median(least / best) > 0.99
    combinatorial, exhaustive = bounds(given, solved(given), True, 1.0)
    assert combinatorial.value <= exhaustive.value * (1 + 1e-12)


@pytest.mark.parametrize("factor", SCALED)
def test_choices_do_not_depend_on_the_unit_of_time(factor: float) -> None:
    draw = np.random.default_rng(9)
    documents = [random_operator(draw, f"o{i:03}") for i in range(300)]

    def scaled(value: object) -> object:
        if isinstance(value, dict):
            return {
                name: inner * factor if name.endswith("_s") and isinstance(inner, float) else scaled(inner)
                for name, inner in value.items()
            }
        return [scaled(inner) for inner in value] if isinstance(value, list) else value

    plain, other = problem(*documents), problem(*(scaled(document) for document in documents))  # type: ignore[arg-type]
    for first, second in zip(solved(plain).choices, solved(other).choices, strict=True):
        assert (first.strategy, first.degree, first.variant) == (second.strategy, second.degree, second.variant)


def test_without_contention_the_time_is_that_of_a_replay_of_the_chunks_in_either_order() -> None:
    """Equation 2 with mu = 1 is d equal jobs through two machines, each serving in order."""
    pipeline = Pipeline((Run(0, 0), Run(1, 1, feed=0)))
    costs = random_costs(10, 500)
    costs = Costs(costs.a_c, costs.v_c, costs.a_g, costs.v_g, np.ones(500), np.ones(500))
    for d in (1, 2, 3, 8, 64):
        stages = (costs.a_c + costs.v_c / d, costs.a_g + costs.v_g / d)
        for order in (stages, stages[::-1]):
            assert pipeline.makespan(order, (d, d)) == pytest.approx(inter_decom_s(costs, d), rel=1e-12)


def test_divisors_are_those_of_a_loop_over_all_numbers() -> None:
    for number in (1, 2, 17, 36, 360, 997, 4096, 30030, 131072):
        for most in (1, 2, 6, 64, 10**9):
            assert list(divisors(number, most)) == [d for d in range(2, min(most, number) + 1) if number % d == 0]


def test_divisors_of_a_large_extent_are_all_there() -> None:
    """10^9 = 2^9 5^9 has 10 x 10 divisors."""
    assert len(divisors(10**9, 10**9)) == 99
    assert divisors(10**9, 64) == (2, 4, 5, 8, 10, 16, 20, 25, 32, 40, 50, 64)
    assert divisors(2**31 - 1, 10**9) == ()
    # 3,491,888,400 has 1920, the most of any number below 2^32.
    assert len(divisors(3_491_888_400, 2**32)) == 1919


@pytest.mark.parametrize(
    ("changes", "strategy", "degree"),
    [
        pytest.param({"split_extent": 4093}, "sequential", 1, id="a prime extent above the cap"),
        pytest.param({"split_extent": 100, "split_multiple": 64}, "sequential", 1, id="a multiple that divides not"),
        pytest.param({"max_degree": 1}, "sequential", 1, id="a cap of one"),
        pytest.param({"comm": {"startup_s": 0.0, "payload_s": 0.0}}, "sequential", 1, id="no communication: all tie"),
        pytest.param({"gemm": {"startup_s": 0.0, "payload_s": 0.0}}, "sequential", 1, id="no GEMM: all tie"),
        pytest.param(
            {"comm": {"startup_s": 0.0, "payload_s": 3.0}, "gemm": {"startup_s": 0.0, "payload_s": 2.0}},
            "inter_decom",
            64,
            id="no start-ups: the largest legal degree",
        ),
        pytest.param({"contention": {"comm": 50.0, "gemm": 50.0}}, "sequential", 1, id="heavy contention"),
        pytest.param(
            {"split_extent": 48, "split_multiple": 1, "max_degree": 10**9}, "inter_decom", 6, id="a cap above E"
        ),
    ],
)
def test_degenerate_operators(changes: Document, strategy: str, degree: int) -> None:
    """Section 9 of the page. The last: 50 us d + 2 ms / d over the divisors of 48 is least at 6 (sqrt(40) = 6.3)."""
    base = operator(50e-6, 8e-3, 10e-6, 2e-3, 4096, 64, max_degree=64)
    given = problem(base | changes)
    solution = solved(given)
    assert (solution.choices[0].strategy, solution.choices[0].degree) == (strategy, degree)
    assert check(given, solution) == []
