"""Schedules with the shared experts folded into attention: t_a' = t_a + t_s, no shared task, no chunks.

The transfer of a micro-batch waits for both parts (page, "Baselines"). Without chunks and shared tasks there is one
order, whose makespan is equation 8; it chooses and the replay scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.papers.findep.closed_form import asas_s
from planner.papers.findep.layers import layers
from planner.papers.findep.preference import preferred
from planner.papers.findep.problem import FindepProblem, Order
from planner.papers.findep.schedule import build_solution, utilisation
from planner.papers.findep.solution import FindepSolution
from planner.papers.findep.space import TIE, Decision, Floats, Stretch, longest_s, micro_batches, stretches, tokens
from planner.papers.findep.timeline import shorten
from planner.papers.findep.times import Times, task_times

OVER_LIMIT = "no setting meets makespan_limit_s"
MOST_ASKED = 10**15
"""As large an r1 as the rule is said to ask for."""


@dataclass(frozen=True)
class Ruled:
    """What MegaScale-Infer's rule picks: the decision, the r1 it asks for, and its own estimate of the makespan."""

    decision: Decision
    asked_r1: int
    estimate_s: float


def best_folded(problem: FindepProblem, wanted: Sequence[int]) -> Decision | str:
    """The best m_a, split and r1 of those wanted; else why there is none."""
    if not set(wanted) & set(micro_batches(problem)):
        return _unstarted(problem)
    proposals: list[Decision] = []
    fits_somewhere = False
    for stretch in _unchunked(problem):
        r1 = np.broadcast_to(stretch.r1[:, None], stretch.fits.shape)
        makespan_s = asas_s(_fold(stretch.times), problem.num_layers, r1, stretch.r2)
        fits = stretch.fits & np.isin(r1, wanted)
        fits_somewhere |= bool(fits.any())
        worth = tokens(problem, stretch.split, stretch.m_a, r1)
        objective = np.where(fits & (makespan_s <= longest_s(problem)), worth / makespan_s, -np.inf)
        if objective.max() > 0:
            # Of one split the tie rule looks at the load, then at r1.
            near = np.argwhere(objective >= objective.max() * (1 - TIE))
            row, place = min(near.tolist(), key=lambda at: (stretch.r1[at[0]] * stretch.m_a[at[1]], at[0]))
            found = (float(makespan_s[row, place]), float(objective[row, place]))
            load = (int(stretch.m_a[place]), int(stretch.r1[row]))
            proposals.append(Decision(stretch.index, *load, 1, "ASAS", *found))
    if not proposals:
        return OVER_LIMIT if fits_somewhere else "no setting fits the memory"
    return _replayed(problem, preferred(problem, proposals))


def ruled(problem: FindepProblem) -> Ruled | str:
    """r1 = the smallest integer >= 2 (1 + t_x / T_f), T_f = max(t_a', t_e), and the largest m_a that fits with it.

    At most max_r1. Where the links differ, 2 t_x is t_x + t_y. The best over the splits; else why there is none.
    """
    of_split: dict[int, Ruled] = {}
    fits_somewhere = False
    for stretch in _unchunked(problem):
        times = _fold(stretch.times)
        links_s, busier_s = times.a2e_s + times.e2a_s, np.maximum(times.attention_s, times.expert_s)
        with np.errstate(over="ignore"):
            asked = np.minimum(np.ceil(2 + links_s / busier_s), MOST_ASKED).astype(np.int64)
        r1 = np.minimum(asked, problem.search.max_r1)
        fits = (stretch.fits & (stretch.r1[:, None] == r1)).any(axis=0)
        fits_somewhere |= bool(fits.any())
        makespan_s = asas_s(times, problem.num_layers, r1, stretch.r2)
        within = np.flatnonzero(fits & (makespan_s <= longest_s(problem)))
        if len(within):
            place = int(within[-1])
            load = (int(stretch.m_a[place]), int(r1[place]))
            decision = _replayed(problem, Decision(stretch.index, *load, 1, "ASAS", np.nan, np.nan))
            estimate_s = times.attention_s[place] + times.expert_s[place] + links_s[place]
            estimate_s += busier_s[place] * (decision.r1 * problem.num_layers - 1)
            # A later stretch of a split holds larger m_a.
            of_split[stretch.index] = Ruled(decision, int(asked[place]), float(estimate_s))
    if not of_split:
        return OVER_LIMIT if fits_somewhere else _unruled(problem)
    chosen = preferred(problem, [rule.decision for rule in of_split.values()])
    return of_split[chosen.split]


