"""The search finds what plain enumeration finds: the best, those after it, the front, and what fell away why."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_cases import G1, G2, G3, G4, G6, G8, Document, problem, x
from layout_random import random_problem

from planner.errors import InfeasibleError, LimitError
from planner.memory.in_flight import rank_order, walk
from planner.papers.layout.certificate import bounds
from planner.papers.layout.check import check
from planner.papers.layout.engines import solve
from planner.papers.layout.evaluate import fits
from planner.papers.layout.formulation import enumerate_all
from planner.papers.layout.layouts import TIE_ORDER
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.search.candidates import ROUNDING, candidates
from planner.papers.layout.search.rank_kinds import rank_kinds
from planner.papers.layout.search.resident import pattern
from planner.papers.layout.solution import LayoutSolution
from planner.papers.layout.step_parts import PARTS, step_parts
from solvers.report import Limits

SEEDS = st.integers(0, 10**9)
FEW = 400
"""Combinations that are enumerated in no time to speak of."""


def by(method: str, of: LayoutProblem) -> LayoutSolution:
    return solve(of, method, Limits())[0]


def drawn(seed: int) -> LayoutProblem:
    """The first small problem of a stream of random ones."""
    rng = Random(seed)
    while True:
        of = random_problem(rng)
        if of.search.combinations <= FEW:
            return of


@given(seed=SEEDS)
@settings(max_examples=40, deadline=None)
def test_the_search_states_what_exhaustion_states_to_the_last_digit(seed: int) -> None:
    of = drawn(seed)
    try:
        expected = by("exhaustive", of)
    except InfeasibleError as error:
        with pytest.raises(InfeasibleError) as caught:
            by("search", of)
        assert caught.value.as_object() == error.as_object()
        return
    found = by("search", of)
    assert found == expected
    assert check(of, found) == []


@given(seed=SEEDS)
@settings(max_examples=40, deadline=None)
def test_candidates_are_all_that_fit_with_their_peaks_and_bounds_on_their_steps(seed: int) -> None:
    of = drawn(seed)
    everything, offered = enumerate_all(of), candidates(of)
    fitting = {one.layout: one for one in everything.fitting}
    layouts = [offered.layout(index) for index in range(offered.size)]
    assert (len(layouts), set(layouts)) == (len(fitting), set(fitting))
    assert (offered.legal, offered.excluded) == (everything.legal, everything.excluded)
    for layout, bound_s, peak_bytes in zip(layouts, offered.bound_s, offered.peak_bytes, strict=True):
        one = fitting[layout]
        assert bound_s <= one.step_time_s * (1 + ROUNDING)
        assert peak_bytes == pytest.approx(one.peak_memory_bytes, rel=ROUNDING)


@given(seed=SEEDS)
@settings(max_examples=100, deadline=None)
def test_states_in_flight_peak_as_a_walk_over_the_order_of_each_rank(seed: int) -> None:
    rng = Random(seed)
    pp = rng.choice([1, 2, 3, 4, 5, 8])
    vpp = rng.choice([1, 1, 2, 3, 4]) if pp > 1 else 1
    micro_batches = rng.randint(1, 5) * pp if vpp > 1 else rng.randint(1, 12)
    cut = [rng.randint(1, 3) for _ in range(pp * vpp)]
    kinds = sorted(["dense"] * rng.randint(0, sum(cut)) + ["moe"] * sum(cut), key=lambda _: rng.random())[: sum(cut)]
    of_ranks = rank_kinds(tuple(kinds), (tuple(cut),), pp, vpp, (0, 1, 2, 3))
    held_bytes = np.array([rng.choice([0.0, 1.0, rng.random()]) for _ in range(4)])
    resident = of_ranks.resident(int(pattern(pp, vpp, np.array([micro_batches]))[0]))[0] @ held_bytes
    for place, ranks in enumerate(of_ranks.ranks[0]):
        peaks = []
        for rank in ranks:
            stored = of_ranks.stages[0, rank::pp] @ held_bytes
            order = rank_order("interleaved", rank, num_stages=pp, num_micro_batches=micro_batches, chunks_per_rank=vpp)
            peaks.append(walk(order, stored))
        assert resident[place].max() == pytest.approx(max(peaks), rel=1e-12, abs=1e-12)


@given(seed=SEEDS)
@settings(max_examples=40, deadline=None)
def test_every_neighbour_is_the_best_with_one_decision_changed(seed: int) -> None:
    of = drawn(seed)
    everything = enumerate_all(of)
    if not everything.fitting:
        return
    chosen = everything.fitting[0].layout
    places = {one.layout: one for one in [*everything.fitting, *everything.too_full]}
    cut_anew = ("pp", "vpp", "partition")
    same = {name: getattr(chosen, name) for name in TIE_ORDER} | {"partition": ()}
    for neighbour in by("search", of).neighbours:
        name = neighbour.field
        alike = [
            one
            for layout, one in places.items()
            if replace(layout, **{"partition": (), name: same[name]}) == replace(chosen, partition=())
            and layout != chosen
            and (name in cut_anew or layout.partition == chosen.partition)
            and (name == "partition" or getattr(layout, name) == neighbour.value)
        ]
        assert (neighbour.reason.startswith("rule ")) == (not alike)
        if alike:
            fitting = [one for one in alike if fits(of, one)]
            least = min(one.step_time_s for one in fitting) if fitting else None
            assert neighbour.reason.startswith("memory: ") == (not fitting)
            assert least is None or neighbour.step_time_s == pytest.approx(least, rel=2e-9)


@given(seed=SEEDS)
@settings(max_examples=40, deadline=None)
def test_bounds_hold_and_are_met_by_the_search(seed: int) -> None:
    of = drawn(seed)
    try:
        found = by("search", of)
    except InfeasibleError:
        return
    # As the search left it, found once more, and proved of a problem that was read anew.
    again = LayoutProblem.model_validate(of.model_dump())
    for asked, certify in ((of, False), (of, True), (again, False)):
        shared, met = bounds(asked, found, certify, 1.0)
        assert shared.value <= found.step_time_s * (1 + 1e-12)
        assert (met.value, met.kind, met.attained) == (found.step_time_s, "exhaustive", True)


def test_what_solving_found_is_kept_for_the_very_problem_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    of = problem(G1)
    found = by("search", of)
    dearer = of.model_copy(update={"costs": of.costs.model_copy(update={"fixed_s": 10.0})})
    assert [bound.value for bound in bounds(dearer, found, False, 1.0)][1:] == [36.4]
    # A solution that claims a better step than there is moves no bound.
    better = found.model_copy(update={"step_time_s": 1.0})
    assert bounds(of, better, False, 1.0)[1].value == 26.4
    # Nothing is searched for a bound that the search has just left.
    monkeypatch.setattr("planner.papers.layout.certificate.candidates", None)
    assert bounds(of, found, False, 1.0)[1].value == 26.4


@given(seed=SEEDS)
@settings(max_examples=40, deadline=None)
def test_the_parts_of_a_step_sum_to_it(seed: int) -> None:
    of = drawn(seed)
    for one in enumerate_all(of).fitting[:5]:
        parts = step_parts(of, one)
        assert tuple(parts) == PARTS
        assert min(parts.values()) >= 0
        assert sum(parts.values()) == pytest.approx(one.step_time_s, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("document", [G1, G2, G3, G4, G6, G8], ids=["G1", "G2", "G3", "G4", "G6", "G8"])
def test_the_cases_of_the_page_are_answered_alike_by_both_methods(document: Document) -> None:
    of = problem(document)
    found, report = solve(of, None, Limits())
    assert found == by("exhaustive", of)
    assert (report.method, report.objective, report.bound, report.bound_kind) == (
        "search", found.step_time_s, found.step_time_s, "exhaustive",
    )  # fmt: skip


def test_the_order_of_rows_changes_nothing() -> None:
    document = G8 | {"costs": G8["costs"] | {"rows": G8["costs"]["rows"][::-1]}}
    assert by("search", problem(document)) == by("search", problem(G8))


def test_a_row_more_of_degrees_that_are_not_searched_changes_nothing() -> None:
    of = problem(G6)
    narrow = of.model_copy(update={"search": of.search.model_copy(update={"tp": (2,)})})
    found = by("search", narrow)
    assert [found.tp, *(one.tp for one in found.alternatives)] == [2] * (1 + len(found.alternatives))
    assert found == by("exhaustive", narrow)


def test_keep_says_how_many_others_are_listed() -> None:
    for keep, listed in ((0, 0), (1, 1), (2, 2), (20, 2)):
        document = x(search={"pp": [1, 2, 4], "zero_stage": [0], "keep": keep})
        assert len(by("search", problem(document)).alternatives) == listed
    # The front is all of it however many others are listed.
    assert [one.pp for one in by("search", problem(document)).pareto] == [1, 2, 4]


def test_alternatives_say_why_they_lose() -> None:
    found = by("search", problem(G1))
    # 26.4 s: pp 2 takes 6 s of (4 + 1) x 6 s in its bubble, 22.7 % of 26.4 s, and reduces half the bytes;
    # pp 4 9 s of 33 s: 34.1 %.
    assert [(one.pp, one.reason) for one in found.alternatives] == [(2, "bubble +22.73 %"), (4, "bubble +34.09 %")]
    assert [one.reason for one in found.pareto] == [
        "chosen",
        "bubble +22.73 %; 36 GB less",
        "bubble +34.09 %; 54 GB less",
    ]
    assert [one.ratio for one in found.alternatives] == pytest.approx([30.8 / 26.4, 33 / 26.4], rel=1e-12)


def test_neighbours_say_what_each_decision_would_change() -> None:
    found = by("search", problem(G4))
    said = {(one.field, one.value): one.reason for one in found.neighbours}
    # G4: ZeRO 1 needs 43.5 GB of 40; without recomputation the kept layers 22 GB more than 35.5 - 17.5 GB leave.
    assert said["zero_stage", 1] == "memory: 3.5 GB over"
    assert said["zero_stage", 3].startswith("sharding +")
    assert said["recompute", "none"].startswith("memory: ")
    assert {one.reason for one in by("search", problem(G6)).neighbours if one.field == "tp"} == {"rule global_batch"}


def test_equally_fast_layouts_say_that_they_hold_more() -> None:
    # Nothing is sent and updates take no time: any ZeRO stage is as fast, and the third holds least.
    free = {"alpha_s": 0, "beta_s_per_byte": 0}
    document = x(search={"zero_stage": [0, 1, 3]}, costs__collectives={"intra": free, "inter": free})
    found = by("search", problem(document))
    assert found.zero_stage == 3
    # Of 4e9 parameters: 18 bytes each; 6 and 12 / 4; 18 / 4, and two gathered layers and one of gradients of 1e9.
    assert [(one.zero_stage, one.reason) for one in found.alternatives] == [
        (1, "as fast; 10 GB more"),
        (0, "as fast; 46 GB more"),
    ]


def test_too_many_layouts_are_a_limit_and_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.papers.layout.search.candidates.MOST_LAYOUTS", 2)
    with pytest.raises(LimitError) as caught:
        by("search", problem(G1))
    assert (caught.value.code, caught.value.where) == ("too_large", "search")
