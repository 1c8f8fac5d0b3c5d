"""Why a series has no pools for some interval: that of the first, with a relaxation that is enough for all."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import InfeasibleError
from planner.papers.janus.infeasibility import diagnose
from planner.papers.janus.problem import SeriesProblem


def series_error(problem: SeriesProblem, index: int) -> InfeasibleError:
    """The error of the first interval, by index, that no pools carry.

    Batch, TPOT and memory at the fixed point never fall with the demand, so what is enough at the peak is enough for
    all intervals; the peak's relaxation is named where it is of the same field.
    """
    first = problem.series[index].demand_tokens_per_s
    peak = max(interval.demand_tokens_per_s for interval in problem.series)
    error = diagnose(problem, first)
    relaxation, also = error.relaxation, error.also
    message = f"interval {index}, of {first:.9g} tokens/s: {error.message}"
    if first < peak and relaxation is not None:
        at_peak = diagnose(problem, peak)
        hardest, also = at_peak.relaxation, at_peak.also
        if hardest is not None and hardest.field == relaxation.field:
            relaxation = hardest
            message += f" (the peak of {peak:.9g} tokens/s takes more)"
        else:
            relaxation = replace(relaxation, proven=False, enough=False)
    return InfeasibleError(
        message,
        code=error.code,
        where=f"series.{index}",
        required=error.required,
        available=error.available,
        unit=error.unit,
        relaxation=relaxation,
        also=also,
    )
