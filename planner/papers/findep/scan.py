"""The search (page equations 12 and 13): bounds say what a candidate could reach at best, replay scores it.

A candidate is left out only if a proved bound shows that it does not beat one that was replayed. So the answer is the
best of the box over both orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.papers.findep.any_order import least_makespan_s
from planner.papers.findep.candidates import Candidates, orders_of
from planner.papers.findep.in_order import least_in_order_s
from planner.papers.findep.problem import FindepProblem, Split
from planner.papers.findep.space import TIE, Decision, Ints, longest_s, stretches, tokens

Floats = NDArray[np.float64]
Goal = Callable[[FindepProblem, Split, Ints, Ints], Floats]
"""What a candidate achieves in one makespan, by split, m_a and r1: the most of it per second is the best."""

BATCH = 4
"""Candidates replayed at first before looking again; doubled each time."""


@dataclass(frozen=True)
class Scanned:
    """``best`` is None where no candidate meets the limit; ``free_order_bound`` holds for any order in the box."""

    best: Decision | None
    free_order_bound: float
    replayed: int


@dataclass(frozen=True)
class _Gathered:
    """The best objective replayed, the candidates that could reach it, and what no order can exceed."""

    best: float
    candidates: Candidates
    free_order_bound: float
    replayed: int


def scan(problem: FindepProblem, goal: Goal = tokens) -> Scanned:
    """The best candidate by exact pruning, and the bound for any order."""
    gathered = _gather(problem, goal)
    best, more = _best_objective(problem, gathered.candidates, gathered.best)
    count = gathered.replayed + more
    if best == -np.inf:
        return Scanned(None, gathered.free_order_bound, count)
    decision, more = _least_burden(problem, gathered.candidates, best)
    return Scanned(decision, gathered.free_order_bound, count + more)


def free_order_bound(problem: FindepProblem) -> float:
    """What no schedule of the box, whatever the order of its tasks, can exceed; -inf where nothing fits."""
    return _gather(problem, tokens, np.inf).free_order_bound


def better_than(problem: FindepProblem, objective: float) -> tuple[float, float]:
    """The best objective of the box if it beats one, else that one: whatever could beat it is replayed.

    And what no order can exceed, as `free_order_bound`.
    """
    gathered = _gather(problem, tokens, objective * (1 + TIE))
    return _best_objective(problem, gathered.candidates, objective)[0], gathered.free_order_bound


def _gather(problem: FindepProblem, goal: Goal, reached: float = -np.inf) -> _Gathered:
    """The candidates whose bound is within a tie of the best objective, ``reached`` or replayed on the way."""
    bound, count = -np.inf, 0
    kept: list[Candidates] = []
    for stretch in stretches(problem):
        r1 = stretch.r1[:, None]
        worth = goal(problem, stretch.split, stretch.m_a, r1)
        least_s = least_makespan_s(stretch.times, problem.num_layers, r1, stretch.r2)
        allowed = stretch.fits & (least_s <= longest_s(problem))
        bound = max(bound, float(np.where(allowed, worth / least_s, -np.inf).max()))
        least_s = least_in_order_s(stretch.times, problem.num_layers, r1, stretch.r2, orders_of(problem))
        upper = np.where(stretch.fits & (least_s <= longest_s(problem)), worth / least_s, -np.inf)
        if upper.max() > max(reached, 0.0) * (1 + TIE):
            first = Candidates.of(stretch, _only(upper.argmax(), upper.shape), worth, upper)
            reached = max(reached, float(first.replayed(problem).max()))
            count += 1
        chosen = (upper >= reached * (1 - TIE)) & (upper > 0)
        if chosen.any():
            kept.append(Candidates.of(stretch, chosen, worth, upper))
    candidates = Candidates.together(kept)
    return _Gathered(reached, candidates.take(candidates.upper >= reached * (1 - TIE)), bound, count)


def _only(place: np.intp, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    chosen = np.zeros(shape, dtype=np.bool_)
    chosen.flat[place] = True
    return chosen


def _best_objective(problem: FindepProblem, candidates: Candidates, reached: float) -> tuple[float, int]:
    """The best objective by replay within a tie, ``reached`` if none beats it, and how many were replayed."""
    count = 0
    for batch in _batches(np.argsort(-candidates.upper, kind="stable")):
        hopeful = batch[candidates.upper[batch] > reached * (1 + TIE)] if reached > 0 else batch
        if not len(hopeful):
            break
        reached = max(reached, float(candidates.take(hopeful).replayed(problem).max()))
        count += len(hopeful)
    return reached, count


def _least_burden(problem: FindepProblem, candidates: Candidates, best: float) -> tuple[Decision, int]:
    """Of the candidates within a tie of the best, the preferred one: replayed in the order of the tie rule."""
    enough = best * (1 - TIE)
    equal = candidates.take(candidates.upper >= enough)
    count = 0
    for batch in _batches(equal.by_burden(problem)):
        some = equal.take(batch)
        makespans_s = some.makespans_s(problem)
        hits = np.flatnonzero(some.objectives(problem, makespans_s).max(axis=0) >= enough)
        count += len(batch)
        if len(hits):
            return some.decision(problem, int(hits[0]), makespans_s, enough), count
    raise AssertionError("the best candidate was replayed and is one of these")


def _batches(places: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    size, start = BATCH, 0
    while start < len(places):
        yield places[start : start + size]
        start, size = start + size, 2 * size


def replay_all(problem: FindepProblem) -> tuple[Decision | None, int]:
    """Every candidate of the box replayed in every order, and their number: the enumeration that needs no bound."""
    best, count = -np.inf, 0
    near: list[Candidates] = []
    for stretch in stretches(problem):
        worth = tokens(problem, stretch.split, stretch.m_a, stretch.r1[:, None])
        everything = Candidates.of(stretch, stretch.fits, worth, np.full(stretch.fits.shape, np.inf))
        objective = everything.replayed(problem)
        count += objective.size
        best = max(best, float(objective.max()))
        near.append(everything.take(objective.max(axis=0) >= max(best, 0.0) * (1 - TIE)))
    if best == -np.inf:
        return None, count
    return _least_burden(problem, Candidates.together(near), best)[0], count
