"""The rule behind every lookup: exact row, interpolation inside the measured range, refusal or roofline outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt

from profiles.document import ProfileDocument, Table
from profiles.encoder import composed_table, lattice
from profiles.errors import ProfileError
from profiles.families import COLLECTIVES, DTYPE_BYTES
from profiles.priced import INTERPOLATED, MEASURED, MODELLED, Priced
from profiles.refusal import Key, absent_message, outside_message
from profiles.roofline import fit_roofline, modelled_seconds
from profiles.sizes import Floats
from profiles.table import CostTable

Extrapolate = Literal["refuse", "roofline"]


class Pricer:
    """The tables of one document, turned into arrays when first asked for. Flat queries in, `Priced` out."""

    def __init__(self, document: ProfileDocument) -> None:
        self.name = document.name
        self.entries: dict[Key, Table] = {table.key: table for table in document.tables}
        self._tables: dict[Key, CostTable] = {}
        self._coefficients: dict[Key, dict[str, float]] = {}
        self._lattices: dict[tuple[str, int], CostTable] = {}

    def table(self, key: Key) -> CostTable:
        """The rows of one table. Raises `ProfileError` (outside_measured_range) if the profile has none."""
        if key not in self._tables:
            entry = self.entries.get(key)
            if entry is None:
                raise ProfileError(absent_message(self.name, key, list(self.entries)), code="outside_measured_range")
            self._tables[key] = entry.cost_table()
        return self._tables[key]

    def has_head_dim(self, key: Key, head_dim: int) -> bool:
        """Whether encoder rows at this head dimension were measured."""
        return key in self.entries and (head_dim,) in self.table(key).grids

    def lattice(self, head_dim: int, dtype: str) -> CostTable:
        """Encoder rows at `head_dim` for shapes that were not measured; composed where even the dimension was not."""
        if (dtype, head_dim) not in self._lattices:
            encoder, causal = ("encoder_attention", dtype, "", ""), ("prefill_attention", dtype, "", "")
            own = self.table(encoder) if encoder in self.entries else None
            if own is not None and self.has_head_dim(encoder, head_dim):
                table: CostTable | None = lattice(head_dim, own)
            else:
                table = composed_table(head_dim, own, self.table(causal) if causal in self.entries else None)
            if table is None:
                message = absent_message(self.name, encoder, list(self.entries))
                message += f". Causal prefill rows at head_dim {head_dim} could stand in but are missing too"
                raise ProfileError(message, code="outside_measured_range")
            self._lattices[dtype, head_dim] = table
        return self._lattices[dtype, head_dim]

    def price(
        self, key: Key, table: CostTable, query: dict[str, Floats], shape: tuple[int, ...], extrapolate: Extrapolate
    ) -> Priced:
        """Price flat queries from `table`, under the model of `key` where they lie outside and that is asked for.

        Outside, the price is that of the nearest measured point times the model's ratio of the two, so it is
        continuous at the edge; where even that point lies in a hole it is the model's own.
        """
        if extrapolate not in ("refuse", "roofline"):
            raise ProfileError(
                f"extrapolate is refuse or roofline, got {extrapolate!r}", code="out_of_range", where="extrapolate"
            )
        found = table.look_up(query)
        seconds, source = found.seconds, np.where(found.exact, MEASURED, INTERPOLATED)
        if found.outside.any():
            if extrapolate == "refuse" or _another_link(table, query):
                raise ProfileError(outside_message(self.name, key, table, query), code="outside_measured_range")
            seconds = np.where(found.outside, self._beyond(key, table, query), seconds)
            source = np.where(found.outside, MODELLED, source)
        return Priced(seconds.reshape(shape), source.astype(np.int8).reshape(shape))

    def _beyond(self, key: Key, table: CostTable, query: dict[str, Floats]) -> Floats:
        coefficients, size = self._model(key, table), float(DTYPE_BYTES[key[1]])
        edge = table.clamp(query)
        at_edge = table.look_up(edge)
        here = modelled_seconds(key[0], query, coefficients, size)
        scaled = at_edge.seconds * here / modelled_seconds(key[0], edge, coefficients, size)
        return np.where(at_edge.outside, here, scaled)

    def _model(self, key: Key, table: CostTable) -> dict[str, float]:
        if key not in self._coefficients:
            entry = self.entries.get(key)
            if entry is not None and entry.roofline is not None:
                self._coefficients[key] = dict(entry.roofline.coefficients)
            else:
                axes = {axis: column.astype(np.float64) for axis, column in table.columns.items()}
                self._coefficients[key] = fit_roofline(key[0], axes, table.seconds, float(DTYPE_BYTES[key[1]]))
        return self._coefficients[key]


def _another_link(table: CostTable, query: Mapping[str, npt.NDArray[np.float64]]) -> bool:
    """More ranks or other nodes than measured run over another link, which no curve of this table knows."""
    if table.family.name not in COLLECTIVES:
        return False
    nodes = {group[0] for group in table.grids}
    low, high = table.measured_range("ranks")
    return bool(set(query["nodes"].tolist()) - nodes) or bool(((query["ranks"] < low) | (query["ranks"] > high)).any())
