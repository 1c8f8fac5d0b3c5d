"""Runs that are in no relation to what else is known of their operator: most likely two units of time met."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median

from planner.errors import BadInputError
from planner.papers.compass.problem import Operator
from planner.papers.compass.runs.fitting import Slower
from planner.papers.compass.times import MOST_APART, costs_of, inter_decom_s

UNITS = (("milliseconds", 1e3), ("microseconds", 1e6), ("nanoseconds", 1e9))


def refuse_other_unit(operator: Operator, times: Mapping[int, float], name: str, where: str) -> None:
    """Raises BadInputError where the runs are more than MOST_APART times what the problem says of them, or less.

    ``times`` are seconds by degree. Where neither stages nor a sequential time are stated there is nothing to compare.
    """
    ratio = _ratio(operator, times)
    if ratio is None or 1 / MOST_APART <= ratio <= MOST_APART:
        return
    other = "sequential_time_s" if operator.comm is None else "comm and gemm"
    apart = max(ratio, 1 / ratio)
    share = f"{apart:,.0f} times" if ratio > 1 else f"1/{apart:,.0f} of"
    found = f"{name}: the runs take {share} what is stated by {other}"
    raise _refusal(found, "time_s" if ratio > 1 else other, apart, where)


def refuse_slower(slower: Slower, name: str, where: str) -> None:
    """Raises BadInputError where the runs would have a stage run more than MOST_APART times slower than alone."""
    most = max(slower)
    if most > MOST_APART:
        stage = "the collective" if slower.comm == most else "the GEMM"
        raise _refusal(f"{name}: by these runs {stage} is {most:,.0f} times slower than alone", "time_s", most, where)


def refuse_far_stages(operator: Operator, priced_s: float, name: str, where: str) -> None:
    """Raises BadInputError where sweeps of both stages put a call more than MOST_APART times off its price, either way.

    ``priced_s`` is what a derivation's own rows say of the two in sequence [s].
    """
    ratio = float(inter_decom_s(costs_of([operator]), 1)[0]) / priced_s
    if 1 / MOST_APART <= ratio <= MOST_APART:
        return
    apart = max(ratio, 1 / ratio)
    share = f"{apart:,.0f} times" if ratio > 1 else f"1/{apart:,.0f} of"
    sizes = "sizes in other units than bytes and rows"
    likely = f"is time_s in {_unit(apart)} instead of seconds, or are {sizes}?" if ratio > 1 else f"are {sizes}?"
    message = (
        f"{name}: by these runs GEMM and collective take {share} what the profile says of them in sequence; more than "
        f"{MOST_APART} times is not the same work: {likely}"
    )
    raise BadInputError(message, code="out_of_range", where=where)


def _ratio(operator: Operator, times: Mapping[int, float]) -> float | None:
    """The runs over what is stated: the median over equation 2, or the quickest over the sequential time."""
    if not times:
        return None
    if operator.comm is not None:
        costs = costs_of([operator])
        return float(median(time_s / float(inter_decom_s(costs, d)[0]) for d, time_s in times.items()))
    return None if operator.sequential_time_s is None else min(times.values()) / operator.sequential_time_s


def _refusal(found: str, suspect: str, apart: float, where: str) -> BadInputError:
    verb = "are" if " and " in suspect else "is"
    message = (
        f"{found}; more than {MOST_APART} times is no overlap: {verb} {suspect} in {_unit(apart)} instead of seconds?"
    )
    return BadInputError(message, code="out_of_range", where=where)


def _unit(apart: float) -> str:
    """The unit whose seconds are nearest to that many times too large."""
    return min(UNITS, key=lambda unit: abs(math.log(apart / unit[1])))[0]
