"""The traced layers of a sizing problem: tokens, statistics and placements, each made once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from planner.errors import BadInputError
from planner.papers.janus.experts.copies import Placed, place
from planner.papers.janus.experts.statistics import Statistics, count
from planner.papers.janus.experts.tokens import Traced, traced
from planner.papers.janus.problem import Layer, SizingProblem

T = TypeVar("T")

PAIRS = 2**20
"""Swaps that the search of one placement looks at: there is one for each layer and row of a table."""
MOST_SLOTS, MOST_CELLS = 2**16, 2**24
"""Slots that are filled one by one, and instances x experts, up to which a placement is made."""


def tokens_of(problem: SizingProblem, layer: Layer) -> Traced:
    """The tokens of a layer; those drawn without a seed of their own by its id."""
    place = f"layers.{problem.layers.index(layer)}.routing"
    return traced(layer.routing, problem.kept, problem.num_experts, problem.top_k, layer.layer_id, place)


def placed_of(problem: SizingProblem, layer: Layer, slots: int, instances: int) -> Placed:
    """The placement of a layer on so many instances, which must have a slot for every expert."""
    refuse_large(problem.num_experts, slots, instances)

    def make() -> Placed:
        return place(_statistics(problem, layer), slots, instances, PAIRS)

    return _once(problem, (*_key(problem, layer), slots, instances), Placed, make)


def refuse_large(experts: int, slots: int, instances: int) -> None:
    """Raise BadInputError (too_large) where filling the slots one by one would take too long."""
    if slots < experts and (slots * instances > MOST_SLOTS or instances * experts > MOST_CELLS):
        message = (
            f"expected at most {MOST_SLOTS:,} expert slots and {MOST_CELLS:,} instances x experts to place experts, "
            f"got {instances:,} instances x {slots:,} slots and {experts:,} experts"
        )
        raise BadInputError(message, code="too_large", where="slots_per_instance")


def most_placeable(experts: int, slots: int) -> int:
    """The most instances of so many slots that `refuse_large` lets pass, where slots are fewer than experts."""
    return min(MOST_SLOTS // slots, MOST_CELLS // experts)


def _statistics(problem: SizingProblem, layer: Layer) -> Statistics:
    def make() -> Statistics:
        return count(tokens_of(problem, layer).ids, problem.num_experts)

    return _once(problem, _key(problem, layer), Statistics, make)


def _key(problem: SizingProblem, layer: Layer) -> tuple[Hashable, ...]:
    return (layer, problem.num_experts, problem.top_k)


def _once(problem: SizingProblem, key: Hashable, kind: type[T], make: Callable[[], T]) -> T:
    known = problem.kept.worked_out.get(key)
    if not isinstance(known, kind):
        known = problem.kept.worked_out[key] = make()
    return known
