"""Local search among placements with copies: the best change at the highest peaks, as long as one helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from planner.papers.hiermoe.instance import Case
from planner.papers.hiermoe.replicas.changes import Board, at_entry, at_rank, every
from planner.papers.hiermoe.replicas.score import Scorer, Worth, better
from planner.papers.hiermoe.replicas.state import Changes, State, Trial

WIDTH = 4
"""Peaks of a hop, and ranks, that are looked at before giving up."""

FEW = 600
"""Slots times slots and experts up to which every change is tried before giving up."""

SHAKEN = 3
"""Changes at random between two climbs."""

Meet = Callable[[Scorer, State, Trial], None]
"""Told every placement that was tried."""


def climb(case: Case, state: State, scorer: Scorer, steps: int, meet: Meet, *, lead: bool = False) -> None:
    """Change the state until no proposal helps or the steps end: first by the smooth objective, then by the plain.

    To ``lead`` to where another climb starts, the smooth one alone.
    """
    for worth in (scorer.smooth,) if lead else (scorer.smooth, scorer.plain):
        now = worth(state)
        while steps > 0:
            found = _best_change(case, state, scorer, now, worth, meet)
            if found is None:
                break
            state.accept(found)
            now = worth(state)
            steps -= 1


def _best_change(
    case: Case, state: State, scorer: Scorer, now: Worth, worth: Callable[[State | Trial], Worth], meet: Meet
) -> Trial | None:
    board = Board.of(case, state)
    for proposals in _by_peak(case, state, scorer, board, thorough=worth == scorer.plain):
        best, best_worth = None, now
        for changes in proposals:
            trial = state.trial(changes)
            meet(scorer, state, trial)
            reached = worth(trial)
            if better(reached, best_worth):
                best, best_worth = trial, reached
        if best is not None:
            return best
    return None


def _by_peak(
    case: Case, state: State, scorer: Scorer, board: Board, *, thorough: bool
) -> Iterator[dict[Changes, None]]:
    """Proposals at the highest entry of every hop and the fullest rank, then at the second, and so on; each once."""
    entries = [np.argsort(-count, axis=None, kind="stable")[:WIDTH].tolist() for count in state.counts]
    ranks = np.argsort(-state.load, kind="stable")[:WIDTH].tolist() if scorer.minds_load(state) else []
    seen: set[Changes] = set()
    for width in range(WIDTH):
        proposals: dict[Changes, None] = {}
        for hop, highest in enumerate(entries):
            for entry in highest[width : width + 1]:
                proposals |= dict.fromkeys(at_entry(case, state, board, hop, entry))
        for rank in ranks[width : width + 1]:
            proposals |= dict.fromkeys(at_rank(case, board, rank))
        yield {changes: None for changes in proposals if changes not in seen}
        seen |= set(proposals)
    if thorough and case.P * (case.P + case.E) <= FEW:
        yield {changes: None for changes in every(case, board) if changes not in seen}


def shake(case: Case, state: State, random: np.random.Generator) -> None:
    """A few changes at random, wherever they lead."""
    for _ in range(SHAKEN):
        proposals = every(case, Board.of(case, state))
        if proposals:
            state.accept(state.trial(proposals[int(random.integers(len(proposals)))]))
