"""What more GPUs would do for a demand that no allowed pools carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.papers.janus.costs import Limits
from planner.papers.janus.frontier import family, frontier
from planner.papers.janus.model import Ints, Option
from planner.papers.janus.options import CELLS, options
from planner.papers.janus.problem import SizingProblem
from planner.papers.janus.search import Choice, cheapest

TIMES = 4
"""How many times the stated limits are looked at."""
AT_LEAST = 256
"""Instances that are looked at however few are stated."""
MOST = 65536
"""Instances of a side that a problem may state."""
FIELDS = ("max_total_instances", "max_expert_instances", "max_attention_instances")


@dataclass(frozen=True)
class Raised:
    """A limit that is enough when raised alone: its place, the least ``value`` that is, and the one stated."""

    place: str
    value: int
    stated: int


def least_raised(problem: SizingProblem, demand: float) -> list[Raised]:
    """Limits each of which, raised alone, lets pools carry the demand, the one raised least first."""
    found = []
    stated = options(problem)
    for place in dict.fromkeys(option.limits_place for option in stated):
        devices = {option.device for option in stated if option.limits_place == place}
        limits = next(option.limits for option in stated if option.limits_place == place)
        for field in FIELDS:
            larger = _larger(limits, (field,), problem)
            governed = [option for option in options(problem, larger) if option.device in devices]
            value = _least_value(governed, field, demand)
            if value is not None:
                found.append(Raised(f"{place}.{field}", value, getattr(limits, field)))
    return sorted(found, key=lambda raised: (raised.value / raised.stated, raised.value))


def with_more_of_all(problem: SizingProblem, demand: float) -> Choice | None:
    """The cheapest pools where all limits are raised at once, within what is looked at; None if there are none."""
    every = [option.limits for option in options(problem)]
    widest = Limits.model_validate({field: max(getattr(limits, field) for limits in every) for field in FIELDS})
    best = cheapest(options(problem, _larger(widest, FIELDS, problem)), [demand])[0]
    return best[0] if best else None


def _larger(limits: Limits, fields: Sequence[str], problem: SizingProblem) -> Limits:
    """Limits with some fields raised to what is looked at, which the grids of the problem leave room for."""
    grids = [problem.a_max, *(each.a_max for each in problem.devices if each.a_max)]
    points = max(len(a_max.batch_grid or ()) for a_max in grids)
    changes = {}
    for field in fields:
        stated = getattr(limits, field)
        most = min(MOST, max(AT_LEAST, TIMES * stated), CELLS // points)
        changes[field] = max(stated, most)
    return limits.model_copy(update=changes)


def _least_value(governed: Sequence[Option], field: str, demand: float) -> int | None:
    least: list[int] = []
    for option in governed:
        edge = frontier(family(option), np.array([demand]))
        n_a = edge.choices(1)[0, :, 0]
        some = n_a > 0
        amount: Ints = {
            "max_total_instances": n_a + edge.family.n_e,
            "max_expert_instances": edge.family.n_e,
            "max_attention_instances": n_a,
        }[field]
        least += [int(amount[some].min())] if some.any() else []
    return min(least, default=None)
