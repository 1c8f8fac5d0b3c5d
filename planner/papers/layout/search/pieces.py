"""All that keeps the rules and has its rows, in pieces small enough for arrays; the rest is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from math import inf

import numpy as np

from planner.papers.layout.partitions import partitions
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.search.combinations import Bools, Inner, every_inner
from planner.papers.layout.search.exclusions import KEPT, data_ranks, first_broken, micro_batches
from planner.papers.layout.search.resident import pattern
from planner.papers.layout.search.rows import Rows
from planner.papers.layout.solution import RULES

AT_ONCE = 1 << 16
"""Layouts in one array: so few stay in the cache."""


@dataclass(frozen=True)
class Piece:
    """Combinations of one pipeline shape whose memory peaks at the same states, and partitions for each of them."""

    pp: int
    vpp: int
    partitions: tuple[tuple[int, ...], ...]
    inner: Inner
    allowed: Bools
    """[zero stage, combination]."""


@dataclass
class Account:
    """How many combinations broke which rule first, and how many layouts kept all but memory.

    ``least_bytes`` is the least peak of pieces of which no layout fits; exact but for rounding.
    """

    excluded: Counter[str] = field(default_factory=Counter)
    legal: int = 0
    least_bytes: float = inf


def pieces(problem: LayoutProblem, rows: Rows, account: Account) -> Iterator[Piece]:
    """Piece by piece; what falls away is counted in ``account``."""
    search = problem.search
    width = len(search.recompute)
    for pp, vpp in product(search.pp, search.vpp):
        if problem.cluster.num_gpus % pp:
            # The first of the rules, whatever the other degrees are.
            account.excluded["world_size"] += search.combinations // (len(search.pp) * len(search.vpp))
            continue
        cuts = partitions(problem.model.num_layers, pp, vpp, search.partitions)
        for inner in every_inner(search):
            broken = first_broken(problem, inner, pp, vpp)
            kept = broken == KEPT
            counts = np.bincount(broken[~kept], minlength=len(RULES))
            account.excluded.update({RULES[rule]: int(counts[rule]) * width for rule in np.flatnonzero(counts)})
            if not kept.any():
                continue
            if not cuts:
                account.excluded["partition"] += int(kept.sum()) * width
                continue
            lacking = kept & rows.missing(inner)
            account.excluded["row_not_in_table"] += int(lacking.sum()) * width
            kept &= ~lacking
            account.legal += int(kept.sum()) * width * len(cuts)
            used = kept.any(axis=0)
            yield from _alike(problem, Piece(pp, vpp, cuts, inner.only(used), kept[:, used]))


def _alike(problem: LayoutProblem, whole: Piece) -> Iterator[Piece]:
    """Parts whose peaks are at the same states, cut to size."""
    inner = whole.inner
    keys = pattern(whole.pp, whole.vpp, micro_batches(problem, inner, data_ranks(problem, inner, whole.pp)))
    treatments = len(problem.search.zero_stage) * len(problem.search.recompute)
    most = max(1, AT_ONCE // treatments)
    for key in np.unique(keys):
        places = np.flatnonzero(keys == key)
        for first in range(0, len(places), most):
            some = places[first : first + most]
            step = max(1, most // len(some))
            for start in range(0, len(whole.partitions), step):
                cuts = whole.partitions[start : start + step]
                yield Piece(whole.pp, whole.vpp, cuts, inner.only(some), whole.allowed[:, some])
