"""t = alpha + bytes / beta along one curve, in as many pieces as it has protocols."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profiles.document import Table
from profiles.fitting.document import Fit, Piece
from profiles.fitting.making import Axes, Named, Unfitted, attempt, key_of, pick, ranges, rate
from profiles.fitting.quality import held_out, quality, r_squared, short
from profiles.fitting.robust import fit_linear
from profiles.fitting.segments import pieces

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

FORMULA = "t = alpha_s + message_bytes / beta_bytes_per_s"


def alpha_beta_fit(table: Table, axes: Axes, seconds: Floats, at: dict[str, int]) -> Fit | Unfitted | None:
    """The pieces of one curve; None with fewer than three rows. `axes` has message_bytes."""
    return attempt("alpha_beta", at, lambda: _alpha_beta_fit(table, axes, seconds, at))


def _alpha_beta_fit(table: Table, axes: Axes, seconds: Floats, at: dict[str, int]) -> Fit | None:
    size = axes["message_bytes"]
    if len(seconds) < 3:
        return None
    cuts, found = fit_pieces(size, seconds)
    which = np.searchsorted(cuts, size)
    predicted = priced(cuts, found, size)
    error = quality("all rows were fitted", predicted, seconds)
    if error is None:
        return None
    return Fit(
        table=key_of(table),
        form="alpha_beta",
        formula=FORMULA,
        at=at,
        pieces=[
            Piece(
                rows=int((which == number).sum()), ranges=ranges(pick(axes, which == number)), coefficients=named(own)
            )
            for number, own in enumerate(found)
        ],
        breakpoints_bytes=cuts.tolist(),
        r_squared=r_squared(predicted, seconds),
        error=error,
        held_out=held_out(lambda kept: _without(size, seconds, kept), seconds, 2),
    )


def fit_pieces(size: Floats, seconds: Floats) -> tuple[Floats, list[Floats]]:
    """Where pieces meet (bytes, ascending) and (alpha, 1 / beta) of each piece."""
    levels = np.unique(size)
    spans = pieces(size, seconds)
    cuts = np.array([short(float(np.sqrt(levels[span.last] * levels[span.last + 1]))) for span in spans[:-1]])
    which = np.searchsorted(cuts, size)
    terms = np.stack([np.ones_like(size), size], axis=1)
    return cuts, [fit_linear(terms[which == number], seconds[which == number]) for number in range(len(spans))]


def priced(cuts: Floats, found: list[Floats], size: Floats) -> Floats:
    """Seconds by the piece that each size falls into."""
    coefficients = np.stack(found)[np.searchsorted(cuts, size)]
    return np.asarray(coefficients[:, 0] + coefficients[:, 1] * size)


def named(found: Floats) -> Named:
    """Alpha in seconds and beta in bytes per second."""
    return {"alpha_s": short(float(found[0])), "beta_bytes_per_s": rate(float(found[1]))}


def _without(size: Floats, seconds: Floats, kept: Bools) -> Floats:
    """All sizes priced by pieces that are sought again without the rows left out."""
    return priced(*fit_pieces(size[kept], seconds[kept]), size)
