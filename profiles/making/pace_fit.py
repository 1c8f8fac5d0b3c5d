"""The pace of a table's curves: weights that best give back each inner row from its two neighbours."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from profiles.families import Family
from profiles.making.monotone import lines
from profiles.pace import LEAST_SIZE, PLAIN, SIZE, Weights, known_costs, log_pace

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEWEST_ROWS = 40
FOLDS = 4
MOVES = (0.25, 0.5, 0.75, 1.0)
ROUNDS = 4
SAFE = 0.97
"""Weights are to beat log-log in median and in p90 by this factor at least, before the sum of both counts."""


def fit_pace(family: Family, columns: Mapping[str, Ints], seconds: Floats, multiprocessors: int | None) -> Weights:
    """Weights for `profiles.pace`, `PLAIN` unless others beat log-log in the median and in p90.

    That is tried on values of the axis along the curve that the weights were not fitted to, every fourth in turn.
    """
    names = [SIZE, *known_costs(family.name, multiprocessors)]
    triples = _triples(family, columns)
    if len(names) == 1 or len(triples) < FEWEST_ROWS:
        return PLAIN
    axes = {axis: column.astype(np.float64) for axis, column in columns.items()}
    logs = np.stack([log_pace(family, {name: 1.0}, axes, multiprocessors)[triples] for name in names])
    logs, times = (
        np.concatenate([logs[:1], (1.0 - LEAST_SIZE) * logs[1:] + LEAST_SIZE * logs[:1]]),
        np.log(seconds)[triples],
    )
    fold = np.unique(columns[family.along][triples[:, 1]], return_inverse=True)[1].reshape(-1) % FOLDS
    plain, crossed = np.eye(len(names))[0], np.empty(len(triples))
    for number in range(FOLDS):
        scored = fold == number
        if scored.any() and not scored.all():
            crossed[scored] = _errors(_search(logs[:, ~scored], times[~scored]), logs[:, scored], times[scored])
    straight = _errors(plain, logs, times)
    if np.median(crossed) >= np.median(straight) or np.percentile(crossed, 90) >= np.percentile(straight, 90):
        return PLAIN
    found = _search(logs, times)
    found[0] += LEAST_SIZE * found[1:].sum()
    found[1:] *= 1.0 - LEAST_SIZE
    return {name: float(f"{weight:.4f}") for name, weight in zip(names, found.tolist(), strict=True) if weight > 0}


def _triples(family: Family, columns: Mapping[str, Ints]) -> Ints:
    """Rows (n, 3): each inner row of a curve between its neighbours."""
    inner = [line for line in lines(columns, family.along) if len(line) > 2]
    found = [np.stack([line[:-2], line[1:-1], line[2:]], axis=1) for line in inner]
    return np.concatenate(found) if found else np.zeros((0, 3), dtype=np.int64)


def _errors(weights: Floats, logs: Floats, times: Floats) -> Floats:
    """|predicted / measured - 1| of the middle rows; `logs` are (costs, n, 3), `times` (n, 3)."""
    u = np.tensordot(weights, logs, axes=(0, 0))
    share = (u[:, 1] - u[:, 0]) / (u[:, 2] - u[:, 0])
    return np.asarray(np.abs(np.expm1(times[:, 0] + share * (times[:, 2] - times[:, 0]) - times[:, 1])))


def _search(logs: Floats, times: Floats) -> Floats:
    """Move a share of the weight to the cost that helps most, until none does."""
    best = np.eye(len(logs))[0]
    plain = _size(_errors(best, logs, times))

    def loss(weights: Floats) -> float:
        both = _size(_errors(weights, logs, times)) / plain
        return float(both.sum() + 5.0 * np.maximum(both - SAFE, 0.0).sum())

    value = loss(best)
    for _ in range(ROUNDS):
        trials = [(1.0 - move) * best + move * unit for unit in np.eye(len(logs)) for move in MOVES]
        losses = [loss(trial) for trial in trials]
        if min(losses) > value - 0.005:
            break
        value = min(losses)
        best = trials[losses.index(value)]
    return np.asarray(best)


def _size(errors: Floats) -> Floats:
    return np.asarray(np.maximum(np.array([np.median(errors), np.percentile(errors, 90)]), 1e-9))
