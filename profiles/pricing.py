"""The rule behind every lookup: exact row, interpolation inside the measured range, refusal or roofline outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt

from profiles.beyond import seconds_beyond
from profiles.document import ProfileDocument, Table
from profiles.encoder import Fitted, measured_box, surface, surface_seconds
from profiles.errors import ProfileError
from profiles.families import COLLECTIVES, DTYPE_BYTES
from profiles.priced import INTERPOLATED, MEASURED, MODELLED, Priced
from profiles.refusal import Key, absent_message, outside_message
from profiles.roofline import MODELS, fit_roofline, modelled_seconds
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
        self._surfaces: dict[tuple[str, int], dict[str, float]] = {}

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

    def attention_model(self, head_dim: int, dtype: str) -> dict[str, float]:
        """The coefficients of encoder attention at `head_dim`, composed where that was not measured."""
        if (dtype, head_dim) not in self._surfaces:
            found = surface(
                head_dim, self._fitted("encoder_attention", dtype), self._fitted("prefill_attention", dtype)
            )
            if found is None:
                message = absent_message(self.name, ("encoder_attention", dtype, "", ""), list(self.entries))
                message += f". Causal prefill rows at head_dim {head_dim} could stand in but are missing too"
                raise ProfileError(message, code="outside_measured_range")
            self._surfaces[dtype, head_dim] = found
        return self._surfaces[dtype, head_dim]

    def modelled_attention(
        self, query: dict[str, Floats], q_len: Floats, dtype: str, extrapolate: Extrapolate
    ) -> Floats:
        """Seconds of encoder attention of one head dimension from its surface; refuse: inside the measured box.

        `q_len` is for the message only: `query` already counts shorter or longer queries as heads.
        """
        _check(extrapolate)
        key, head_dim = ("encoder_attention", dtype, "", ""), int(query["head_dim"][0])
        if extrapolate == "refuse":
            box = measured_box(self.table(key), head_dim)
            if box.look_up(query).outside.any():
                raise ProfileError(outside_message(self.name, key, box, query, q_len), code="outside_measured_range")
        return surface_seconds(query, {head_dim: self.attention_model(head_dim, dtype)}, float(DTYPE_BYTES[dtype]))

    def price(
        self, key: Key, table: CostTable, query: dict[str, Floats], shape: tuple[int, ...], extrapolate: Extrapolate
    ) -> Priced:
        """Price flat queries from `table`, under the model of `key` where they lie outside and that is asked for.

        Outside, the price goes on from the nearest measured point (`profiles.beyond`).
        """
        _check(extrapolate)
        found = table.look_up(query)
        seconds, source = found.seconds, np.where(found.exact, MEASURED, INTERPOLATED)
        if found.outside.any():
            if extrapolate == "refuse" or key[0] not in MODELS or _another_link(table, query):
                raise ProfileError(outside_message(self.name, key, table, query), code="outside_measured_range")
            seconds = np.where(found.outside, self._beyond(key, table, query), seconds)
            source = np.where(found.outside, MODELLED, source)
        return Priced(seconds.reshape(shape), source.astype(np.int8).reshape(shape))

    def _beyond(self, key: Key, table: CostTable, query: dict[str, Floats]) -> Floats:
        size = float(DTYPE_BYTES[key[1]])

        def model(axes: Mapping[str, Floats]) -> Floats:
            if key[0] != "encoder_attention":
                return modelled_seconds(key[0], axes, self.formula(key), size)
            dims = [int(d) for d in np.unique(axes["head_dim"])]
            return surface_seconds(axes, {d: self.attention_model(d, key[1]) for d in dims}, size)

        return seconds_beyond(table, query, model)

    def _fitted(self, family: str, dtype: str) -> Fitted | None:
        key = (family, dtype, "", "")
        if key not in self.entries:
            return None
        table = self.table(key)
        return Fitted(table, self.formula(key), float(DTYPE_BYTES[dtype]))

    def formula(self, key: Key) -> dict[str, float]:
        """The coefficients of one table's formula, as stored or fitted now. Raises `ProfileError` like `table`."""
        if key not in self._coefficients:
            entry = self.entries.get(key)
            if entry is not None and entry.roofline is not None:
                self._coefficients[key] = dict(entry.roofline.coefficients)
            else:
                table = self.table(key)
                axes = {axis: column.astype(np.float64) for axis, column in table.columns.items()}
                self._coefficients[key] = fit_roofline(key[0], axes, table.seconds, float(DTYPE_BYTES[key[1]]))
        return self._coefficients[key]


def _check(extrapolate: str) -> None:
    if extrapolate not in ("refuse", "roofline"):
        raise ProfileError(
            f"extrapolate is refuse or roofline, got {extrapolate!r}", code="out_of_range", where="extrapolate"
        )


def _another_link(table: CostTable, query: Mapping[str, npt.NDArray[np.float64]]) -> bool:
    """More ranks or other nodes than measured run over another link, which no curve of this table knows."""
    if table.family.name not in COLLECTIVES:
        return False
    nodes = {group[0] for group in table.grids}
    low, high = table.measured_range("ranks")
    return bool(set(query["nodes"].tolist()) - nodes) or bool(((query["ranks"] < low) | (query["ranks"] > high)).any())
