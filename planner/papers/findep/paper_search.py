"""The paper's own search: Pareto pairs of m_a and r1, and a convex search in r2.

The method ``paper`` of the page's "How it is solved and proved". It proves nothing. It takes for granted that
throughput grows with m_a and with r1, and that D has one valley in r2. Whole tokens (``ceil``) and tabulated costs may
break both. A makespan limit breaks the first: the largest load that fits the memory may be too slow, so every pair
that fits is searched then. Closed forms choose, replay scores.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.errors import LimitError
from planner.papers.findep.candidates import orders_of
from planner.papers.findep.closed_form import aass_s, asas_s, replayed_s
from planner.papers.findep.infeasibility import diagnose
from planner.papers.findep.preference import preferred
from planner.papers.findep.problem import FindepProblem, Order, Split
from planner.papers.findep.scan import free_order_bound
from planner.papers.findep.space import (
    TIE,
    Decision,
    Floats,
    Ints,
    fits_memory,
    longest_s,
    micro_batches,
    most_chunks,
    obeys,
    tokens,
)
from planner.papers.findep.times import task_times
from solvers.report import Status


def by_paper(problem: FindepProblem) -> tuple[Decision, Status, float]:
    """The decision of the paper's search, without a proof, and the bound for any order.

    Raises InfeasibleError where no load fits, and LimitError (paper_search) where the search met no makespan limit:
    another plan may.
    """
    return paper_search(problem), Status.FEASIBLE, free_order_bound(problem)


def paper_search(problem: FindepProblem) -> Decision:
    """The best candidate of the paper's search, replayed. Raises as `by_paper`."""
    left: list[Decision] = []
    fastest_s = np.inf
    for index, split in enumerate(problem.splits):
        for r1, m_a in _pairs(problem, split) if obeys(problem, split) else ():
            for order in orders_of(problem):
                proposal, least_s = _proposal(problem, index, r1, m_a, order)
                fastest_s = min(fastest_s, least_s)
                if proposal.makespan_s <= longest_s(problem):
                    left.append(proposal)
    if np.isinf(fastest_s):
        raise diagnose(problem)
    while left:
        proposal = preferred(problem, left)
        decision = _replayed(problem, proposal)
        if decision.makespan_s <= longest_s(problem):
            return decision
        left.remove(proposal)
    raise LimitError(
        f"the paper's search met no plan within makespan_limit_s, its fastest takes {fastest_s:.9g} s; it proves "
        "nothing, and the method scan says whether there is one",
        code="paper_search",
        where="makespan_limit_s",
    )


def _pairs(problem: FindepProblem, split: Split) -> Iterator[tuple[int, Ints]]:
    """The pairs that are searched: each r1 with its m_a.

    From large m_a to small, r1 is the largest that fits, and a pair whose r1 did not grow is left out. With a limit
    all that fit.
    """
    numbers = micro_batches(problem)
    m_a = np.arange(problem.search.max_m_a, 0, -1)
    fits = fits_memory(problem, split, m_a, np.array(numbers, dtype=np.int64)[:, None])
    if problem.makespan_limit_s is None:
        most = fits.sum(axis=0)
        grown = most > np.maximum.accumulate(np.concatenate([[0], most[:-1]]))
        fits = grown & (np.arange(1, len(numbers) + 1)[:, None] == most)
    for r1, fitting in zip(numbers, fits, strict=True):
        if fitting.any():
            yield r1, m_a[fitting]


def _proposal(problem: FindepProblem, index: int, r1: int, m_a: Ints, order: Order) -> tuple[Decision, float]:
    """The best of some m_a by closed form, and the least makespan among them; over the limit only if all of them are.

    For each m_a the bottom of the valley that D has in r2, by halving; all m_a at once.
    """
    split = problem.splits[index]
    low, high = np.ones_like(m_a), most_chunks(problem, m_a)
    while np.any(low < high):
        middle = (low + high) // 2
        further = np.minimum(middle + 1, high)
        rises = _closed_s(problem, split, m_a, r1, middle, order) <= _closed_s(problem, split, m_a, r1, further, order)
        low, high = np.where(rises, low, further), np.where(rises, middle, high)
    makespan_s = _closed_s(problem, split, m_a, r1, low, order)
    objective = tokens(problem, split, m_a, r1) / makespan_s
    worth = np.where(makespan_s <= longest_s(problem), objective, -np.inf)
    # The tie rule wants the smallest of equal loads; m_a descends.
    place = int(np.flatnonzero(worth >= worth.max() * (1 - TIE))[-1])
    found = (float(makespan_s[place]), float(objective[place]))
    return Decision(index, int(m_a[place]), r1, int(low[place]), order, *found), float(makespan_s.min())


def _closed_s(problem: FindepProblem, split: Split, m_a: Ints, r1: int, r2: Ints, order: Order) -> Floats:
    times = task_times(problem, split, m_a, r2)
    if order == "ASAS" or problem.shared_expert is None:
        return asas_s(times, problem.num_layers, r1, r2)
    return aass_s(times, problem.num_layers, r1, r2)


def _replayed(problem: FindepProblem, proposal: Decision) -> Decision:
    split, m_a, r2 = problem.splits[proposal.split], np.array([proposal.m_a]), np.array([proposal.r2])
    times = task_times(problem, split, m_a, r2)
    makespan_s = float(replayed_s(times, problem.num_layers, proposal.r1, r2, proposal.order)[0])
    worth = float(tokens(problem, split, proposal.m_a, proposal.r1))
    return proposal._replace(makespan_s=makespan_s, objective=worth / makespan_s)
