"""Arrivals of a trace binned into the series of a problem (page, "Derived-cost form").

The output tokens of an interval's requests, over its seconds, are its demand. A trace lasts for one mean gap after its
last request, so that N requests a second apart last N seconds; it is repeated from there. What is left at the end is an
interval of its own from half of ``interval_s`` on, and belongs to the one before if it is shorter.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from planner.beside import Beside, add_digest, find
from planner.documents import digest
from planner.errors import BadInputError
from planner.papers.janus.problem import MAX_INTERVALS, Arrivals, SeriesProblem
from planner.traces import Requests, read_requests
from planner.validation import shown_value, validate

PLACE = "arrivals"
SETTINGS = ("path", "sha256", "interval_s", "tile_to_s", "scale", "peak_tokens_per_s", "mean_tokens_per_s")

Floats = npt.NDArray[np.float64]


def resolved(problem: SeriesProblem, beside: Beside, files: dict[str, str]) -> SeriesProblem:
    """The problem with its arrivals read into ``series``, the file by base name and digest; added to ``files``.

    As it is where it has no arrivals, or its series was read from these; one of other settings is read again. Raises
    BadInputError: no such file, another than its sha256 says, lines that are no requests, more intervals than a series
    may have.
    """
    given = problem.arrivals
    if given is None or (problem.series and given.settings_sha256 == settings_digest(given)):
        return problem
    if problem.series and given.settings_sha256 is None:
        message = "series and arrivals: the arrivals are read into the series; state one of them"
        raise BadInputError(message, code="out_of_range", where=PLACE)
    place = f"{PLACE}.path"
    found = find(beside, given.path, given.sha256, place)
    add_digest(files, found.name, found.sha256, place)
    requests = beside.kept.get(("requests", found.sha256))
    if not isinstance(requests, Requests):
        requests = read_requests(found.path, place)
        beside.kept["requests", found.sha256] = requests
    told = {
        "path": found.name,
        "sha256": found.sha256,
        "requests": len(requests.arrival_s),
        "lasts_s": float(f"{period_s(requests, given.interval_s):.9g}"),
        "mean_context_tokens": mean_context_tokens(requests),
    }
    read = given.model_copy(update=told)
    read = read.model_copy(update={"settings_sha256": settings_digest(read)})
    written = {name: getattr(problem, name) for name in problem.model_fields_set}
    changes = {"series": series_of(requests, given), "arrivals": read}
    made = validate(SeriesProblem, written | changes)
    made.kept.files.update(problem.kept.files)
    return made


def settings_digest(given: Arrivals) -> str:
    """sha256 of what a series is read from: the file, and how it is cut, repeated and scaled."""
    return digest({name: value for name, value in given.model_dump(exclude_none=True).items() if name in SETTINGS})


def series_of(requests: Requests, given: Arrivals) -> list[dict[str, float]]:
    """The intervals of a trace as documents, in order. Raises BadInputError."""
    period = period_s(requests, given.interval_s)
    end = period if given.tile_to_s is None else given.tile_to_s
    if end < period:
        message = f"expected at least what the trace lasts, {period:.9g} s, got {shown_value(given.tile_to_s)}"
        raise BadInputError(message, code="out_of_range", where=f"{PLACE}.tile_to_s")
    if end / given.interval_s > MAX_INTERVALS:
        message = f"expected at most {MAX_INTERVALS:,} intervals, got {end:.9g} s in steps of {given.interval_s:.9g} s"
        raise BadInputError(message, code="too_large", where=f"{PLACE}.interval_s")
    count = max(1, math.floor(end / given.interval_s + 0.5))
    edges = np.append(np.arange(count) * given.interval_s, end)
    tokens = np.diff(_tokens_before(requests, period, edges))
    durations = np.append(np.full(count - 1, given.interval_s), float(f"{edges[-1] - edges[-2]:.9g}"))
    demands = tokens / durations * _scale(given, tokens, durations)
    return [
        {"start_s": start, "duration_s": duration, "demand_tokens_per_s": float(f"{demand:.9g}")}
        for start, duration, demand in zip(edges[:-1].tolist(), durations.tolist(), demands.tolist(), strict=True)
    ]


def _scale(given: Arrivals, tokens: Floats, durations: Floats) -> float:
    """By what the demand of a trace is multiplied. Raises BadInputError: a demand of 0 is scaled to nothing."""
    for name, wanted, own in (
        ("peak_tokens_per_s", given.peak_tokens_per_s, float((tokens / durations).max())),
        ("mean_tokens_per_s", given.mean_tokens_per_s, float(tokens.sum() / durations.sum())),
    ):
        if wanted is not None and own == 0:
            message = "the requests have no output tokens: there is no demand to scale"
            raise BadInputError(message, code="out_of_range", where=f"{PLACE}.{name}")
        if wanted is not None:
            return wanted / own
    return given.scale


def period_s(requests: Requests, interval_s: float) -> float:
    """What a trace lasts: to its last request and one mean gap more; an interval where all come at once."""
    count, last = len(requests.arrival_s), float(requests.arrival_s[-1])
    return last * count / (count - 1) if last > 0 else interval_s


def mean_context_tokens(requests: Requests) -> float | None:
    """Tokens in the cache while an output token is made: input and half of the output. None without any output."""
    given = requests.output_tokens.astype(np.float64)
    if not given.any():
        return None
    context = float(given @ (requests.input_tokens + given / 2) / given.sum())
    return float(f"{context:.9g}")


def _tokens_before(requests: Requests, period: float, edges: Floats) -> Floats:
    """Output tokens of the requests that came before each edge, the trace repeated."""
    before = np.append(0, np.cumsum(requests.output_tokens)).astype(np.float64)
    rounds = np.floor(edges / period)
    within = edges - rounds * period
    return np.asarray(rounds * before[-1] + before[np.searchsorted(requests.arrival_s, within, side="left")])
