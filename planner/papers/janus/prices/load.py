"""What a derived problem says of its load: the largest demand, and how long a request's cache is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from planner.beside import Beside, find
from planner.errors import BadInputError
from planner.papers.janus.arrivals import PLACE, mean_context_tokens, series_of
from planner.papers.janus.derived import DerivedScaling, DerivedSeries, JanusDerivedProblem
from planner.traces import read_requests

LARGEST_BATCH = 2**20
"""The end of the batch grid where the demand asks for less."""
MOST_BATCH = 2**31


@dataclass(frozen=True)
class Load:
    """The largest demand in tokens per second, mean cached tokens of a request, and the SLO in seconds."""

    demand_tokens_per_s: float
    context_tokens: float
    slo_s: float

    @property
    def most_in_flight(self) -> float:
        """Requests in flight at the SLO: no plan that meets it has more."""
        return max(1.0, self.demand_tokens_per_s * self.slo_s)

    def batch_grid(self) -> tuple[int, ...]:
        """Powers of two, past four times ``most_in_flight``, so that a missed SLO still has its operating point."""
        last = max(LARGEST_BATCH, min(MOST_BATCH, 2 ** math.ceil(math.log2(4 * self.most_in_flight))))
        return tuple(2**power for power in range(last.bit_length()))


def load_of(document: JanusDerivedProblem, folder: Path) -> Load:
    """The load of a problem in ``folder``. Raises BadInputError where arrivals cannot be read, or have no output."""
    if isinstance(document, DerivedScaling):
        return Load(document.demand_tokens_per_s, document.context_tokens, document.slo_tpot_s)
    if not isinstance(document, DerivedSeries):
        raise TypeError("a derived problem is of one of two tasks")
    demands = [interval.demand_tokens_per_s for interval in document.series]
    context = document.context_tokens
    if document.arrivals is not None and not demands:
        given = document.arrivals
        requests = read_requests(find(Beside(str(folder)), given.path, given.sha256, f"{PLACE}.path").path, PLACE)
        demands = [interval["demand_tokens_per_s"] for interval in series_of(requests, given)]
        context = mean_context_tokens(requests) if context is None else context
    if context is None:
        message = "the arrivals have no output tokens, so they do not tell context_tokens: state it"
        raise BadInputError(message, code="missing_field", where="context_tokens")
    return Load(max(demands), context, document.slo_tpot_s)
