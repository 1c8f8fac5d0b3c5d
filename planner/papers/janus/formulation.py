"""The exact placement of one layer's copies (page, "Placement") in CP-SAT: least largest co-activation of an instance.

x says that an expert sits on an instance, y >= x + x' - 1 that both of a pair do. Instances whose slots are all used
give every expert slots - 1 neighbours there, which says more of y than pairs do by themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from solvers import cpsat
from solvers.report import Limits, Status

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BUDGET = 10.0
"""Deterministic time at effort 1."""
_UNITS = 2.0**40
"""Co-activations that are no whole numbers, or sum to more, become whole units of this part of their sum."""
_ROUNDING = 1e-10
"""What of a known bound is not believed; units are rounded down, which only lowers the model's own."""


@dataclass(frozen=True, eq=False)
class Answer:
    """``table`` int64 [n, slots] if one was found; no placement of these copies is below ``bound``."""

    table: Ints | None
    bound: float
    status: Status
    timed_out: bool


def solve_model(
    copies: Ints, slots: int, instances: int, together: Floats, hint: Ints | None, known: float, limits: Limits
) -> Answer:
    """Place copies that use all slots; ``hint`` is a placement, ``known`` a lower bound that is proved otherwise."""
    from ortools.sat.python import cp_model

    E = len(copies)
    unit = _unit(together)
    model = cp_model.CpModel()
    x = [[model.new_bool_var(f"x{e},{g}") for g in range(instances)] for e in range(E)]
    y = {(e, f, g): model.new_bool_var(f"y{e},{f},{g}") for e, f in combinations(range(E), 2) for g in range(instances)}
    for e in range(E):
        model.add(sum(x[e]) == int(copies[e]))
    for (e, f, g), both in y.items():
        model.add_bool_or([x[e][g].negated(), x[f][g].negated(), both])
        model.add_implication(both, x[e][g])
        model.add_implication(both, x[f][g])
    weights = np.floor(together / unit).astype(np.int64).tolist()
    top = int(sum(weights[e][f] for e, f in combinations(range(E), 2)))
    z = model.new_int_var(max(0, math.ceil(known / unit * (1 - _ROUNDING) - _ROUNDING)), top, "z")
    for g in range(instances):
        model.add(sum(x[e][g] for e in range(E)) == slots)
        for e in range(E):
            beside = [y[min(e, f), max(e, f), g] for f in range(E) if f != e]
            model.add(sum(beside) == (slots - 1) * x[e][g])
        model.add(sum(weights[e][f] * y[e, f, g] for e, f in combinations(range(E), 2) if weights[e][f]) <= z)
    for one, other in combinations(range(E), 2):
        least = max(0, int(copies[one] + copies[other]) - instances)
        model.add(sum(y[one, other, g] for g in range(instances)) >= least)
    _order_instances(model, x, copies)
    model.minimize(z)
    if hint is not None:
        _hint(model, x, hint, copies)
    wanted = [variable for row in x for variable in row]
    found = cpsat.run(model, wanted, limits, BUDGET)
    bound = max(known, found.bound * unit) if found.status is not Status.LIMIT or found.bound > 0 else known
    if found.values is None:
        return Answer(None, bound, found.status, found.timed_out)
    inside = np.array(found.values).reshape(E, instances).T
    return Answer(np.nonzero(inside)[1].reshape(instances, slots), bound, found.status, False)


def _unit(together: Floats) -> float:
    total = float(together.sum()) / 2
    whole = bool((together == np.floor(together)).all())
    return 1.0 if whole and total <= _UNITS else total / _UNITS


def _order_instances(model: cp_model.CpModel, x: list[list[cp_model.IntVar]], copies: Ints) -> None:
    """Instances are alike: the expert with the most copies that leaves some out sits on the first ones."""
    instances = len(x[0])
    partial = [expert for expert in np.argsort(-copies, kind="stable").tolist() if copies[expert] < instances]
    if partial:
        first = partial[0]
        for g, variable in enumerate(x[first]):
            model.add(variable == int(g < copies[first]))


def _hint(model: cp_model.CpModel, x: list[list[cp_model.IntVar]], table: Ints, copies: Ints) -> None:
    instances = len(table)
    partial = [expert for expert in np.argsort(-copies, kind="stable").tolist() if copies[expert] < instances]
    rows = [set(row) for row in table.tolist()]
    if partial:
        rows.sort(key=lambda row: partial[0] not in row)
    for g, row in enumerate(rows):
        for e, variables in enumerate(x):
            model.add_hint(variables[g], int(e in row))
