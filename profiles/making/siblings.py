"""A row's time from its siblings: rows with the same size on other curves know what a kernel does at that size.

Log seconds less a reference form a grid, one axis for each group of columns of `GRIDS`, and a process on it
(`profiles.making.process`) says what every cell should take. A table asks it for rows that contradict the rest (spikes,
steps that get faster with size) and for places that one curve measured and another did not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profiles.families import Family
from profiles.making.process import filled, likeness
from profiles.making.waves import fit_waves, wave_seconds
from profiles.roofline import fit_roofline, modelled_seconds

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEWEST_ROWS = 60
MOST_CELLS = 400_000
THINNEST = 0.3
"""Below this share of measured cells the grid's axes say little about each other."""


@dataclass(frozen=True)
class Axes:
    """Which columns make each axis of the grid, and how its process is learned."""

    groups: tuple[tuple[str, ...], ...]
    strength: float
    rounds: int


_ATTENTION = ("head_dim", "queries_per_kv_head", "heads")
_EXPERTS = ("hidden", "ffn", "experts", "top_k", "tensor_ranks", "expert_ranks")
GRIDS: dict[str, Axes] = {
    "gemm": Axes((("m",), ("n",), ("k",)), strength=0.0, rounds=50),
    "encoder_attention": Axes((("head_dim",), ("heads",), ("length",)), strength=30.0, rounds=40),
    "prefill_attention": Axes((_ATTENTION, ("batch",), ("length",)), strength=30.0, rounds=30),
    "decode_attention": Axes((_ATTENTION, ("batch",), ("kv_length",)), strength=30.0, rounds=30),
    "moe_gemm": Axes((_EXPERTS, ("tokens",)), strength=100.0, rounds=40),
}
_LENGTHS: dict[tuple[str, ...], float] = {("n",): 2.0, ("k",): 2.0}
_FIRST_SPREAD = {"gemm": 0.05}


class Siblings:
    """The grid of one table and what the process says of its cells. Rows are one a key."""

    def __init__(self, family: Family, columns: Mapping[str, Ints], seconds: Floats, element_bytes: float,
                 multiprocessors: int | None) -> None:  # fmt: skip
        settings = GRIDS[family.name]
        self._groups, self._keys, places = settings.groups, [], []
        for group in self._groups:
            keys, place = np.unique(np.stack([columns[axis] for axis in group], axis=1), axis=0, return_inverse=True)
            self._keys.append(keys)
            places.append(place.reshape(-1))
        self._shape = [len(keys) for keys in self._keys]
        whole = self._whole()
        reference = np.log(_reference(family, columns, seconds, whole, element_bytes, multiprocessors))
        residual = np.full(self._shape, np.nan)
        residual[tuple(places)] = np.log(seconds) - reference.reshape(self._shape)[tuple(places)]
        start = [likeness(np.log(keys), _LENGTHS.get(group, 1.0)) for group, keys in
                 zip(self._groups, self._keys, strict=True)]  # fmt: skip
        start[0] = start[0] * _FIRST_SPREAD.get(family.name, 0.01)
        mean = filled(residual, start, strength=settings.strength, rounds=settings.rounds)
        self._seconds = np.exp(mean + reference.reshape(self._shape))

    def seconds(self, columns: Mapping[str, Ints]) -> Floats:
        """What the process says of rows at `columns`; NaN off the grid."""
        places, known = [], np.ones(len(next(iter(columns.values()))), dtype=bool)
        for group, keys in zip(self._groups, self._keys, strict=True):
            place = {tuple(key): number for number, key in enumerate(keys.tolist())}
            rows = zip(*(columns[axis].tolist() for axis in group), strict=True)
            found = np.array([place.get(row, -1) for row in rows], dtype=np.int64)
            known &= found >= 0
            places.append(found)
        return np.where(known, self._seconds[tuple(places)], np.nan)

    def _whole(self) -> dict[str, Floats]:
        """Every cell of the grid as columns."""
        mesh = np.meshgrid(*(np.arange(size) for size in self._shape), indexing="ij")
        return {
            axis: keys[place.reshape(-1), number].astype(np.float64)
            for group, keys, place in zip(self._groups, self._keys, mesh, strict=True)
            for number, axis in enumerate(group)
        }


def have_siblings(family: Family, columns: Mapping[str, Ints]) -> bool:
    """Whether rows of this family form a grid that is large, whole and small enough to learn from."""
    axes = GRIDS.get(family.name)
    rows = len(columns[family.along])
    if axes is None or rows < FEWEST_ROWS:
        return False
    sizes = [len(np.unique(np.stack([columns[axis] for axis in group]), axis=1).T) for group in axes.groups]
    cells = float(np.prod([float(size) for size in sizes]))
    return cells <= MOST_CELLS and rows >= THINNEST * cells and max(sizes) <= 2_000


def _reference(
    family: Family,
    columns: Mapping[str, Ints],
    seconds: Floats,
    whole: Mapping[str, Floats],
    element_bytes: float,
    multiprocessors: int | None,
) -> Floats:
    measured = {axis: column.astype(np.float64) for axis, column in columns.items()}
    if family.name == "encoder_attention" and multiprocessors is not None:
        return wave_seconds(whole, fit_waves(measured, seconds, multiprocessors), multiprocessors)
    coefficients = fit_roofline(family.name, measured, seconds, element_bytes)
    return modelled_seconds(family.name, whole, coefficients, element_bytes)
