"""Response lengths that were met, from JSON Lines, for what a simulation draws."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from planner.errors import BadInputError
from planner.papers.bidirl.derived import Responses
from planner.papers.bidirl.logs.rows import json_lines
from planner.papers.bidirl.training_run import MAX_SAMPLES, Empirical, Lognormal
from planner.validation import shown_value

MAX_TOKENS = 10**9


def read_lengths(path: Path, given: Responses, most: int, where: str) -> list[float]:
    """Tokens of every response, those above ``cap``, or else ``most``, cut there.

    Raises BadInputError with the line.
    """
    cap, found = float(given.cap or most), []
    for name, document in json_lines(path, where):
        tokens = document.get(given.field)
        if isinstance(tokens, bool) or not isinstance(tokens, int | float) or not 0 < tokens <= MAX_TOKENS:
            message = f'{name}: expected "{given.field[:60]}", tokens of a response above 0, got {shown_value(tokens)}'
            code = "missing_field" if tokens is None else "out_of_range"
            raise BadInputError(message, code=code, where=where)
        found.append(min(float(tokens), cap))
        if len(found) > MAX_SAMPLES:
            raise BadInputError(f"{path.name}: more than {MAX_SAMPLES:,} responses", code="too_large", where=where)
    if not found:
        raise BadInputError(f"{path.name} holds no responses", code="missing_field", where=where)
    return found


def distribution_of(lengths: list[float], given: Responses, most: int) -> Empirical | Lognormal:
    """The lengths in ascending order, or the lognormal of the mean and deviation of their logarithms."""
    if given.distribution == "empirical":
        return Empirical(distribution="empirical", tokens=tuple(sorted(lengths)))
    logs = np.log(np.array(lengths))
    return Lognormal(
        distribution="lognormal",
        median=float(f"{np.exp(logs.mean()):.8e}"),
        sigma=float(f"{logs.std():.8e}"),
        cap=float(given.cap or most),
    )