def folded_solution(problem: FindepProblem, decision: Decision, free_order_bound: float) -> FindepSolution | None:
    """The folded schedule as a solution of the problem: each s right after its a. None if ``orders`` has no such order.

    With one micro-batch, or without shared experts, the two orders are one.
    """
    alike = decision.r1 == 1 or problem.shared_expert is None
    order: Order = "ASAS" if "ASAS" in problem.search.orders else "AASS"
    if order == "AASS" and not alike:
        return None
    decision = decision._replace(order=order)
    solution = build_solution(problem, decision, free_order_bound)
    if problem.shared_expert is None:
        return solution
    times = task_times(problem, problem.splits[decision.split], decision.m_a, decision.r2)
    rows = _starts(problem, decision, times)
    values = {
        "timeline": shorten(rows, decision.r1, decision.r2, decision.makespan_s),
        "makespan_s": decision.makespan_s,
        "objective": decision.objective,
        "utilisation": utilisation(problem, decision, times, decision.makespan_s),
    }
    return solution.model_copy(update=values)


def _unchunked(problem: FindepProblem) -> Iterator[Stretch]:
    search = problem.search.model_copy(update={"max_r2": 1})
    return stretches(problem.model_copy(update={"search": search}))


def _fold(times: Times) -> Times:
    return replace(times, attention_s=times.attention_s + times.shared_s, shared_s=np.zeros_like(times.shared_s))


def _replayed(problem: FindepProblem, proposal: Decision) -> Decision:
    """The decision with its makespan by replay. Its order is the one that the fold leaves."""
    m_a, r1 = proposal.m_a, proposal.r1
    split = problem.splits[proposal.split]
    seconds = _one_by_kind(_fold(task_times(problem, split, m_a, 1)))
    folded = layers(problem.num_layers, r1, "ASAS", False)
    makespan_s = float(folded.makespan([np.array([value]) for value in seconds], (1, 1, 1, 1, 1))[0])
    return proposal._replace(makespan_s=makespan_s, objective=float(tokens(problem, split, m_a, r1)) / makespan_s)


def _starts(problem: FindepProblem, decision: Decision, times: Times) -> Floats:
    """Starts of every layer [T, 5 r1] by kind: a, s, x, e, y."""
    r1, num_layers = decision.r1, problem.num_layers
    pipeline = layers(num_layers, r1, "ASAS", False)
    begun = np.concatenate(pipeline.starts(_one_by_kind(_fold(times)), (1, 1, 1, 1, 1)))
    kinds = np.array([run.kind for run in pipeline.runs])
    attention, *others = (begun[kinds == kind].reshape(num_layers, r1) for kind in np.unique(kinds))
    return np.concatenate([attention, attention + float(times.attention_s), *others], axis=1)


def _one_by_kind(times: Times) -> list[float]:
    columns = (times.attention_s, times.shared_s, times.a2e_s, times.expert_s, times.e2a_s)
    return [float(value) for value in columns]


def _unstarted(problem: FindepProblem) -> str:
    if problem.launcher_rules != "none":
        return f"launcher_rules {problem.launcher_rules} runs two micro-batches"
    return f"search.max_r1 is {problem.search.max_r1}"


def _unruled(problem: FindepProblem) -> str:
    if problem.launcher_rules != "none":
        return f"launcher_rules {problem.launcher_rules} runs two micro-batches, for which the rule does not ask"
    return "no setting of the rule fits the memory"
