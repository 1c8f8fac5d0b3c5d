"""Loads alone, without replicas: the fewest moves that keep a limit on them, and the least limit that can be kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.exact.naming import Ints
from planner.papers.hiermoe.exchange.loads import expert_loads
from planner.papers.hiermoe.instance import Case, LayerCase, Table
from solvers import cpsat
from solvers.report import Limits, Status

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

BUDGET = 10.0
"""Deterministic time at effort 1."""
MOST_CELLS = 50_000
"""Pairs of an expert and a rank that are worth a model."""
_STEPS = 2.0**40
"""Units of the total load where loads are not whole numbers."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Balanced:
    """``table`` is None if none was found; ``least`` is proved: moves, or the largest load. ``proved``: no less is."""

    table: Table | None
    least: float
    proved: bool
    impossible: bool = False


def fewest_moves(case: Case, layer: LayerCase, most_load: float, limits: Limits) -> Balanced:
    """The placement of fewest moves from the current one in which no rank has more than ``most_load``."""
    load, unit = _units(expert_loads(case, layer))
    if case.E * case.G > MOST_CELLS:
        return Balanced(None, 0.0, proved=False)
    model = _Placement(case, load)
    # Loads are rounded down and so is the limit: what keeps the true limit keeps this one.
    model.limit(math.floor(most_load / unit))
    stay = [model.x[e, s // case.slots] for s, e in enumerate(layer.current.tolist())]
    model.model.maximize(sum(stay))
    answer = cpsat.run(model.model, model.wanted, limits, BUDGET)
    if answer.status is Status.INFEASIBLE:
        return Balanced(None, math.inf, proved=True, impossible=True)
    # Without an answer CP-SAT states no bound on what may stay.
    known = answer.values is not None
    least = float(case.E - math.floor(answer.bound + 0.5)) if known else 0.0
    table = model.table(answer.values)
    if table is not None and _peak(case, layer, table) > most_load:
        table = None
    return Balanced(table, max(0.0, least), proved=table is not None and answer.status is Status.OPTIMAL)


def least_peak_load(case: Case, layer: LayerCase, limits: Limits) -> Balanced:
    """The placement whose busiest rank has the least, moves aside."""
    load, unit = _units(expert_loads(case, layer))
    if case.E * case.G > MOST_CELLS:
        return Balanced(None, 0.0, proved=False)
    model = _Placement(case, load)
    Q = model.model.new_int_var(0, int(load.sum()), "Q")
    model.limit(Q)
    model.first_on_rank_0(int(np.argmax(load)))
    model.model.minimize(Q)
    answer = cpsat.run(model.model, model.wanted, limits, BUDGET)
    table = model.table(answer.values)
    exact = unit == 1.0
    return Balanced(table, answer.bound * unit, proved=exact and answer.status is Status.OPTIMAL)


class _Placement:
    """x[e, g]: expert e is on rank g."""

    def __init__(self, case: Case, load: Ints) -> None:
        from ortools.sat.python import cp_model

        self.case, self.load = case, load
        self.model = cp_model.CpModel()
        E, G = case.E, case.G
        self.x = {(e, g): self.model.new_bool_var(f"x[{e},{g}]") for e in range(E) for g in range(G)}
        self.wanted = list(self.x.values())
        for e in range(E):
            self.model.add_exactly_one(self.x[e, g] for g in range(G))
        for g in range(G):
            self.model.add(sum(self.x[e, g] for e in range(E)) == case.slots)

    def limit(self, most: cp_model.IntVar | int) -> None:
        """No rank has more."""
        for g in range(self.case.G):
            self.model.add(sum(int(self.load[e]) * self.x[e, g] for e in range(self.case.E)) <= most)

    def first_on_rank_0(self, e: int) -> None:
        """Ranks are alike where only loads matter."""
        self.model.add(self.x[e, 0] == 1)

    def table(self, values: tuple[int, ...] | None) -> Table | None:
        """The placement of an answer, each rank's experts ascending."""
        if values is None:
            return None
        rank_of = np.array(values, dtype=np.int64).reshape(self.case.E, self.case.G).argmax(axis=1)
        return np.argsort(rank_of, kind="stable")


def _units(load: Floats) -> tuple[Ints, float]:
    """Loads as integers, rounded down, and what one unit is."""
    if np.all(load == np.rint(load)) and load.sum() < _STEPS:
        return load.astype(np.int64), 1.0
    unit = float(load.sum()) / _STEPS
    return np.floor(load / unit).astype(np.int64), unit


def _peak(case: Case, layer: LayerCase, table: Table) -> float:
    return float(expert_loads(case, layer)[table].reshape(case.G, -1).sum(axis=1).max())
