"""Every layout that keeps the rules and fits, with its bound and its peak; and how many others broke which rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.errors import LimitError
from planner.papers.layout.evaluate import evaluate, fits
from planner.papers.layout.layouts import Layout
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.search.bounds import least_step_s
from planner.papers.layout.search.combinations import Bools, Floats, Ints
from planner.papers.layout.search.data_groups import data_groups
from planner.papers.layout.search.exclusions import data_ranks, micro_batches
from planner.papers.layout.search.layer_times import layer_times
from planner.papers.layout.search.memory import peak_bytes
from planner.papers.layout.search.pieces import Account, Piece, pieces
from planner.papers.layout.search.rank_kinds import rank_kinds, weighed
from planner.papers.layout.search.resident import pattern
from planner.papers.layout.search.rows import Rows, rows_of
from planner.papers.layout.solution import RULES

ROUNDING = 1e-10
"""Relative: what arrays and the evaluation of one layout may differ by, with room to spare."""
MOST_LAYOUTS = 50_000_000
"""As many as take half a minute and two gigabytes."""


@dataclass(frozen=True)
class Found:
    """Layouts of one piece with their figures; arrays of one length."""

    piece: Piece
    bound_s: Floats
    peak_bytes: Floats
    at: Ints
    """Places in an array of the axes [partition, zero stage, recompute, combination]."""

    def only(self, kept: Bools) -> Found:
        """Those that a mask keeps."""
        return Found(self.piece, self.bound_s[kept], self.peak_bytes[kept], self.at[kept])

    def layout(self, problem: LayoutProblem, place: int) -> Layout:
        """The one at a place of the arrays."""
        inner, search = self.piece.inner, problem.search
        # Of one place plain numbers are several times as quick as arrays.
        rest, combination = divmod(int(self.at[place]), inner.size)
        rest, recompute = divmod(rest, len(search.recompute))
        partition, stage = divmod(rest, len(search.zero_stage))
        return Layout(
            tp=int(inner.tp[combination]),
            cp=int(inner.cp[combination]),
            pp=self.piece.pp,
            vpp=self.piece.vpp,
            ep=int(inner.ep[combination]),
            etp=int(inner.etp[combination]),
            zero_stage=search.zero_stage[stage],
            recompute=search.recompute[recompute],
            micro_batch=int(inner.micro_batch[combination]),
            sequence_parallel=bool(inner.sequence_parallel[combination]),
            partition=self.piece.partitions[partition],
        )


@dataclass(frozen=True)
class Candidates:
    """Layouts that keep the rules and fit, in no order that means anything.

    ``legal`` counts those that keep all rules but memory, ``excluded`` combinations, for memory layouts, by the first
    rule they break; ``least_bytes`` is the least peak where none fits, exact but for rounding.
    """

    problem: LayoutProblem
    found: Sequence[Found]
    legal: int
    excluded: dict[str, int]
    least_bytes: float

    @property
    def size(self) -> int:
        """How many fit."""
        return len(self.bound_s)

    @cached_property
    def bound_s(self) -> Floats:
        """What no step is shorter than, but by rounding."""
        return np.concatenate([np.empty(0), *(each.bound_s for each in self.found)])

    @cached_property
    def peak_bytes(self) -> Floats:
        """Of the fullest rank; exact but for rounding."""
        return np.concatenate([np.empty(0), *(each.peak_bytes for each in self.found)])

    @cached_property
    def _starts(self) -> Ints:
        return np.cumsum([0, *(len(each.bound_s) for each in self.found)])

    def layout(self, index: int) -> Layout:
        """The one at a place of the arrays."""
        found = int(np.searchsorted(self._starts, index, side="right")) - 1
        return self.found[found].layout(self.problem, index - int(self._starts[found]))


def candidates(problem: LayoutProblem) -> Candidates:
    """All of a problem. Raises LimitError (too_large)."""
    rows, account = rows_of(problem), Account()
    found = []
    for piece in pieces(problem, rows, account):
        if account.legal > MOST_LAYOUTS:
            message = f"more than {MOST_LAYOUTS:,} layouts keep the rules: shorter lists, or partitions even alone"
            raise LimitError(message, code="too_large", where="search")
        found.append(_fitting(problem, rows, piece, account))
    fit = sum(len(each.bound_s) for each in found)
    excluded = {**account.excluded, "memory": account.legal - fit}
    return Candidates(
        problem,
        found,
        account.legal,
        {rule: excluded[rule] for rule in RULES if excluded.get(rule)},
        account.least_bytes,
    )


def _fitting(problem: LayoutProblem, rows: Rows, piece: Piece, account: Account) -> Found:
    """Those of the piece that fit."""
    inner, pp, vpp = piece.inner, piece.pp, piece.vpp
    room = problem.cluster.capacity_bytes
    priced, groups = rows.priced(inner, pp), data_groups(problem, inner, pp)
    each = micro_batches(problem, inner, data_ranks(problem, inner, pp))
    kinds = rank_kinds(problem.model.kinds, piece.partitions, pp, vpp, rows.kinds)
    resident = kinds.resident(int(pattern(pp, vpp, each[:1])[0]))
    params = weighed(kinds.layers, priced.params), weighed(kinds.layers, priced.expert_params)
    peak = peak_bytes(problem, inner, kinds, resident, priced, params, groups, rows.recomputed)
    allowed = piece.allowed[:, None]
    at = np.flatnonzero(allowed & (peak <= room * (1 + ROUNDING)))
    if not len(at):
        account.least_bytes = min(account.least_bytes, float(np.where(allowed, peak, np.inf).min()))
        return Found(piece, np.empty(0), np.empty(0), at)
    times = layer_times(problem, inner, pp, priced, groups, rows.recomputed)
    bound = least_step_s(problem, kinds, times, params, groups, each)
    found = Found(piece, np.broadcast_to(bound, peak.shape).reshape(-1)[at], peak.reshape(-1)[at], at)
    return _certain(problem, found, room)


def _certain(problem: LayoutProblem, found: Found, room: float) -> Found:
    """Without those that fit by the rounding of arrays alone."""
    near = np.flatnonzero(found.peak_bytes >= room * (1 - ROUNDING))
    if not len(near):
        return found
    kept = np.ones(len(found.bound_s), dtype=bool)
    kept[near] = [fits(problem, evaluate(problem, found.layout(problem, int(place)), 0.0)) for place in near]
    return found.only(kept)
