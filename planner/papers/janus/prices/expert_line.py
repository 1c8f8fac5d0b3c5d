"""beta and c_e of equation 3, from rows of all experts on one device at few tokens, and where they stop holding.

Routed evenly, t tokens reach min(E, t K) experts, and while each of these gets a token or two, reading its weights is
what takes time: seconds over experts reached are a line. c_e is its intercept, what a device takes before it reads any.
With more tokens the products catch up; from ``DEARER`` times the line on it no longer says what experts cost. Where the
profile has no rows of such experts, those of others may say that these are read faster than the device's memory gives;
beta is never below that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.attribution import Sources
from planner.derivation.account import Error, Floats, rounded_shares, sources_of
from planner.derivation.lines import Line, line_through
from profiles.experts import FAMILY, ExpertRows, whole_formula, whole_products
from profiles.families import DTYPE_BYTES
from profiles.priced import SOURCES
from profiles.pricing import Extrapolate

DEARER = 1.25
MOST_TOKENS = 2.0**20
"""Tokens up to which the end of the line is looked for."""


@dataclass(frozen=True)
class ExpertLine:
    """The line over experts reached; tokens up to which it holds (None: as far as anything is priced)."""

    line: Line
    holds_to_tokens: float | None
    sources: Sources
    error: Error | None
    measured: bool


def expert_line(rows: ExpertRows, extrapolate: Extrapolate) -> ExpertLine:
    """Raises ProfileError: no rows of such experts, unless extrapolate is roofline."""
    E, K = rows.experts, rows.top_k
    tokens = _few(E, K)
    price = whole_products(rows, tokens, extrapolate)
    reached = np.minimum(E, tokens * K)
    line = line_through(reached, price.seconds)
    shares = np.array([(price.source == index).mean() for index in range(len(SOURCES))])
    measured = 1 in rows.expert_ranks()
    profile = rows.profile
    if not measured:
        line = _no_faster_than_memory(line, rows, reached, price.seconds)
    error = (
        profile.cost_error(FAMILY, rows.dtype) if measured else whole_formula(profile, rows.workload, rows.dtype).error
    )
    ends = _holds_to(rows, line.alpha + line.beta * E, extrapolate, measured)
    return ExpertLine(line, ends, sources_of(rounded_shares(shares).tolist()), error, measured)


def _no_faster_than_memory(line: Line, rows: ExpertRows, reached: Floats, seconds: Floats) -> Line:
    """The line with beta no less than reading an expert's three matrices takes, its distance to the prices anew."""
    bandwidth = rows.profile.device.memory_bandwidth_bytes_per_s
    if bandwidth is None:
        return line
    least = float(f"{3 * rows.hidden * rows.ffn * float(DTYPE_BYTES[rows.dtype]) / bandwidth:.8e}")
    if line.beta >= least:
        return line
    off = np.abs((line.alpha + least * reached) / seconds - 1.0)
    return Line(line.alpha, least, float(f"{off.mean():.4g}"), float(f"{off.max():.4g}"))


def few_seconds(rows: ExpertRows, extrapolate: Extrapolate) -> Floats:
    """The prices behind the line. Raises ProfileError."""
    return whole_products(rows, _few(rows.experts, rows.top_k), extrapolate).seconds


def _few(experts: int, top_k: int) -> Floats:
    """Powers of two of tokens until all experts are reached."""
    last = int(np.ceil(np.log2(max(experts / top_k, 1.0))))
    return np.asarray(2.0 ** np.arange(last + 1))


def _holds_to(rows: ExpertRows, level: float, extrapolate: Extrapolate, measured: bool) -> float | None:
    """Tokens where the price of all experts first exceeds DEARER x ``level``, between two prices by logarithm."""
    last = MOST_TOKENS
    if measured:
        columns = rows.profile.cost_table(FAMILY, rows.dtype, workload=rows.workload).columns
        own = np.ones(len(columns["tokens"]), dtype=bool)
        for axis, size in zip(("hidden", "ffn", "experts", "top_k", "tensor_ranks"), rows.geometry, strict=True):
            own &= columns[axis] == size
        last = float(columns["tokens"][own & (columns["expert_ranks"] == 1)].max())
    first = rows.experts / rows.top_k
    if last <= first:
        return None
    tokens = np.geomspace(first, last, 1 + int(np.ceil(8 * np.log2(last / first))))
    dear = whole_products(rows, tokens, extrapolate).seconds > DEARER * level
    return float(f"{tokens[dear.argmax()]:.4g}") if dear.any() else None
