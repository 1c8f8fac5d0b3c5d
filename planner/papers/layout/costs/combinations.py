"""The combinations of the search lists that need a row: those that the rules leave."""

from __future__ import annotations

import numpy as np

from planner.derivation.training.cuts import Bools, Cuts
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.search.combinations import Inner, every_inner
from planner.papers.layout.search.exclusions import KEPT, first_broken


def wanted_cuts(problem: LayoutProblem) -> Cuts:
    """Those of any pipeline and any ZeRO stage, experts' degrees told apart. Rows and costs are not read.

    All of them where the rules leave none: another batch, or other GPUs, may then be looked for.
    """
    every = list(every_inner(problem.search))
    kept = [_legal(problem, inner) for inner in every]
    if not any(each.any() for each in kept):
        kept = [np.ones(inner.size, dtype=bool) for inner in every]
    found = [_of(problem, inner, each) for inner, each in zip(every, kept, strict=True)]
    fields = ("micro_batch", "tp", "cp", "sequence_parallel", "ep", "etp")
    columns = (np.concatenate([getattr(each, name) for each in found]) for name in fields)
    return Cuts(problem.batch.sequence_length, *columns)


def without_experts(cuts: Cuts) -> Cuts:
    """Each once, however experts are cut."""
    stacked = np.stack([cuts.micro_batch, cuts.tp, cuts.cp, cuts.sequence_parallel.astype(np.int64)])
    _, first = np.unique(stacked, axis=1, return_index=True)
    found = cuts.at(first)
    one = np.ones_like(found.ep)
    return Cuts(found.sequence_length, found.micro_batch, found.tp, found.cp, found.sequence_parallel, one, one)


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
