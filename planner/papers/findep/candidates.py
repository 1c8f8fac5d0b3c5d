"""Candidates of any splits and micro-batches in flat arrays: replayed together, told apart by the tie rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from planner.papers.findep.closed_form import replayed_s
from planner.papers.findep.problem import FindepProblem, Order
from planner.papers.findep.space import Bools, Decision, Floats, Ints, Stretch, longest_s
from planner.papers.findep.times import Times


@dataclass(frozen=True)
class Candidates:
    """One row each. ``worth`` is what a makespan achieves, ``upper`` the most of it per second that is possible."""

    split: Ints
    m_a: Ints
    r1: Ints
    r2: Ints
    worth: Floats
    upper: Floats
    seconds: Floats
    """[kinds of task and m_e, rows], in the order of `Times`."""

    def __len__(self) -> int:
        return len(self.m_a)

    @classmethod
    def of(cls, stretch: Stretch, chosen: Bools, worth: Floats, upper: Floats) -> Candidates:
        """Those of a stretch that are ``chosen`` [r1, n]; the other arrays are of that shape too."""
        row, place = np.nonzero(chosen)
        times = stretch.times
        return cls(
            split=np.full(len(place), stretch.index, dtype=np.int64),
            m_a=stretch.m_a[place],
            r1=stretch.r1[row],
            r2=stretch.r2[place],
            worth=np.broadcast_to(worth, chosen.shape)[row, place],
            upper=upper[row, place],
            seconds=np.stack([getattr(times, field.name)[place] for field in fields(Times)]),
        )

    @classmethod
    def together(cls, parts: Sequence[Candidates]) -> Candidates:
        """All rows of some parts."""
        if not parts:
            none, empty = np.zeros(0, dtype=np.int64), np.zeros(0)
            return cls(none, none, none, none, empty, empty, np.zeros((len(fields(Times)), 0)))
        joined = (np.concatenate([getattr(part, field.name) for part in parts], axis=-1) for field in fields(cls))
        return cls(*joined)

    def take(self, rows: Bools | NDArray[np.intp]) -> Candidates:
        """Some rows, by a mask or by their places."""
        return Candidates(*(getattr(self, field.name)[..., rows] for field in fields(self)))

    def replayed(self, problem: FindepProblem) -> Floats:
        """Objectives by replay [orders, rows], -inf where the makespan is over the limit."""
        return self.objectives(problem, self.makespans_s(problem))

    def objectives(self, problem: FindepProblem, makespans_s: Floats) -> Floats:
        """What makespans [orders, rows] are worth, -inf where they are over the limit."""
        return np.where(makespans_s <= longest_s(problem), self.worth / makespans_s, -np.inf)

    def makespans_s(self, problem: FindepProblem) -> Floats:
        """D by replay of all layers [orders, rows], rows of one r1 together."""
        orders = orders_of(problem)
        found = np.empty((len(orders), len(self)))
        for r1 in np.unique(self.r1):
            rows = np.flatnonzero(self.r1 == r1)
            times = Times(*self.seconds[:, rows])
            for place, order in enumerate(orders):
                found[place, rows] = replayed_s(times, problem.num_layers, int(r1), self.r2[rows], order)
        return found

    def by_burden(self, problem: FindepProblem) -> NDArray[np.intp]:
        """The rows by the tie rule: fewer GPUs, smaller ag, r1 m_a, r1, r2."""
        ag = np.array([split.attention_gpus for split in problem.splits])[self.split]
        gpus = np.array([split.gpus for split in problem.splits])[self.split]
        return np.lexsort((self.r2, self.r1, self.r1 * self.m_a, ag, gpus))

    def decision(self, problem: FindepProblem, row: int, makespans_s: Floats, enough: float) -> Decision:
        """A row as a decision, in the first of the orders that reaches ``enough``; ``makespans_s`` [orders, rows]."""
        objective = self.objectives(problem, makespans_s)[:, row]
        makespan_s = makespans_s[:, row]
        place = int(np.flatnonzero(objective >= enough)[0])
        return Decision(
            int(self.split[row]),
            int(self.m_a[row]),
            int(self.r1[row]),
            int(self.r2[row]),
            orders_of(problem)[place],
            float(makespan_s[place]),
            float(objective[place]),
        )


def orders_of(problem: FindepProblem) -> tuple[Order, ...]:
    """The orders that differ: without shared experts both are the same, and the first allowed stands for both."""
    orders = tuple(sorted(problem.search.orders))
    return orders[:1] if problem.shared_expert is None else orders
