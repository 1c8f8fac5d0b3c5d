"""Janus's experts: one balance by AEBS, an a_max table, copies and placement by size; placement and AEBS against exact.

Times are of a warm process on tokens drawn with skewed popularity and by topics, so that some experts go together.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np
from expert_placement import layer_of
from measure import best_of
from numpy.typing import NDArray

from planner.papers.hiermoe.instance import Tokens
from planner.papers.janus.experts.aebs import activated, hosts_of, largest_loads
from planner.papers.janus.experts.copies import place
from planner.papers.janus.experts.layers import PAIRS
from planner.papers.janus.experts.reference import least_largest_load
from planner.papers.janus.experts.statistics import Statistics, count
from planner.papers.janus.experts.windows import row, windows_of
from planner.papers.janus.formulation import solve_model
from planner.papers.janus.placing import PAIRS as PAIRS_OF_A_PLACEMENT
from solvers.report import Limits

GRID = tuple(2**power for power in range(11))
SLOTS = 20
WINDOWS = 32


def main(smoke: bool) -> None:
    """Print times by size, then distances from the exact placement and balance over random layers."""
    tokens = _tokens(256, 8, GRID[-1] * WINDOWS)
    _balance(tokens)
    _table(tokens, range(13, 14) if smoke else range(13, 29))
    _placements((16,) if smoke else (13, 16, 32, 64), count(tokens, 256))
    _against_exact(3 if smoke else 40)
    _against_flow(tokens, 5 if smoke else 100)


def _tokens(experts: int, top_k: int, number: int) -> NDArray[np.int32]:
    _, layer = layer_of(experts, 8, (1, 2), number, top_k=top_k)
    assert isinstance(layer.routed, Tokens)
    return layer.routed.expert_ids


def _balance(tokens: NDArray[np.int32]) -> None:
    """One batch of 4,096 tokens on 16 instances of 20 slots, from ids to a_max."""
    placed = place(count(tokens, 256), SLOTS, 16, 0)
    hosts = hosts_of(placed.table, 256)
    start = np.zeros(1, np.int64)
    took, _ = best_of(20, lambda: largest_loads(activated(tokens, 4096, start, 256), hosts, 16))
    print(f"AEBS of a batch of 4,096 tokens, top 8 of 256 experts, 16 instances: {took * 1e3:.2f} ms")


def _table(tokens: NDArray[np.int32], sizes: Sequence[int]) -> None:
    statistics_of_layer = count(tokens, 256)
    placing_s, tables = best_of(
        1, lambda: [place(statistics_of_layer, SLOTS, instances, PAIRS).table for instances in sizes]
    )

    def rows() -> None:
        windows = windows_of(tokens, 256, GRID)
        for table in tables:
            row(windows, table, "mean")

    took, _ = best_of(1, rows)
    counts = windows_of(tokens, 256, GRID).counts
    print(
        f"a_max table of one layer, {len(sizes)} sizes x {len(GRID)} batches, {counts[-1]} to {counts[0]} windows: "
        f"{took:.2f} s, and {placing_s:.2f} s for the placements"
    )


def _placements(sizes: Sequence[int], of: Statistics) -> None:
    print(f"\n{'256 experts on':>14s} {'copies, placement s':>19s} {'page s':>7s} {'page/search':>11s} {'/bound':>7s}")
    for instances in sizes:
        took, best = best_of(1, lambda instances=instances: place(of, SLOTS, instances, PAIRS_OF_A_PLACEMENT))
        quick, page = best_of(1, lambda instances=instances: place(of, SLOTS, instances, 0))
        print(
            f"{instances:14d} {took:19.2f} {quick:7.2f} {page.largest / best.largest:11.3f} "
            f"{best.largest / best.least if best.least else float('nan'):7.3f}",
            flush=True,
        )


def _against_exact(number: int) -> None:
    """E of 6 to 12 on 2 to 4 instances, weights of random pairs."""
    page, search, proved = [], [], 0
    for seed in range(number):
        draw = np.random.default_rng(seed)
        E, n = int(draw.integers(6, 13)), int(draw.integers(2, 5))
        C = int(-(-E // n) + draw.integers(0, 2))
        upper = np.triu(draw.integers(0, 30, (E, E)) * (draw.random((E, E)) < 0.7), 1).astype(np.float64)
        of = Statistics(draw.integers(1, 100, E).astype(np.float64), upper + upper.T)
        found, quick = place(of, C, n, PAIRS_OF_A_PLACEMENT), place(of, C, n, 0)
        if C >= E:
            continue
        answer = solve_model(found.copies, C, n, of.together, found.table, found.least, Limits(effort=4.0))
        best = min(found.largest, answer.bound)
        if not best:
            continue
        proved += answer.bound >= found.largest - 1e-9
        page.append(quick.largest / best - 1)
        search.append(found.largest / best - 1)
    print(
        f"\n{len(search)} random layers of 6 to 12 experts: above the exact placement's bound, page "
        f"{statistics.mean(page):.2%} in the mean, {max(page):.2%} at worst; search {statistics.mean(search):.2%}, "
        f"{max(search):.2%}; {proved} proved optimal"
    )


def _against_flow(tokens: NDArray[np.int32], number: int) -> None:
    of = count(tokens, 256)
    hosts = hosts_of(place(of, SLOTS, 16, PAIRS).table, 256)
    starts = np.arange(number) * 97
    above = []
    for size in (16, 64, 256):
        active = activated(tokens, size, starts, 256)
        reached = largest_loads(active, hosts, 16)
        above += [
            int(largest) - least_largest_load(one, hosts, 16) for largest, one in zip(reached, active, strict=True)
        ]
    print(f"{len(above)} batches by AEBS: {sum(a > 0 for a in above)} above the best balance, by {max(above)} at most")
