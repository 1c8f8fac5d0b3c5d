"""Problems without a plan are named, with what is needed, what there is, and a change that is enough."""

from __future__ import annotations

import math
from typing import Any

import hiermoe_cases as cases
import numpy as np
import pytest

from planner.errors import InfeasibleError, LimitError
from planner.papers.hiermoe.bounds.layer_bound import layer_bound
from planner.papers.hiermoe.exact.enumeration import tables
from planner.papers.hiermoe.exact.load_model import least_peak_load
from planner.papers.hiermoe.exchange.loads import expert_loads
from planner.papers.hiermoe.exchange.tables import moved_count
from planner.papers.hiermoe.exchange.time import rank_loads
from planner.papers.hiermoe.infeasibility import diagnose, within_limits
from planner.papers.hiermoe.instance import compile_case
from solvers.report import Limits

Document = dict[str, Any]


def refused(document: Document) -> InfeasibleError:
    with pytest.raises(InfeasibleError) as caught:
        diagnose(cases.problem_of(document))
    return caught.value


def limits_refused(document: Document) -> InfeasibleError:
    with pytest.raises(InfeasibleError) as caught:
        within_limits(compile_case(cases.problem_of(document)), Limits())
    return caught.value


def relaxed(error: InfeasibleError, document: Document) -> Document:
    """The document with the error's own relaxation."""
    assert error.relaxation is not None and error.relaxation.enough
    *path, last = error.relaxation.field.split(".")
    made = cases.copied(document)
    inner = made
    for name in path:
        inner = inner.setdefault(name, {})
    inner[last] = error.as_object()["smallest_relaxation"]["value"]  # type: ignore[index]
    return made


# Two experts on three ranks have 2·(3 - 1) = 4 copies beside the first ones; 4 + 3 slots put two on a rank.
def test_more_copies_than_ranks_are_refused() -> None:
    document = cases.document(3, 2, 1, cases.mask([]), redundant_slots=7)
    error = refused(document)
    assert (error.code, error.exit_code, error.where) == ("replicas_exceed_ranks", 3, "redundant_slots")
    assert (error.required, error.available) == (7, 4)
    assert error.relaxation is not None and error.relaxation.proven and error.relaxation.value == 4
    diagnose(cases.problem_of(relaxed(error, document)))
    diagnose(cases.problem_of(document | {"forbid_same_rank_replicas": False}))


# Two slots on a rank in each of two layers, 10 bytes each: 40 bytes.
def test_experts_beyond_the_memory_of_a_gpu_are_refused() -> None:
    document = cases.golden_1()
    document["layers"].append({"layer_id": 1, "routing": document["layers"][0]["routing"]})
    document["costs"]["expert_bytes"] = 10
    document["topology"]["expert_memory_bytes_per_gpu"] = 39
    error = refused(document)
    assert (error.code, error.exit_code) == ("expert_bytes_exceed_memory", 3)
    assert error.where == "topology.expert_memory_bytes_per_gpu"
    assert (error.required, error.available) == (40, 39)
    assert error.relaxation is not None and error.relaxation.proven and error.relaxation.value == 40
    diagnose(cases.problem_of(relaxed(error, document)))


def loads_only(loads: list[float], gpus: int = 2, **changes: Any) -> Document:
    routing = {"kind": "loads", "tokens_per_rank": sum(loads) / gpus, "expert_load": loads}
    return cases.document(gpus, len(loads), 1, routing, **changes)


# 9 of 12 on one expert: its rank has at least 9 + 1 = 10 of a mean of 6, whatever is put beside it.
def test_a_load_limit_below_what_the_busiest_expert_takes_is_refused() -> None:
    document = loads_only([9.0, 1.0, 1.0, 1.0], search={"max_load_ratio": 1.5})
    error = limits_refused(document)
    assert (error.code, error.exit_code, error.where) == ("load_limit", 3, "search.max_load_ratio")
    assert error.required == pytest.approx(10 / 6) and error.available == 1.5
    assert error.relaxation is not None and error.relaxation.proven
    within_limits(compile_case(cases.problem_of(relaxed(error, document))), Limits())


# The three 8s are in two bins: two of them together with the least of the rest have 16 of a mean of 13.
def test_two_experts_that_must_share_a_rank_refute_a_limit() -> None:
    document = loads_only([8.0, 8.0, 8.0, 1.0, 1.0, 0.0], search={"max_load_ratio": 1.2})
    error = limits_refused(document)
    assert error.code == "load_limit" and error.required == pytest.approx(16 / 13)
    within_limits(compile_case(cases.problem_of(relaxed(error, document))), Limits())


# Whole loads of 23 in all cannot be even: the least is 7 + 3 + 2 = 12 of a mean of 11.5. Means show only 11.5; the
# largest and the two smallest 10; two of the three largest and the smallest 11.
def test_a_load_limit_that_only_trying_refutes_is_refused() -> None:
    document = loads_only([7.0, 5.0, 5.0, 3.0, 2.0, 1.0], search={"max_load_ratio": 1.02})
    case = compile_case(cases.problem_of(document))
    assert layer_bound(case, case.layers[0]).peak_load == pytest.approx(11.5)
    error = limits_refused(document)
    assert error.code == "load_limit" and error.required == pytest.approx(12 / 11.5)
    assert error.relaxation is not None and error.relaxation.proven
    within_limits(compile_case(cases.problem_of(relaxed(error, document))), Limits())


