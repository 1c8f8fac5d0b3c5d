"""Placement with redundant slots: local search by swaps of slots and by copies that change hands.

EPLB sees rank loads alone. Here a change counts if it lowers equation 5 under the copy rule; EPLB's tables, made legal,
are starts, so that the plan is never behind them, and what was met on the way is kept as a front of largest rank load
against exchange time. Where the problem charges nothing for load (kappa 0), ``_chosen`` says which point is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.papers.hiermoe.budget import charges_load, load_limit
from planner.papers.hiermoe.exchange.hops import hops_of
from planner.papers.hiermoe.exchange.loads import expert_loads
from planner.papers.hiermoe.exchange.tables import ascending, changed, moved_count
from planner.papers.hiermoe.exchange.time import a2a_seconds, rank_loads
from planner.papers.hiermoe.instance import Case, LayerCase, Loads, Table, Tokens, contiguous
from planner.papers.hiermoe.replicas.climb import FEW, Meet, climb, shake
from planner.papers.hiermoe.replicas.eplb_tables import eplb_tables, legal, longest_first_copies
from planner.papers.hiermoe.replicas.front import Front, FrontPoint
from planner.papers.hiermoe.replicas.score import Scorer, better
from planner.papers.hiermoe.replicas.state import LoadState, State, TokenState, Trial

CLIMBS, CLIMBS_OF_MANY, MANY_SLOTS = 4, 2, 64
"""Pairs of start and dimension, the best ones, from which the search climbs; fewer above so many slots."""

STEER = 0.25
"""Where nothing charges rank load, the share of exchange time that a peak load counts as in the search."""

PER_EXPERT = 4
"""Changes that one climb accepts, times E, where the problem states no number."""

SHAKES = 6
"""Times that a small climb starts again from the best one, shaken."""

Order = Callable[[FrontPoint], tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Replicated:
    """The chosen placement and the front it was chosen from (at most 8 points, by ascending load)."""

    chosen: FrontPoint
    front: tuple[FrontPoint, ...]


def place_replicas(case: Case, layer: LayerCase, effort: float = 1.0) -> Replicated:
    """The best placement that local search meets from EPLB's tables, longest first, contiguous and the current one."""
    balanced = list(eplb_tables(case, layer).values())
    others = [longest_first_copies(case, layer), contiguous(case.E, case.P), layer.current]
    rivals = _points(case, layer, balanced)
    starts = _points(case, layer, [legal(case, layer, table) for table in [*balanced, *others]])
    front = Front()
    for start in starts:
        front.meet(start.peak_load, start.a2a_s, start.dimension, start.table)

    def meet(scorer: Scorer, state: State, trial: Trial) -> None:
        front.meet(float(trial.load.max()), scorer.a2a_s(trial), scorer.dimension, state.table, trial.changes)

    least_load = min(rival.peak_load for rival in rivals)
    limit = _limit(case, layer)
    cap = limit if charges_load(case.problem) else min(limit, least_load)
    steer = 0.0 if charges_load(case.problem) else _steer(case, starts)
    ends = []
    for order, start in enumerate(sorted(starts, key=worth(case, limit, steer))[: _climbs(case)]):
        climber = _Climber.at(case, layer, start, cap, effort, steer)
        if climber is not None:
            climber.climb(meet)
            ends.append((climber.scorer.plain(climber.state), order, climber))
    if ends:
        min(ends, key=lambda end: end[:2])[2].shaken(meet)
    found = Front()
    for point in front.points:
        again = point_of(case, layer, ascending(point.table, case.G), point.dimension)
        found.meet(again.peak_load, again.a2a_s, again.dimension, again.table)
    chosen = _chosen(case, found.points, [*rivals, *starts], least_load, limit)
    return Replicated(chosen, tuple(found.thinned(chosen)))


def replica_curve(case: Case, layer: LayerCase, effort: float = 1.0) -> dict[int, FrontPoint]:
    """The best placement met for each number of moved experts, climbing from the current placement alone."""
    limit = _limit(case, layer)
    rank = worth(case, limit)
    best: dict[int, FrontPoint] = {}

    def keep(point: FrontPoint) -> None:
        moved = moved_count(layer.current, point.table, case.G)
        if moved not in best or rank(point) < rank(best[moved]):
            best[moved] = point

    def meet(scorer: Scorer, state: State, trial: Trial) -> None:
        table = changed(state.table, trial.changes)
        keep(FrontPoint(float(trial.load.max()), scorer.a2a_s(trial), scorer.dimension, table))

    starts = _points(case, layer, [legal(case, layer, layer.current)])
    for start in starts:
        keep(start)
    for start in sorted(starts, key=rank)[: _climbs(case)]:
        climber = _Climber.at(case, layer, start, limit, effort, 0.0)
        if climber is not None:
            climber.climb(meet)
    tables = [(point, ascending(point.table, case.G)) for _, point in sorted(best.items())]
    again = [point_of(case, layer, table, point.dimension) for point, table in tables]
    return dict(zip(sorted(best), again, strict=True))


