"""Parquet files as plain numpy columns. Needs pyarrow, imported on first use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from profiles.errors import ProfileError
from profiles.strict_json import refuse_placeholder, refuse_special

Column = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Frame:
    """Columns of one length by name: numbers as numpy numbers, text as numpy strings."""

    columns: Mapping[str, Column]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def text(self, name: str) -> npt.NDArray[np.str_]:
        """A text column. Raises `ProfileError` if it is missing."""
        return self._column(name).astype(np.str_)

    def numbers(self, name: str) -> npt.NDArray[np.float64]:
        """A number column as float64. Raises `ProfileError` if it is missing or not numeric."""
        try:
            return self._column(name).astype(np.float64)
        except (ValueError, TypeError):
            raise ProfileError(f"column {name} holds something that is not a number", code="wrong_type") from None

    def integers(self, name: str) -> npt.NDArray[np.int64]:
        """A number column of whole numbers. Raises `ProfileError` if it is missing or holds anything else."""
        values = self.numbers(name)
        whole = np.isfinite(values) & (np.abs(values) < 2.0**62)
        if not whole.all() or not np.array_equal(values, np.rint(values)):
            raise ProfileError(f"column {name} should hold whole numbers", code="wrong_type", where=name)
        return values.astype(np.int64)

    def codes(self, name: str) -> npt.NDArray[np.int64]:
        """A number for each different value of a column, of any type."""
        try:
            return np.unique(self._column(name), return_inverse=True)[1].reshape(-1).astype(np.int64)
        except TypeError:
            raise ProfileError(f"column {name} holds values of several kinds", code="wrong_type", where=name) from None

    def where(self, keep: npt.NDArray[np.bool_]) -> Frame:
        """The rows of a mask."""
        return Frame({name: column[keep] for name, column in self.columns.items()})

    def _column(self, name: str) -> Column:
        if name not in self.columns:
            raise ProfileError(
                f"column {name} is missing (columns: {', '.join(self.columns)})", code="missing_field", where=name
            )
        return self.columns[name]


def read_parquet(path: Path) -> Frame:
    """All columns of a parquet file. Raises `ProfileError` for a placeholder, a broken file, or missing pyarrow."""
    try:
        import pyarrow as pa
        from pyarrow import parquet as pq
    except ImportError:
        raise ProfileError(
            "reading parquet needs pyarrow: pip install 'girih[aiconfigurator]'", code="unknown_profile"
        ) from None
    refuse_special(path)
    with path.open("rb") as stream:
        refuse_placeholder(stream.read(200), path.name)
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise ProfileError(f"{path.name} is not a readable parquet file: {error}", code="not_json") from None
    columns: dict[str, Column] = {}
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            # A few different words in many rows: decode each word once.
            words = pa.concat_arrays(column.fill_null("").chunks or [pa.array([], column.type)]).dictionary_encode()
            names = np.array([str(word) for word in words.dictionary.to_pylist()] or [""])
            columns[name] = names[words.indices.to_numpy(zero_copy_only=False)]
        else:
            columns[name] = column.to_numpy()
    return Frame(columns)
