"""Alpha-beta in pieces: where along the sizes a curve changes its protocol.

Each piece is t = alpha + size / beta with its own alpha and beta, and pieces may jump, as protocols do. All pieces of
all lengths are fitted at once (a 2 x 2 problem each, reweighted), the best cuts are found by dynamic programming, and
their number by the Bayesian information criterion with a heavy-tailed (Cauchy) likelihood, so that spikes buy no piece.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

FEWEST = 4
"""Sizes a piece: two more than it has coefficients."""
MOST_PIECES = 4
SCALE = 0.03
"""Least relative noise (built-in collectives: 2 to 5 %); a noisier curve is judged by its own."""
ROUNDS = 14


@dataclass(frozen=True)
class Span:
    """Distinct sizes `first` to `last` (both inside) make one piece."""

    first: int
    last: int


def pieces(size: Floats, seconds: Floats) -> list[Span]:
    """Spans over the distinct sorted sizes. `size` and `seconds` (n,) in any order, repeats allowed."""
    order = np.argsort(size, kind="stable")
    size, seconds = size[order], seconds[order]
    level = np.unique(size, return_inverse=True)[1].reshape(-1)
    levels = int(level[-1]) + 1
    if levels < 2 * FEWEST:
        return [Span(0, levels - 1)]
    spans = [(i, j) for i in range(levels) for j in range(i + FEWEST - 1, levels)]
    inside = (level >= np.array(spans)[:, :1]) & (level <= np.array(spans)[:, 1:])
    error = _errors(size, seconds, level, inside)
    rows, number = len(size), {span: place for place, span in enumerate(spans)}

    def best_at(scale: float) -> dict[int, tuple[float, list[Span]]]:
        loss = np.where(inside, np.log1p((error / scale) ** 2), 0.0).sum(axis=1).tolist()
        return _best_cuts(levels, dict(zip(spans, loss, strict=True)))

    best = best_at(SCALE)
    finest = [number[span.first, span.last] for span in best[max(best)][1]]
    noise = float(np.median(np.abs(error[finest][inside[finest]])))
    best = best_at(max(SCALE, noise))

    def criterion(count: int) -> float:
        # Three numbers a piece (alpha, beta, where it starts), less the first start.
        return 2.0 * best[count][0] + (3 * count - 1) * float(np.log(rows))

    return best[min(best, key=criterion)][1]


def _errors(size: Floats, seconds: Floats, level: Ints, inside: Bools) -> Floats:
    """log(predicted / measured) of each span's own fit (spans, n).

    The first fit is to the running median, so that a spike does not choose the minimum that is then sharpened.
    """
    smooth = np.array([np.median(seconds[np.abs(level - each) <= 2]) for each in level])
    weights, scale = np.where(inside, 1.0, 0.0), np.broadcast_to(smooth, inside.shape)
    target, error = np.ones(inside.shape), np.zeros(inside.shape)
    for step in range(ROUNDS):
        alpha, growth = _two_by_two(weights, 1.0 / scale, size / scale, target)
        scale = np.maximum(alpha[:, None] + growth[:, None] * size, 1e-3 * seconds)
        error = np.log(scale / seconds)
        target = 1.0 - error
        width = SCALE * max(1.0, 2.0 ** (4 - step))
        weights = np.where(inside, 1.0 / (1.0 + (error / width) ** 2), 0.0)
    return error


def _two_by_two(weights: Floats, flat: Floats, slope: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Non-negative alpha and growth (1 / beta) of each row: the free minimum, else the better edge."""
    ff, fs, ss = ((weights * part).sum(axis=1) for part in (flat**2, flat * slope, slope**2))
    f, s = ((weights * part * target).sum(axis=1) for part in (flat, slope))
    determinant = ff * ss - fs**2
    usable = determinant > 1e-12 * ff * ss
    safe = np.where(usable, determinant, 1.0)
    alpha, growth = (f * ss - s * fs) / safe, (s * ff - f * fs) / safe
    free = usable & (alpha >= 0) & (growth >= 0)
    # On an edge the sum of squares falls by (target.x)^2 / (x.x): take the term that explains more.
    flat_only = f**2 / ff >= s**2 / ss
    alpha = np.where(free, alpha, np.where(flat_only, f / ff, 0.0))
    growth = np.where(free, growth, np.where(flat_only, 0.0, s / ss))
    return alpha, growth


def _best_cuts(levels: int, loss: dict[tuple[int, int], float]) -> dict[int, tuple[float, list[Span]]]:
    """For each number of pieces the least loss and its spans."""
    table: dict[tuple[int, int], tuple[float, list[Span]]] = {
        (1, last): (loss[0, last], [Span(0, last)]) for last in range(FEWEST - 1, levels)
    }
    for count in range(2, MOST_PIECES + 1):
        for last in range(count * FEWEST - 1, levels):
            options = [
                (table[count - 1, cut][0] + loss[cut + 1, last], cut)
                for cut in range((count - 1) * FEWEST - 1, last - FEWEST + 1)
            ]
            least, cut = min(options)
            table[count, last] = least, [*table[count - 1, cut][1], Span(cut + 1, last)]
    last = levels - 1
    return {count: table[count, last] for count in range(1, MOST_PIECES + 1) if (count, last) in table}
