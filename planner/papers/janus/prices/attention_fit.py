"""c_a, alpha and c_kv of equation 2: floor and slope through the prices of decoding, and how far these are off.

A layer of an attention device costs a floor, its weights, and something more with each request. A device adds them,
where the paper takes the larger of both: fitted so, a batch whose requests take as long as the weights is priced at a
third less than it costs, whatever the coefficients. c_kv comes from what twice the context costs, then floor and slope
from the least squared relative error over all batches, and alpha is what the slope leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.derivation.account import Floats
from planner.derivation.lines import line_through
from planner.papers.janus.costs import Combine


@dataclass(frozen=True)
class AttentionFit:
    """Seconds of a layer: floor and requests (per_request + context per_cached_token), combined.

    ``mape`` and ``worst`` are the mean and the largest |fit / price - 1| over the batches.
    """

    floor_s: float
    per_request_s: float
    per_cached_token_s: float
    mape: float
    worst: float


def attention_fit(
    batches: Floats, seconds: Floats, seconds_half: Floats, context: int, half: int, combine: Combine
) -> AttentionFit:
    """The fit to ascending ``batches``, priced at ``context`` tokens and at ``half`` as many."""
    line = line_through(batches, seconds)
    floor, slope = (line.alpha, line.beta) if combine == "sum" else _larger(batches, seconds)
    per_token = 0.0
    if context > half:
        more = np.maximum(seconds - seconds_half, 0.0) / (batches * (context - half))
        # Small batches do not fill the device: what a token costs shows where the cache takes the time.
        per_token = float(more[batches >= batches[-1] / 4].mean())
    per_token = min(per_token, slope / context)
    floor, per_token = float(f"{floor:.8e}"), float(f"{per_token:.8e}")
    per_request = float(f"{max(0.0, slope - per_token * context):.8e}")
    requests = batches * (per_request + context * per_token)
    off = np.abs((floor + requests if combine == "sum" else np.maximum(floor, requests)) / seconds - 1.0)
    return AttentionFit(floor, per_request, per_token, float(f"{off.mean():.4g}"), float(f"{off.max():.4g}"))


def _larger(batches: Floats, seconds: Floats) -> tuple[float, float]:
    """The best of all ways to cut the batches in two, the floor fitted to those before and the slope to the others."""
    y, x = 1.0 / seconds, batches / seconds
    found: list[tuple[float, float]] = []
    for cut in range(len(batches) + 1):
        floor = float(y[:cut].sum() / (y[:cut] @ y[:cut])) if cut else 0.0
        slope = float(x[cut:].sum() / (x[cut:] @ x[cut:])) if cut < len(batches) else 0.0
        found.append((floor, slope))
    return min(found, key=lambda pair: float(((np.maximum(pair[0] * y, pair[1] * x) - 1.0) ** 2).sum()))
