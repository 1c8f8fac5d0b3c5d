"""What the readers of aiconfigurator's tables share: a reader, a source, and how rows become tables of ours.

Two rules keep apart what differs. Rows of one key that were measured with several kernels become one table a kernel
(`backend` is its name); where the framework picks the kernel by the key, the rows are one table. A column that varies
within a key and that no reader knows of makes its rows refused, never merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from profiles.families import DTYPE_BYTES
from profiles.importers.parquet import Frame
from profiles.making.building import RawRows

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.str_]

MILLISECONDS = 1e-3
MICROSECONDS = 1e-6


@dataclass(frozen=True)
class Source:
    """One file as its rows know it: their provenance, GPUs in a node, and what is to be said of it on stderr."""

    id: str
    gpus_per_node: int = 8
    remarks: list[str] = field(default_factory=list)

    def refuse(self, count: int, reason: str) -> None:
        """Say that `count` rows were not read, unless there are none."""
        if count:
            self.remarks.append(f"{self.id}: {count} rows {reason}")


@dataclass(frozen=True)
class Reader:
    """One kind of file: where it lies, the families in it, its times, and its rows as ours.

    `times` are the columns whose sum is a row's time, in units of `seconds_per_unit`; none if `read` takes them itself.
    """

    id: str
    folder: str
    file: str
    families: tuple[str, ...]
    read: Callable[[Frame, Floats, Source], Iterator[RawRows]]
    times: tuple[str, ...] = ("latency",)
    seconds_per_unit: float = MILLISECONDS


def kernels(frame: Frame, rows: Bools) -> tuple[str, ...]:
    """The kernels that some rows name, sorted."""
    return tuple(np.unique(frame.text("kernel_source")[rows]).tolist())


def groups(labels: Texts, among: Bools) -> Iterator[tuple[str, Bools]]:
    """Each different label with its rows, sorted."""
    for label in np.unique(labels[among]).tolist():
        yield label, among & (labels == label)


def known_dtypes(dtypes: Texts, source: Source) -> Iterator[tuple[str, Bools]]:
    """Each dtype that families know with its rows; the others are refused by name."""
    for dtype, rows in groups(dtypes, np.ones(len(dtypes), dtype=bool)):
        if dtype in DTYPE_BYTES:
            yield dtype, rows
        else:
            source.refuse(int(rows.sum()), f"of dtype {dtype} not read: no such dtype here")


def by_kernel(frame: Frame, columns: Iterable[Ints], rows: Bools) -> Iterator[tuple[str, Bools]]:
    """`rows` in one, with an empty name, if their keys say which kernel ran; else one part a kernel, by its name."""
    kernel = frame.text("kernel_source")
    if len(np.unique(kernel[rows])) < 2:
        yield "", rows
        return
    keys = [column[rows] for column in columns]
    if varies_within(keys, np.unique(kernel[rows], return_inverse=True)[1].reshape(-1)):
        yield from groups(np.char.lower(kernel), rows)
    else:
        yield "", rows


def varies_within(keys: Sequence[Ints], values: Ints) -> bool:
    """Whether one combination of `keys` has more than one of `values`."""
    key = numbered(keys, len(values))
    return len(np.unique(np.stack([key, values]), axis=1)[0]) > int(key.max(initial=-1)) + 1


def numbered(columns: Sequence[Ints], rows: int) -> Ints:
    """A number from 0 for each different combination of the columns."""
    number = np.zeros(rows, dtype=np.int64)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        number = np.unique(number * len(values) + place.reshape(-1), return_inverse=True)[1].reshape(-1)
    return number
