"""How a problem names measured runs, and what it keeps of them once they are read."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.validation import Document, Many

ENOUGH_DEGREES, ENOUGH_SPAN = 4, 8
"""Degrees, and the largest over the smallest, from which on a fit may be believed."""
WELL_FITTED, WELL_CHOSEN = 0.05, 0.01
"""Largest relative error of a fit that is believed, and the largest regret of the degree it picks."""

Sequential = Literal["measured", "stated", "modelled"]
"""Where a time in sequence comes from: a run of degree 1, who wrote the problem, or stages and rows."""

FilePath = Annotated[str, Field(min_length=1, max_length=1000)]


class Runs(Document):
    """Measured runs of the whole operator in a CSV file beside the problem; read into ``inter_decom_table``.

    Columns ``degree,time_s``. Degree 1 is the sequential run. Runs of one degree are taken by their median.
    """

    path: FilePath


class Stages(Document):
    """Measured runs of each stage alone in a CSV file beside the problem; fitted into ``comm`` and ``gemm``.

    Columns ``stage,size,time_s``: stage comm with its size in bytes, stage gemm with its size in rows.
    """

    path: FilePath
    comm_bytes: float = Field(gt=0, le=1e24, description="V: bytes of the whole collective")
    gemm_rows: float = Field(gt=0, le=1e24, description="M: rows of the whole GEMM")


class Curve(Document):
    """T(d) = A d + B + C / d between two degrees, fitted to measured runs."""

    from_degree: int
    to_degree: int
    A_s: float
    B_s: float
    C_s: float


class Fit(Document):
    """What was fitted to the runs of an operator, and how far it is to be believed; for the reader."""

    curves: Many[Curve] = Field(default=(), description="of T(d); none where there are fewer than three degrees")
    max_relative_error: float | None = Field(default=None, description="of the curves at the measured degrees")
    fit_degree: int | None = Field(default=None, description="the best degree by the curves")
    table_degree: int | None = Field(default=None, description="the best degree by the table, which decides")
    regret: float | None = Field(default=None, description="what the curves' degree costs over the table's, relative")
    comm_relative_error: float | None = Field(default=None, description="largest, of the line through the sweep")
    gemm_relative_error: float | None = Field(default=None, description="largest, of the line through the sweep")
    sequential: Sequential | None = Field(
        default=None, description="what the time in sequence beside the runs is: a run of degree 1, stated, or modelled"
    )
    reliable: bool = Field(description="no error above 5 %, regret at most 1 %, degrees enough")
