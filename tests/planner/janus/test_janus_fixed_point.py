"""The operating point is the smallest fixed point, exactly."""

from __future__ import annotations

import janus_cases as cases
import numpy as np
import pytest

from planner.papers.janus import fixed_point, model
from planner.papers.janus.options import Point, operating_point, options


def point_of(document: cases.Document, n_a: int = 1, n_e: int = 4) -> Point | None:
    problem = cases.problem_of(document)
    return operating_point(options(problem)[0], n_a, n_e, document["demand_tokens_per_s"])


def test_a_constant_time_is_littles_law() -> None:
    # J1: TPOT = 10·(1e-3 + 4·1e-3 + 5e-4) = 0.055 s, so 200 tokens/s keep 11 in flight.
    point = point_of(cases.const(1e-3, 5e-4, [1, 64], [4, 4], 200.0))
    assert point is not None
    assert (point.batch, point.tpot_s) == pytest.approx((11.0, 0.055), rel=1e-12)


def test_less_than_one_request_is_one() -> None:
    # J2: 10 tokens/s keep 0.55 in flight.
    point = point_of(cases.const(1e-3, 5e-4, [1, 64], [4, 4], 10.0))
    assert point is not None
    assert point.batch == 1.0
    assert point.tpot_s == pytest.approx(0.055)


def test_of_three_roots_the_smallest_is_taken() -> None:
    # J3: up to 10 requests a_max = 1 + 0.5 (B - 1)/9, so 450·10·(1e-4 + 1e-3 a) = 4.95 + 0.25 (B - 1) = B at
    # B = 4.7/0.75 = 6.2667. The others, near 11.9 and 41.0, are fixed points too.
    document = cases.const(1e-4, 0.0, [1, 10, 20, 40, 80], [1, 1.5, 7, 9, 9.5], 450.0)
    point = point_of(document)
    assert point is not None
    assert point.batch == pytest.approx(4.7 / 0.75, rel=1e-12)
    assert point.tpot_s == pytest.approx(4.7 / 0.75 / 450, rel=1e-12)
    pair = model.pairs_of(options(cases.problem_of(document))[0], 1, 4)
    beyond = np.linspace(1, 80, 4000)
    sign = np.sign([450 * float(model.tpot_s(pair, np.array([batch]))[0]) - batch for batch in beyond])
    assert np.count_nonzero(np.diff(sign)) == 3


@pytest.mark.parametrize(("per_request_s", "batch"), [(0.8, 4.99 / 0.99), (0.991, 4.99 / 0.99), (0.995, None)])
def test_the_kink_of_attention_is_a_breakpoint(per_request_s: float, batch: float | None) -> None:
    # One layer, one token a second, grid [1, 20]: g(B) = max(5, alpha B) + 0.01 (B - 1). On the floor the root is
    # 4.99/0.99 = 5.0404. With 0.8 a request the kink is at 6.25 and the end of the grid, 16.19, below 20; with 0.991
    # at 5.0454, just past the root, and both points of the grid lie above, 20.01 > 20; with 0.995 at 5.025, before it,
    # and 1.005 B - 0.01 > B from there on.
    document = cases.const(5.0, 0.0, [1, 20], [0, 19], 1.0) | {"num_layers": 1}
    document["attention"] = {"floor_s": 5.0, "per_request_s": per_request_s, "per_cached_token_s": 0.0}
    document["moe"] = {"per_expert_s": 0.01, "base_s": 0.0}
    point = point_of(document)
    assert point is None if batch is None else point is not None and point.batch == pytest.approx(batch, rel=1e-12)


def test_no_batch_past_the_grid_is_made_up() -> None:
    # 0.055 s at 1200 tokens/s are 66 requests; the grid ends at 64. At 1160 they are 63.8.
    document = cases.const(1e-3, 5e-4, [1, 64], [4, 4], 1200.0)
    assert point_of(document) is None
    point = point_of(document | {"demand_tokens_per_s": 1160.0})
    assert point is not None and point.batch == pytest.approx(63.8)


def test_a_root_at_the_last_point_of_the_grid_counts() -> None:
    document = cases.const(1e-3, 0.0, [1, 64], [0, 0], 6400.0)
    point = point_of(document)
    assert point is not None and point.batch == pytest.approx(64.0)


def test_the_iteration_from_one_request_arrives_at_it() -> None:
    """The second way to the smallest root: B <- demand x TPOT(B) from 1 rises to it."""
    compared = 0
    for seed in range(40):
        problem = cases.problem_of(cases.random_document(seed))
        option = options(problem)[0]
        n_e = np.arange(option.fewest_experts, option.fewest_experts + 6)
        pairs = model.pairs_of(option, np.arange(1, 8)[:, None], n_e[n_e <= option.row_instances[-1] + 3][None, :])
        demand = np.full(len(pairs), 10.0 ** (1 + seed / 13))
        found = fixed_point.batches(pairs, demand)
        batch = np.ones(len(pairs))
        for _ in range(400):
            batch = np.clip(demand * model.tpot_s(pairs, batch), 1.0, option.largest_batch)
        # At the end of the grid some would go on.
        stuck = demand * model.tpot_s(pairs, batch) > batch * (1 + 1e-9)
        arrived = ~stuck & (np.abs(demand * model.tpot_s(pairs, batch) - batch) <= 1e-12 * batch) | (batch == 1)
        assert np.isnan(found[stuck & (batch == option.largest_batch)]).all()
        assert found[arrived] == pytest.approx(batch[arrived], rel=1e-9)
        compared += int(arrived.sum())
    assert compared > 1000


def test_a_ceiling_gives_up_what_is_surely_above_and_nothing_else() -> None:
    option = options(cases.problem_of(cases.j()))[0]
    pairs = model.pairs_of(option, np.arange(1, 9)[:, None], np.arange(4, 9)[None, :])
    free = fixed_point.batches(pairs, 600.0)
    held = fixed_point.batches(pairs, 600.0, 12.0)
    below = free <= 12.0
    assert below.any() and not below.all()
    assert held[below].tolist() == free[below].tolist()
    assert (np.isnan(held[~below]) | (held[~below] == free[~below])).all()
