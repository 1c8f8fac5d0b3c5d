"""The fit document: what was fitted to which rows, in which form, and how far off it is. SI units, named."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, FiniteFloat

from profiles.document import Count, Name, Part, Share

FORMAT_VERSION = "1.0"


class Quality(Part):
    """Errors |predicted / measured - 1| over all rows of a fit, spikes included. None where nothing was predicted."""

    how: Name = Field(description="'all rows were fitted', 'leave one out', '5 folds'")
    rows: Count
    mape: Share = Field(description="mean")
    median: Share
    p90: Share


class Piece(Part):
    """The formula's coefficients over one range of its axes; null: the rows do not show it (no growth with size)."""

    rows: Count
    ranges: dict[Name, tuple[FiniteFloat, FiniteFloat]] = Field(
        description="smallest and largest value fitted, by axis"
    )
    coefficients: dict[Name, FiniteFloat | None]


class TableKey(Part):
    """What names a table of a profile."""

    family: Name
    dtype: Name
    backend: str = ""
    workload: str = ""


class Fit(Part):
    """One formula fitted to the rows of one table, or to one curve of it."""

    table: TableKey
    form: Name = Field(description="alpha_beta, ring, quadratic, linear or roofline")
    formula: Name
    at: dict[Name, int] = Field(description="axes with one value here; a joint fit has fewer of them")
    pieces: Annotated[list[Piece], Field(min_length=1)]
    breakpoints_bytes: list[FiniteFloat] = Field(
        default_factory=list,
        description="between pieces: the geometric mean of the last size below and the first above",
    )
    derived: dict[Name, FiniteFloat] = Field(default_factory=dict, description="what follows from the coefficients")
    at_bound: list[Name] = Field(
        default_factory=list,
        description="coefficients pushed to a bound (a stated peak, or 1e4 times the start): the rows do not fix them",
    )
    r_squared: FiniteFloat | None = Field(description="on the logarithms of seconds; null if all seconds are equal")
    error: Quality
    held_out: Quality | None = Field(description="each row predicted by a fit without it; null with too few rows")


class FitDocument(Part):
    """All fits of one profile."""

    format_version: Annotated[str, Field(pattern=r"^1\.\d+$")] = FORMAT_VERSION
    profile: Name
    profile_sha256: Name
    fits: list[Fit]
    not_fitted: list[str] = Field(default_factory=list, description="tables without a fit, and why")