def point_of(case: Case, layer: LayerCase, table: Table, d: int) -> FrontPoint:
    """A placement with its figures, counted in full."""
    return FrontPoint(float(rank_loads(case, layer, table).max()), a2a_seconds(case, layer, table, d)[0], d, table)


def objective_of(case: Case, point: FrontPoint) -> float:
    """Equation 5 of a placement [s]."""
    weights, kappa_s = case.problem.objective, case.problem.costs.compute_s_per_assignment
    return weights.a2a_multiplier * point.a2a_s + weights.compute_multiplier * kappa_s * point.peak_load


def worth(case: Case, cap: float, steer: float = 0.0) -> Order:
    """The order of placements: by how far the largest rank load passes the cap, then by equation 5.

    ``steer`` seconds are added for each assignment of the peak load.
    """
    return lambda point: (max(0.0, point.peak_load - cap), objective_of(case, point) + steer * point.peak_load)


def _limit(case: Case, layer: LayerCase) -> float:
    return load_limit(case.problem, float(expert_loads(case, layer).sum()))


def _points(case: Case, layer: LayerCase, tables: Sequence[Table]) -> list[FrontPoint]:
    return [point_of(case, layer, table, d) for table in tables for d in case.dimensions]


def _steer(case: Case, starts: Sequence[FrontPoint]) -> float:
    """Seconds an assignment of the peak load counts as where nothing charges it.

    Under a cap alone the search stops at the cap: a little weight on load leads around.
    """
    least_s = case.problem.objective.a2a_multiplier * min(start.a2a_s for start in starts)
    return STEER * least_s / max(1.0, min(start.peak_load for start in starts))


def _climbs(case: Case) -> int:
    return CLIMBS if case.P <= MANY_SLOTS else CLIMBS_OF_MANY


@dataclass(frozen=True, eq=False)
class _Climber:
    """A placement on its way, what it is judged by, and by what it is led there first."""

    case: Case
    state: State
    scorer: Scorer
    leader: Scorer | None
    steps: int

    @classmethod
    def at(
        cls, case: Case, layer: LayerCase, start: FrontPoint, cap: float, effort: float, steer: float
    ) -> _Climber | None:
        """None for uniform routing, where the starts differ in all that counts."""
        hops = hops_of(case, start.dimension)
        state: State
        if isinstance(layer.routed, Tokens):
            state = TokenState(case, layer.routed, hops, start.table)
        elif isinstance(layer.routed, Loads):
            state = LoadState(case, layer.routed, hops, start.table)
        else:
            return None
        scorer = Scorer.of(case, start.dimension, hops, cap)
        leader = replace(scorer, per_load_s=steer, cap=_limit(case, layer)) if steer else None
        stated = case.problem.search.max_swaps
        steps = round(effort * PER_EXPERT * case.E) if stated is None else stated
        return cls(case, state, scorer, leader, steps)

    def climb(self, meet: Meet) -> None:
        """As far as it goes."""
        if self.leader is not None:
            climb(self.case, self.state, self.leader, self.steps, meet, lead=True)
        climb(self.case, self.state, self.scorer, self.steps, meet)

    def shaken(self, meet: Meet) -> None:
        """Small cases: more climbs, each from the best end so far, shaken."""
        if self.case.P * (self.case.P + self.case.E) > FEW:
            return
        random = np.random.default_rng(0)
        best, table = self.scorer.plain(self.state), self.state.table
        for _ in range(SHAKES):
            shake(self.case, self.state, random)
            self.climb(meet)
            if better(self.scorer.plain(self.state), best):
                best, table = self.scorer.plain(self.state), self.state.table
            else:
                self.state.restart(table)


def _chosen(
    case: Case, points: Sequence[FrontPoint], baselines: Sequence[FrontPoint], least_load: float, limit: float
) -> FrontPoint:
    """The point of the plan: least equation 5 within the limit on load.

    With kappa 0: least exchange time among the points that no baseline beats in time and whose largest load is at most
    the least EPLB reaches; if there is none, at most that of the fastest baseline; if there is none, among all.
    """
    allowed = [point for point in points if point.peak_load <= limit] or [min(points, key=lambda p: p.peak_load)]
    if not charges_load(case.problem):
        fastest = min(baselines, key=lambda point: (point.a2a_s, point.peak_load))
        for load in (least_load, fastest.peak_load):
            both = [point for point in allowed if point.a2a_s <= fastest.a2a_s and point.peak_load <= load]
            if both:
                allowed = both
                break
    return min(allowed, key=lambda point: (objective_of(case, point), point.peak_load, point.dimension))
