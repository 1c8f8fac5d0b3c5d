"""What no placement of given copies is below, from eigenvalues: near where co-activation follows popularity.

Let x_g in {0, 1}^E say what instance g holds, c = R / n the mean of them, y_g = x_g - c. For any u

    2 Σ I(g) = Σ x_g'(W + diag u) x_g - Σ u(e) R(e) = n c'(W + diag u) c + Σ y_g'(W + diag u) y_g - Σ u(e) R(e),

and as all instances hold as many copies every y_g sums to 0, while Σ |y_g|^2 = Σ R(e) - R(e)^2 / n: the sum over y_g is
at least that times the least eigenvalue among vectors that sum to 0. The largest I has no less than the mean.
(Donath and Hoffman, IBM J. Res. Dev. 17, 1973, for graph partitions.)
"""

from __future__ import annotations

import math

import numpy as np

from planner.papers.janus.experts.placement import Floats, Ints

MOST_EXPERTS = 512
"""Those with fewer copies than instances; of more, the eigenvalues take longer than the placement."""
STEPS = 8
FITS = 20
SMOOTH = 0.005
"""Share of the spectrum over which the least eigenvalues are averaged for a direction."""
_ROUNDING = 1e-9


def eigenvalue_bound(copies: Ints, instances: int, together: Floats) -> float:
    """A lower bound on the largest I(g) where all slots are used; 0 where the experts are too many.

    u starts where W + diag u is nearly of rank one, as it is if experts are chosen by popularity alone, and climbs.
    """
    apart = np.flatnonzero(copies < instances)
    if len(apart) > MOST_EXPERTS:
        return 0.0
    mean = copies / instances
    twice = instances * float(mean @ together @ mean)
    if len(apart) > 1:
        part = together[np.ix_(apart, apart)]
        twice += _on_one_thread(part, copies[apart] - copies[apart] ** 2 / instances)
    bound = _rounded_down(twice / 2 / instances)
    whole = bool((together == np.floor(together)).all())
    return max(0.0, float(math.ceil(bound)) if whole else bound)


def _on_one_thread(part: Floats, spread: Floats) -> float:
    """Threads of a linear algebra library gain nothing on matrices as small, and wait for each other on a busy machine;
    how many there are changes the last digits, too."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        return _least_of_rest(part, spread)


def _rounded_down(value: float) -> float:
    """To five digits: how far the walk over u comes differs between linear algebra libraries in those after."""
    if value <= 0:
        return 0.0
    digit = 10.0 ** (math.floor(math.log10(value)) - 4)
    return math.floor(value * (1 - _ROUNDING) / digit) * digit


def _least_of_rest(part: Floats, spread: Floats) -> float:
    """The best found over u of (Σ spread) least eigenvalue - Σ u spread, ``spread`` R - R^2 / n of each expert."""
    u = _rank_one_diagonal(part)
    best, uphill, size = _value(part, spread, u)
    step = 0.3 * size * math.sqrt(len(part))
    for _ in range(STEPS):
        length = float(np.linalg.norm(uphill))
        if length == 0:
            break
        tried = u + step / length * uphill
        value, direction, _ = _value(part, spread, tried)
        if value > best:
            u, best, uphill = tried, value, direction
            step *= 1.5
        else:
            step *= 0.4
    return best


def _rank_one_diagonal(part: Floats) -> Floats:
    """The diagonal p^2 of the p p' that has about the row sums of ``part`` beside it."""
    sums = part.sum(axis=1)
    diagonal = np.zeros(len(part))
    for _ in range(FITS):
        rows = sums + diagonal
        total = float(rows.sum())
        if total > 0:
            diagonal = rows * rows / total
    return diagonal


def _value(part: Floats, spread: Floats, u: Floats) -> tuple[float, Floats, float]:
    """The bound at u, a direction in which it rises, and the size of the least eigenvalue."""
    inner = part + np.diag(u)
    means = inner.mean(axis=1)
    inner = inner - means[:, None] - means[None, :] + means.mean()
    # The constant vector is no placement's: its eigenvalue, 0 now, is moved out of the way.
    size = float(np.abs(inner).sum(axis=1).max())
    values, vectors = np.linalg.eigh(inner + 2 * size / len(part))
    least = float(values[0]) - _ROUNDING * size
    total = float(spread.sum())
    width = SMOOTH * float(values[-2] - values[0]) + _ROUNDING * size + np.finfo(float).tiny
    near = np.exp(-(values - values[0]) / width)
    uphill = total * ((vectors * vectors) @ (near / near.sum())) - spread
    return total * least - float(u @ spread), uphill, abs(least)
