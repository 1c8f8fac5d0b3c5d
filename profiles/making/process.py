"""A robust Gaussian process on a grid: what all other cells say of each one, along every axis at once.

    residual = process with covariance C_1 x C_2 x ... x C_d (one matrix an axis) + noise

The matrices and the noise are learned by expectation maximisation in the eigenbases of the matrices, so that a step on
36,000 cells takes milliseconds. Noise has Student's tails: a cell that all others contradict weighs little, so a spike
moves nothing. Cells that were not measured weigh nothing and come back filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FREEDOM = 3.0
"""Degrees of freedom of the noise."""
LEAST_WEIGHT = 1e-4
TRUSTING_ROUNDS = 5
"""Rounds at the start in which every cell still counts in full."""
STEPS, LAST_STEPS = 3, 40
"""Conjugate gradients in each round and at the end."""
FULL_WEIGHT = 0.999
_FIRST_NOISE = 0.002


def likeness(points: Floats, length: float) -> Floats:
    """Matern 3/2 covariance (n, n) of unit variance between the rows of `points` (n, coordinates)."""
    gap = np.sqrt(np.square(points[:, None, :] - points[None, :, :]).sum(axis=2)) * np.sqrt(3.0) / length
    return np.asarray((1.0 + gap) * np.exp(-gap))


def filled(residual: Floats, start: Sequence[Floats], *, strength: float, rounds: int) -> Floats:
    """What all other cells say of every cell of `residual` (any number of axes; NaN: not measured).

    `start` are the covariances that learning starts from; they go on counting as `strength` observations.
    """
    known = np.isfinite(residual)
    middle = float(np.median(residual[known]))
    measured = np.where(known, residual - middle, 0.0)
    process, cells, weight = _Process.of(list(start), _FIRST_NOISE), measured.copy(), known.astype(np.float64)
    for number in range(rounds):
        if number >= TRUSTING_ROUNDS:
            square = (measured - process.without_own(cells)) ** 2
            spread = max(float(np.median(square[known])) * 2.2, 1e-12)
            weight = np.clip((FREEDOM + 1.0) / (FREEDOM + square / spread), LEAST_WEIGHT, 1.0) * known
        cells = process.settled(cells, measured, weight, steps=STEPS)
        mean, left = process.smooth(cells), float(process.left().mean())
        noise = float(np.sum((weight * ((measured - mean) ** 2 + left))[known]) / known.sum())
        process = process.improved(cells, start, strength, max(noise, 1e-9))
    cells = process.settled(cells, measured, weight, steps=LAST_STEPS)
    return process.without_own(cells) + middle


@dataclass(frozen=True)
class _Process:
    """The covariance in its eigenbases: `values` and `vectors` an axis, `spectrum` their outer product."""

    values: list[Floats]
    vectors: list[Floats]
    spectrum: Floats
    noise: float

    @classmethod
    def of(cls, covariances: list[Floats], noise: float) -> _Process:
        pairs = [np.linalg.eigh(covariance) for covariance in covariances]
        values = [np.maximum(pair[0], 1e-9) for pair in pairs]
        return cls(values, [pair[1] for pair in pairs], _outer(values), noise)

    def _turned(self, cells: Floats) -> Floats:
        return _along_each(cells, [basis.T for basis in self.vectors])

    def left(self) -> Floats:
        """Variance left in each eigendirection once the cells are known."""
        return np.asarray(self.spectrum * self.noise / (self.spectrum + self.noise))

    def smooth(self, cells: Floats) -> Floats:
        """Posterior mean given whole cells with equal noise."""
        return _along_each(self._turned(cells) * (self.spectrum / (self.spectrum + self.noise)), self.vectors)

    def without_own(self, cells: Floats) -> Floats:
        """Each cell as all others predict it: cell - (A^-1 cells) / diag(A^-1), A = covariance + noise."""
        inverse = 1.0 / (self.spectrum + self.noise)
        solved = _along_each(self._turned(cells) * inverse, self.vectors)
        return np.asarray(cells - solved / _along_each(inverse, [basis**2 for basis in self.vectors]))

    def settled(self, cells: Floats, measured: Floats, weight: Floats, steps: int) -> Floats:
        """Cells of equal noise that stand for `measured` ones of noise / weight, by conjugate gradients from `cells`.

        They solve (A^-1 + P)(cells) = P measured with P = weight / ((1 - weight) noise): weight 0 leaves a cell to
        all others, weight 1 fixes it.
        """
        inverse = 1.0 / (self.spectrum + self.noise)
        trust = np.minimum(weight, FULL_WEIGHT)
        pull = trust / ((1.0 - trust) * self.noise)
        scale = _along_each(inverse, [basis**2 for basis in self.vectors]) + pull
        rest = pull * (measured - cells) - _along_each(self._turned(cells) * inverse, self.vectors)
        way = ahead = rest / scale
        size = float(np.vdot(rest, ahead))
        for _ in range(steps):
            if size <= 1e-18:
                break
            turned = _along_each(self._turned(way) * inverse, self.vectors) + pull * way
            step = size / float(np.vdot(way, turned))
            cells, rest = cells + step * way, rest - step * turned
            ahead = rest / scale
            size, before = float(np.vdot(rest, ahead)), size
            way = ahead + size / before * way
        return cells

    def improved(self, cells: Floats, prior: Sequence[Floats], strength: float, noise: float) -> _Process:
        """One step of expectation maximisation of all covariances, with the noise given."""
        turned = self._turned(cells)
        mean, variance = turned * self.spectrum / (self.spectrum + self.noise), self.left()
        fresh = []
        for axis, own in enumerate(self.values):
            others, size = _outer(self.values, skip=axis), len(own)
            rows = np.moveaxis(mean / np.sqrt(others), axis, 0).reshape(size, -1)
            matrix = rows @ rows.T
            matrix[np.diag_indices(size)] += np.moveaxis(variance / others, axis, 0).reshape(size, -1).sum(axis=1)
            matrix = self.vectors[axis] @ matrix @ self.vectors[axis].T
            matrix = (matrix + strength * prior[axis]) / (cells.size / size + strength)
            fresh.append((matrix + matrix.T) / 2.0)
        for axis in range(1, len(fresh)):
            scale = np.trace(fresh[axis]) / len(fresh[axis])
            fresh[axis], fresh[0] = fresh[axis] / scale, fresh[0] * scale
        return _Process.of(fresh, noise)


def _along_each(cells: Floats, matrices: Sequence[Floats]) -> Floats:
    """Every axis of `cells` multiplied by its matrix."""
    for axis, matrix in enumerate(matrices):
        cells = np.moveaxis(np.tensordot(matrix, np.moveaxis(cells, axis, 0), axes=(1, 0)), 0, axis)
    return cells


def _outer(vectors: Sequence[Floats], skip: int = -1) -> Floats:
    """The outer product of `vectors`, one axis each; the axis `skip` has extent one."""
    product = np.ones((1,) * len(vectors))
    for axis, vector in enumerate(vectors):
        if axis != skip:
            product = product * vector.reshape([-1 if other == axis else 1 for other in range(len(vectors))])
    return product
