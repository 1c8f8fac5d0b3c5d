"""alpha + beta work / d + gamma L through measured batches: non-negative least squares, and how far off each row is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.attribution import Sources
from planner.errors import BadInputError
from planner.papers.bidirl.measurements import StepRow
from planner.papers.bidirl.time_kinds import LEAST_S, Fit, Linear
from profiles.fitting.document import Quality
from profiles.fitting.quality import held_out, short
from profiles.least_squares import fit_not_negative

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

FEWEST_REPLICAS = 3
"""Distinct counts of replicas that tell start-up, work and tail apart."""
MODELLED = Sources(modelled=1.0)


@dataclass(frozen=True)
class Line:
    """A fitted time. ``errors`` are predicted / measured - 1, a row each; ``unseen`` those of rows left out."""

    time: Linear
    predicted_s: tuple[float, ...]
    errors: tuple[float, ...]
    unseen: Quality | None


def fit_line(
    rows: Sequence[StepRow], *, alpha_s: float | None, gamma_s_per_token: float | None, max_tokens: float, where: str
) -> Line:
    """The line through the rows; a coefficient that is given is kept. ``max_tokens`` is L of rows that state none.

    Raises BadInputError: rows that cannot tell the coefficients apart.
    """
    given = np.array([np.nan if value is None else value for value in (alpha_s, np.nan, gamma_s_per_token)])
    terms = _terms(rows, max_tokens)
    seconds = np.array([row.time_s for row in rows])
    _refuse_unclear(rows, terms, given, where)

    def fitted(kept: Bools) -> Floats:
        free = np.isnan(given)
        known = np.where(free, 0.0, given)
        found = fit_not_negative(terms[kept][:, free], seconds[kept] - terms[kept] @ known)
        known[free] = found
        return known

    coefficients = np.array([float(f"{value:.8e}") for value in fitted(np.ones(len(rows), dtype=bool)).tolist()])
    predicted = terms @ coefficients
    if not predicted.max() > LEAST_S:
        message = "expected rows that take longer than alpha_s and gamma_s_per_token alone, as they are given"
        raise BadInputError(message, code="out_of_range", where=where)
    errors = predicted / seconds - 1
    alpha, beta, gamma = coefficients.tolist()
    replicas = [row.replicas for row in rows]
    fit = Fit(
        rows=len(rows),
        from_replicas=min(replicas),
        to_replicas=max(replicas),
        median_error=short(float(np.median(np.abs(errors)))),
        p90_error=short(float(np.percentile(np.abs(errors), 90))),
    )
    time = Linear(alpha_s=alpha, beta_s=beta, gamma_s_per_token=gamma, fit=fit, sources=MODELLED)
    unseen = held_out(lambda kept: terms @ fitted(kept), seconds, int(np.isnan(given).sum()))
    return Line(time, tuple(predicted.tolist()), tuple(errors.tolist()), unseen)


def _terms(rows: Sequence[StepRow], max_tokens: float) -> Floats:
    """Columns 1, work / d and L, shape [rows, 3]."""
    return np.array(
        [
            (1.0, row.work_factor / row.replicas, max_tokens if row.max_response_tokens is None else L)
            for row in rows
            for L in (row.max_response_tokens,)
        ],
        dtype=np.float64,
    )


def _refuse_unclear(rows: Sequence[StepRow], terms: Floats, given: Floats, where: str) -> None:
    free = np.isnan(given)
    distinct = len({row.replicas for row in rows})
    if free.all() and distinct < FEWEST_REPLICAS:
        raise BadInputError(
            f"rows of {distinct} counts of replicas do not tell alpha_s, beta_s and gamma_s_per_token apart: expected "
            f"{FEWEST_REPLICAS} at least, or state alpha_s or gamma_s_per_token",
            code="missing_field",
            where=where,
        )
    columns = terms[:, free]
    if int(np.linalg.matrix_rank(columns / np.abs(columns).max(axis=0))) < int(free.sum()):
        names = ("alpha_s", "beta_s", "gamma_s_per_token")
        told = " and ".join(name for name, each in zip(names, free.tolist(), strict=True) if each)
        raise BadInputError(
            f"the {len(rows)} rows do not tell {told} apart, as replicas, work and longest response vary too little: "
            "state alpha_s or gamma_s_per_token, or give more rows",
            code="missing_field",
            where=where,
        )
