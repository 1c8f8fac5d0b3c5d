"""AEBS: the page's golden, its rule word for word, and how near it is to the best choice of copies."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from janus_experts_cases import aebs
from numpy.random import Generator

from planner.papers.janus.experts.aebs import activated, hosts_of, instance_loads, largest_loads
from planner.papers.janus.experts.copies import place
from planner.papers.janus.experts.placement import Ints, greedy
from planner.papers.janus.experts.reference import least_largest_load
from planner.papers.janus.experts.replicas import replica_counts
from planner.papers.janus.experts.statistics import count
from planner.routing.zipf import draw


def random_table(rng: Generator, E: int, n: int, slots: int) -> Ints:
    load = rng.zipf(1.6, E).astype(float)
    return greedy(load, np.zeros((E, E)), replica_counts(load, n, slots), slots, n)


def test_golden_j9_heuristic_gives_2_where_1_is_possible() -> None:
    hosts = hosts_of(np.array([[1, 2], [0, 2], [0, 1]]), 3)
    one_token = activated(np.array([[0, 1, 2]], np.int32), 1, np.array([0]), 3)
    three_tokens = activated(np.array([[0], [1], [2]], np.int32), 3, np.array([0]), 3)
    for active in (one_token, three_tokens):
        # 0 -> instance 1, 1 -> instance 0, 2 -> instance 0, the lower id of two with one each.
        assert instance_loads(active, hosts, 3).tolist() == [[2, 1, 0]]
        assert least_largest_load(active[0], hosts, 3) == 1


def test_many_batches_at_once_are_each_balanced_by_the_rule() -> None:
    rng = np.random.default_rng(0)
    for E, n, slots in ((6, 3, 3), (12, 4, 5), (20, 7, 3), (9, 2, 9), (5, 1, 5)):
        table = random_table(rng, E, n, slots) if slots < E else np.tile(np.arange(E), (n, 1))
        active = rng.random((30, E)) < rng.random((30, 1))
        loads = instance_loads(active, hosts_of(table, E), n)
        for row, batch in zip(loads.tolist(), active, strict=True):
            assert row == aebs(set(np.flatnonzero(batch).tolist()), table.tolist())


def test_an_idle_batch_has_no_load() -> None:
    hosts = hosts_of(np.array([[0, 1], [0, 1]]), 2)
    assert largest_loads(np.zeros((1, 2), bool), hosts, 2).tolist() == [0]


def test_experts_of_a_batch_count_once() -> None:
    ids = np.array([[0, 1], [0, 1], [1, 3]], np.int32)
    windows = activated(ids, 2, np.array([0, 1]), 4)
    assert windows.tolist() == [[True, True, False, False], [True, True, False, True]]


def test_the_reference_is_the_least_of_all_choices() -> None:
    rng = np.random.default_rng(4)
    for _ in range(30):
        E, n = 6, 3
        table = random_table(rng, E, n, 4)
        hosts = hosts_of(table, E)
        active = rng.random(E) < 0.7
        asked = np.flatnonzero(active).tolist()
        choices = product(*(hosts[e].tolist() for e in asked))
        least = min(max(np.bincount(choice, minlength=n)) if choice else 0 for choice in choices)
        assert least_largest_load(active, hosts, n) == least


@pytest.mark.parametrize(("E", "n", "slots"), [(256, 16, 20), (160, 16, 27), (12, 4, 5)])
def test_aebs_is_within_one_of_the_best_choice(E: int, n: int, slots: int) -> None:
    rng = np.random.default_rng(7)
    for _ in range(10):
        table = random_table(rng, E, n, slots)
        hosts = hosts_of(table, E)
        active = rng.random((1, E)) < rng.uniform(0.1, 1)
        reached = largest_loads(active, hosts, n)[0]
        assert 0 <= reached - least_largest_load(active[0], hosts, n) <= 1


@pytest.mark.parametrize(("instances", "mean"), [(16, 10.0), (12, 13.4)])
def test_golden_j13_uniform_routing(instances: int, mean: float) -> None:
    # E 160, K 6, C 27, B 64: the mean of 40 runs of uniform routing, whose spread is below 0.5 a run.
    tokens = draw(1, 40 * 64, 160, 6, 0.0, 3)
    table = place(count(tokens.expert_ids, 160), 27, instances, 0).table
    active = activated(tokens.expert_ids, 64, np.arange(40) * 64, 160)
    assert largest_loads(active, hosts_of(table, 160), instances).mean() == pytest.approx(mean, abs=0.4)
