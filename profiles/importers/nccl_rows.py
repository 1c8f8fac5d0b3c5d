"""One row of nccl-tests, and whether it agrees with the collective and the number of ranks it is said to be of.

A row states the same thing several times: size, time and algbw; algbw, busbw and ranks; size, count and type. The
factors busbw / algbw are those of nccl-tests' doc/PERFORMANCE.md; `count` is one rank's share where ranks gather.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

DTYPES = {
    "float": ("fp32", 4),
    "half": ("fp16", 2),
    "bfloat16": ("bf16", 2),
    "double": ("fp64", 8),
    "int8": ("int8", 1),
    "uint8": ("int8", 1),
    "int32": ("int32", 4),
    "uint32": ("int32", 4),
    "int64": ("int64", 8),
    "uint64": ("int64", 8),
    "fp8_e4m3": ("fp8", 1),
    "fp8_e5m2": ("fp8", 1),
    "f8e4m3": ("fp8", 1),
    "f8e5m2": ("fp8", 1),
}
SIZE_0 = "size 0 moves nothing"
_SHARES = ("all_gather", "reduce_scatter", "all_to_all")
_REDUCES = {"all_reduce": True, "reduce_scatter": True, "all_gather": False, "all_to_all": False, "broadcast": False}
_TELLS = 1.0
"""GB/s: below, two decimals tell little of busbw / algbw."""


@dataclass(frozen=True)
class Timing:
    """Microseconds, algbw and busbw in GB/s, and how far these may be off by their printed digits, of half a row."""

    microseconds: float
    algbw: float
    busbw: float
    rounding: float


@dataclass(frozen=True)
class Row:
    """One row: bytes and elements as printed, nccl's name of the type, the reduction and root if they are filled."""

    line: int
    size: int
    count: int
    kind: str
    redop: str | None
    root: int | None
    out_of_place: Timing
    in_place: Timing | None

    @property
    def dtype(self) -> str:
        """The type by our name."""
        return DTYPES[self.kind][0]

    @property
    def count_bytes(self) -> int:
        """The bytes of `count` elements."""
        return self.count * DTYPES[self.kind][1]

    @property
    def timings(self) -> tuple[Timing, ...]:
        """Out of place, and in place where it was measured."""
        return (self.out_of_place, self.in_place) if self.in_place else (self.out_of_place,)


def parse_row(line: int, words: Sequence[str]) -> Row:
    """The row in `words`. Raises `ValueError` with the reason."""
    if any("XX" in word for word in words):
        raise ValueError("a placeholder (XXX) stands where a number should be")
    if len(words) < 11:
        raise ValueError(f"expected at least 11 columns, got {len(words)}")
    if max(len(word) for word in words[:2]) > 13:
        raise ValueError("a size of more than 13 digits is no size of a message")
    if not all(word.isascii() and word.isdigit() for word in words[:2]):
        raise ValueError(f"expected size and count as whole numbers, got {' '.join(words[:2])!r:.40}")
    size, count, kind = int(words[0]), int(words[1]), words[2]
    if kind not in DTYPES:
        raise ValueError(f"unknown type {kind!r:.40}")
    if size == 0:
        raise ValueError(SIZE_0)
    out, inside = _timing(size, words[-8:-4]), _timing(size, words[-4:])
    if out is None:
        raise ValueError("the out-of-place time is N/A")
    return Row(line, size, count, kind, *_between(words[3:-8]), out, inside)


def _between(words: Sequence[str]) -> tuple[str | None, int | None]:
    """The reduction and the root, each of which may be blank."""
    if len(words) > 2:
        raise ValueError(f"expected at most a reduction and a root behind the type, got {' '.join(words)!r:.60}")
    roots = [word for word in words if word.lstrip("-").isdecimal()]
    redops = [word for word in words if word not in roots]
    if len(roots) > 1 or len(redops) > 1 or any(len(word) > 9 for word in roots):
        raise ValueError(f"expected a reduction and a root behind the type, got {' '.join(words)!r:.60}")
    return (redops[0] if redops else None), (int(roots[0]) if roots else None)


def _timing(size: int, words: Sequence[str]) -> Timing | None:
    if words[3] != "N/A" and _number(words[3]) != 0:
        raise ValueError(f"the test reports wrong results ({words[3]:.20})")
    if words[0] == "N/A":
        return None
    time, algbw, busbw = (_number(word) for word in words[:3])
    if not 0 < time < 1e12:
        raise ValueError(f"expected a time > 0 and < 1e12 us, got {time}")
    if not (0 <= algbw < 1e9 and 0 <= busbw < 1e9):
        raise ValueError(f"expected bandwidths >= 0 GB/s, got {algbw} and {busbw}")
    if abs(size / time / 1e3 - algbw) > 0.006 + 0.02 * algbw:
        raise ValueError(f"{size} bytes in {time} us are not the {algbw} GB/s stated: shifted or other columns")
    decimals = min(len(word.partition(".")[2]) for word in words[1:3])
    return Timing(time, algbw, busbw, 0.55 * 10.0**-decimals)


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ValueError(f"expected a number, got {word!r:.40}") from None