@pytest.mark.parametrize("seed", range(10))
def test_the_least_peak_load_is_that_of_enumeration(seed: int) -> None:
    source = cases.seeded(seed)
    document = loads_only([float(v) for v in source.integers(0, 30, 6)], gpus=int(source.choice([2, 3])))
    case = compile_case(cases.problem_of(document))
    layer = case.layers[0]
    least = min(float(rank_loads(case, layer, t).max()) for t in tables(case, renamed=True))
    found = least_peak_load(case, layer, Limits())
    assert found.proved and found.least == least
    assert found.table is not None
    assert float(expert_loads(case, layer)[found.table].reshape(case.G, -1).sum(axis=1).max()) == least


# Contiguous: 8 + 8 of 18 on rank 0, ratio 16/9. One of the 8s and one of the 1s have to change places: two moves.
def budgeted(**search: Any) -> Document:
    return loads_only([8.0, 8.0, 1.0, 1.0], search={"max_load_ratio": 1.0} | search)


def test_a_move_budget_that_keeps_loads_uneven_is_refused() -> None:
    document = budgeted(max_moved_experts=1)
    error = limits_refused(document)
    assert (error.code, error.exit_code, error.where) == ("move_budget", 3, "search.max_moved_experts")
    assert (error.required, error.available) == (2, 1)
    assert error.relaxation is not None and error.relaxation.proven
    # A field of whole numbers is relaxed to one.
    assert repr(error.relaxation.value) == "2"
    within_limits(compile_case(cases.problem_of(relaxed(error, document))), Limits())


def test_a_budget_in_bytes_is_named_in_bytes() -> None:
    document = budgeted(max_moved_bytes=15.0)
    document["costs"]["expert_bytes"] = 10
    error = limits_refused(document)
    assert (error.code, error.where) == ("move_budget", "search.max_moved_bytes")
    assert (error.required, error.available) == (20, 15)
    within_limits(compile_case(cases.problem_of(relaxed(error, document))), Limits())


def test_layers_share_the_move_budget() -> None:
    document = budgeted(max_moved_experts=3)
    document["layers"].append(document["layers"][0] | {"layer_id": 1})
    error = limits_refused(document)
    assert (error.code, error.required, error.available) == ("move_budget", 4, 3)
    found = within_limits(compile_case(cases.problem_of(relaxed(error, document))), Limits())
    assert len(found) == 2


@pytest.mark.parametrize("seed", range(12))
def test_what_is_returned_keeps_the_limits_with_fewest_moves(seed: int) -> None:
    source = cases.seeded(seed)
    kind = "loads" if seed % 2 else "mask"
    document = cases.random_document(source, gpus=2, experts_per_gpu=3, kinds=(kind,))
    document["search"] = {"max_load_ratio": float(source.uniform(1.0, 1.5))}
    document["layers"][0]["initial_physical_to_logical"] = [int(e) for e in source.permutation(6)]
    case = compile_case(cases.problem_of(document))
    layer = case.layers[0]
    fewest = math.inf
    for table in tables(case, renamed=False):
        loads = rank_loads(case, layer, table)
        if loads.max() <= document["search"]["max_load_ratio"] * loads.mean() * (1 + 1e-9):
            fewest = min(fewest, moved_count(layer.current, table, case.G))
    if math.isinf(fewest):
        assert limits_refused(document).code == "load_limit"
        return
    (found,) = within_limits(case, Limits())
    assert moved_count(layer.current, found, case.G) == fewest


# One source, one expert asked for by all: with a copy on each of two ranks the nearest serves all of it, so a rank has
# all of the load, twice the mean.
def test_with_replicas_what_one_source_asks_of_one_expert_stays_together() -> None:
    tokens = [(0, (0,))] * 4
    document = cases.document(2, 3, 1, cases.mask(tokens), redundant_slots=1, search={"max_load_ratio": 1.5})
    error = limits_refused(document)
    assert error.code == "load_limit" and error.required == 2.0
    assert "needed at least" in "\n".join(error.lines())


def test_what_is_not_settled_is_a_limit_and_no_infeasibility() -> None:
    # Eight ranks, 24 experts in 32 slots: no bound excludes 1.0001, and there are too many tables to try.
    source = cases.seeded(3)
    document = cases.document(
        8,
        24,
        2,
        cases.random_tokens(source, 8, 24, 2, 1000),
        redundant_slots=8,
        search={"max_load_ratio": 1.0001},
    )
    case = compile_case(cases.problem_of(document))
    with pytest.raises(LimitError) as caught:
        within_limits(case, Limits())
    assert (caught.value.code, caught.value.exit_code) == ("limits_unproved", 4)


def test_a_current_placement_within_the_limits_stays() -> None:
    case = compile_case(cases.problem_of(cases.golden_1() | {"search": {"max_load_ratio": 1.0}}))
    (found,) = within_limits(case, Limits())
    assert np.array_equal(found, case.layers[0].current)
