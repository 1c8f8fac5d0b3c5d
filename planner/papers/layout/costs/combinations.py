"""The combinations of the search lists that need a row: those that the rules leave."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from planner.derivation.training.cuts import Bools, Cuts
from planner.papers.layout.problem import LayoutProblem, Search
from planner.papers.layout.search.combinations import Inner, every_inner
from planner.papers.layout.search.exclusions import KEPT, first_broken

FIELDS = ("micro_batch", "tp", "cp", "sequence_parallel", "ep", "etp")


def wanted_cuts(problem: LayoutProblem, others: Iterable[Search] = ()) -> Cuts:
    """Those of any pipeline and any ZeRO stage, experts' degrees told apart. Rows and costs are not read.

    Where the rules leave none, all that the heads admit, and those that the rules leave of ``others``: another batch,
    other GPUs, or another value of one list may then be looked for. None may be left.
    """
    kept = _kept(problem)
    if not any(len(each) for each in kept):
        kept = [_of(problem, inner, _heads_cut(problem, inner)) for inner in every_inner(problem.search)]
        kept += [each for search in others for each in _kept(problem.model_copy(update={"search": search}))]
    stacked = np.stack([np.concatenate([getattr(each, name) for each in kept]).astype(np.int64) for name in FIELDS])
    # Each once, in the order in which it came.
    _, first = np.unique(stacked, axis=1, return_index=True)
    micro_batch, tp, cp, spread, ep, etp = stacked[:, np.sort(first)]
    return Cuts(problem.batch.sequence_length, micro_batch, tp, cp, spread == 1, ep, etp)


def without_experts(cuts: Cuts) -> Cuts:
    """Each once, however experts are cut."""
    stacked = np.stack([cuts.micro_batch, cuts.tp, cuts.cp, cuts.sequence_parallel.astype(np.int64)])
    _, first = np.unique(stacked, axis=1, return_index=True)
    found = cuts.at(first)
    one = np.ones_like(found.ep)
    return Cuts(found.sequence_length, found.micro_batch, found.tp, found.cp, found.sequence_parallel, one, one)


def _kept(problem: LayoutProblem) -> list[Cuts]:
    """What the rules leave, part by part of the search."""
    return [_of(problem, inner, _legal(problem, inner)) for inner in every_inner(problem.search)]


def _heads_cut(problem: LayoutProblem, inner: Inner) -> Bools:
    heads, kv_heads = problem.model.num_heads, problem.model.num_kv_heads
    found: Bools = (heads % inner.tp == 0) & ((kv_heads % inner.tp == 0) | (inner.tp % kv_heads == 0))
    return found


def _legal(problem: LayoutProblem, inner: Inner) -> Bools:
    kept = np.zeros(inner.size, dtype=bool)
    for pp in problem.search.pp:
        kept |= (first_broken(problem, inner, pp, 1) == KEPT).any(axis=0)
    return kept


def _of(problem: LayoutProblem, inner: Inner, kept: Bools) -> Cuts:
    some = inner.only(kept)
    return Cuts(
        problem.batch.sequence_length, some.micro_batch, some.tp, some.cp, some.sequence_parallel, some.ep, some.etp
    )
