"""The bytes on the device by cause: what of the model takes them, and as which state."""

from __future__ import annotations

import math

from planner.papers.memory.byte_fields import Group
from planner.papers.memory.explained import Placement, activations_bytes, bytes_by_group
from planner.papers.memory.problem import MemoryProblem, State
from planner.papers.memory.traffic import Floats, Groups

UNITS = "whole units"
"""What is gathered, or waits for its reduction, of states that are sharded or offloaded."""
OTHER = "other"
WORKSPACE = "workspace"
"""What lives while the backward of one layer runs."""

ByColumn = dict[str, float]
"""Bytes by state, or ``other``."""


def by_cause(problem: MemoryProblem, placement: Placement) -> dict[str, ByColumn]:
    """Bytes on the device of the problem's own rank, by cause and then by state; they sum to its device bytes.

    Causes that the problem does not name are its groups, ``activations`` and ``other``. Gradients and optimizer are
    split as the parameters are.
    """
    table: dict[str, ByColumn] = {}
    groups = Groups(problem)
    states: tuple[tuple[State, Floats, str, int], ...] = (
        ("parameters", groups.parameters, placement.parameters, placement.i_p),
        ("gradients", groups.gradients, placement.gradients, placement.i_g),
        ("optimizer", groups.optimizer, placement.optimizer, placement.i_o),
    )
    held = bytes_by_group(problem, placement)
    for number, group in enumerate(problem.groups):
        shares = _shares(group)
        for state, whole, mode, prefix in states:
            sharded = 0.0 if mode == "offloaded" else float(whole[number] / groups.ranks[prefix, number])
            for cause, share in shares.items():
                _add(table, cause, state, share * sharded)
            _add(table, UNITS, state, held[state][group.id] - sharded)
    if UNITS in table:
        table[UNITS] = table.pop(UNITS)
    given = problem.activations
    amount = activations_bytes(problem, placement.activations)
    named = {"kept": given.kept_causes, "materialised": given.materialised_causes, "offloaded": given.unit_causes}
    for cause, part in (named[placement.activations] or {"activations": amount}).items():
        _add(table, cause, "activations", part)
    for cause, part in (problem.other_causes or {OTHER: problem.other_bytes}).items():
        _add(table, cause, OTHER, part)
    _add(table, WORKSPACE, OTHER, problem.workspace_bytes)
    return table


def _shares(group: Group) -> dict[str, float]:
    """What part of a group's parameters each cause is."""
    causes = group.parameters_causes or {}
    total = math.fsum(causes.values())
    return {cause: part / total for cause, part in causes.items()} if total else {group.id: 1.0}


def _add(table: dict[str, ByColumn], cause: str, column: str, amount: float) -> None:
    if amount > 0:
        row = table.setdefault(cause, {})
        row[column] = row.get(column, 0.0) + amount