def only_all_reduce(rows: Sequence[Row]) -> bool:
    """all_reduce is the one test whose rows have a sum, no root, as many elements as bytes, and busbw above algbw."""
    row = max(rows, key=lambda row: row.size)
    reduces = row.redop == "sum" and row.root in (None, -1)
    alg, bus = row.out_of_place.algbw, row.out_of_place.busbw
    return reduces and row.size == row.count_bytes and alg > 0 and bus > 1.02 * alg


def told_ranks(operation: str, rows: Sequence[Row]) -> int | None:
    """The number of ranks that the rows themselves tell, or None: by size / count where ranks gather, else by busbw /
    algbw of the largest row, if no other number of ranks gives that."""
    if operation in _SHARES:
        shares = [row.size // row.count_bytes for row in rows if row.count_bytes and row.size % row.count_bytes == 0]
        if shares:
            return Counter(shares).most_common(1)[0][0]
    if operation not in ("all_reduce", *_SHARES):
        return None
    row = max(rows, key=lambda row: row.size)
    alg, bus = row.out_of_place.algbw, row.out_of_place.busbw
    ratio = bus / alg / (2.0 if operation == "all_reduce" else 1.0) if alg else 0.0
    if not 0 < ratio < 1:
        return None
    near = round(1.0 / (1.0 - ratio))
    fits = [ranks for ranks in (near - 1, near, near + 1) if ranks >= 2 and _fits(row.out_of_place, operation, ranks)]
    return near if fits == [near] else None


def _factor(operation: str, ranks: int) -> float:
    """busbw / algbw."""
    if operation == "all_reduce":
        return 2.0 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if operation in _SHARES else 1.0


def _fits(timing: Timing, operation: str, ranks: int) -> bool:
    factor = _factor(operation, ranks)
    return abs(timing.busbw - timing.algbw * factor) <= timing.rounding * (1 + factor)


def disagreements(operation: str, ranks: int | None, rows: Sequence[Row]) -> dict[int, str]:
    """The lines that contradict the operation or the ranks (None: not known), with the reason.

    All of them if it is half of those that can tell: then the operation or the ranks are wrong, also for the rows
    whose bandwidths are too small to show it.
    """
    wrong = {row.line: reason for row in rows if (reason := _disagrees(operation, ranks, row))}
    telling = [row for row in rows if row.out_of_place.algbw >= _TELLS] or rows
    if wrong and 2 * sum(row.line in wrong for row in telling) >= len(telling):
        last = max(wrong)
        return {row.line: wrong.get(row.line, f"as line {last}: {wrong[last]}") for row in rows}
    return wrong


def _disagrees(operation: str, ranks: int | None, row: Row) -> str | None:
    reduces = _REDUCES.get(operation)
    if row.redop is not None and reduces is not None and reduces == (row.redop == "none"):
        return f"the reduction {row.redop!r:.20} is not one of {operation}: the rows are of another collective"
    if (row.root or 0) >= 0 and row.root is not None and operation != "broadcast":
        return f"the root {row.root} is not one of {operation}: the rows are of another collective"
    share = ranks if operation in _SHARES else 1
    if share is not None and row.size != row.count_bytes * share:
        by = f" x {share} ranks" if operation in _SHARES else ""
        return (
            f"{row.size} bytes are not the {row.count} elements of {row.kind}{by} that {operation} would move: "
            "shifted columns, another collective or other ranks"
        )
    for timing in row.timings:
        if reason := _wrong_busbw(operation, ranks, timing):
            return reason
    return None


def _wrong_busbw(operation: str, ranks: int | None, timing: Timing) -> str | None:
    low, high = (_factor(operation, ranks or 2), _factor(operation, ranks or 1 << 30))
    slack = timing.rounding * (1 + high)
    if low * timing.algbw - slack <= timing.busbw <= high * timing.algbw + slack:
        return None
    of = f" by {ranks} ranks" if ranks and operation in ("all_reduce", *_SHARES) else ""
    ratio = timing.busbw / timing.algbw if timing.algbw else math.inf
    expected = f"{low:.4g}" if math.isclose(low, high) else f"{low:.4g} to {high:.4g}"
    return f"busbw is {ratio:.4g} times algbw, in {operation}{of} it is {expected}: another collective or other ranks"
