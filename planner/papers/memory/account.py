"""What a step pays for a placement, item by item (page, section 3.2)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from planner.attribution import Sources
from planner.papers.memory import traffic
from planner.papers.memory.byte_fields import Dim
from planner.papers.memory.explained import Placement
from planner.papers.memory.problem import MemoryProblem
from planner.papers.memory.traffic import Groups, Traffic


@dataclass(frozen=True)
class Item:
    """Seconds of a step, and the bytes behind them; ``times`` is how often, ``over`` what it runs over."""

    name: str
    group: str
    over: str
    times: int
    moved_bytes: float
    seconds: float
    sources: Sources | None


def account(problem: MemoryProblem, placement: Placement) -> list[Item]:
    """Everything that a step pays for on the slowest rank, in the order of the page; seconds sum to the overhead."""
    return max((account_of_rank(each, placement) for each in problem.each_rank()), key=total_s)


def total_s(items: Iterable[Item]) -> float:
    """Their seconds."""
    return math.fsum(item.seconds for item in items)


def account_of_rank(problem: MemoryProblem, placement: Placement) -> list[Item]:
    """What the problem's own rank pays for."""
    groups = Groups(problem)
    moved = (
        groups.parameters_gather(placement.parameters, placement.i_p),
        groups.gradients_scatter(placement.i_g),
        groups.gradients_scatter_once(placement.i_g, placement.i_o),
        groups.gradients_reduce(placement.i_o),
        groups.parameters_update(placement.i_p, placement.i_o),
    )
    items = [item for each in moved for item in _collectives(groups, each)]
    items += _over_link(problem, groups, placement)
    given = problem.activations
    if placement.activations == "materialised" and given.recompute_s is not None:
        times = problem.num_micro_batches
        items.append(Item("recompute", "", "", times, 0.0, times * given.recompute_s, given.recompute_sources))
    return items


def _collectives(groups: Groups, moved: Traffic) -> Iterator[Item]:
    betas = groups.betas(moved.first, moved.end)
    for number, group in enumerate(groups.problem.groups):
        dims = zip(betas[:, number].tolist(), group.dims[moved.first : moved.end], strict=True)
        ring = [(beta, dim) for beta, dim in dims if dim.size > 1]
        if ring:
            yield Item(
                moved.name,
                group.id,
                names_of([dim for _, dim in ring]),
                moved.times,
                float(moved.sent_bytes[number]),
                float(moved.seconds[number]),
                max(ring, key=lambda each: each[0])[1].sources,
            )


def names_of(dims: Sequence[Dim]) -> str:
    """Dimensions by name and size."""
    return " x ".join(f"{dim.id} ({dim.size:,})" for dim in dims)


def _over_link(problem: MemoryProblem, groups: Groups, placement: Placement) -> Iterator[Item]:
    host, m = problem.host, problem.num_micro_batches
    if host is None:
        return
    moved = (
        ("parameters", 2 * m, traffic.parameters_link_bytes(groups, placement.i_p)),
        ("gradients", 2 * (m - 1), traffic.gradients_link_bytes(groups, placement.i_g)),
        ("optimizer", 2, traffic.optimizer_link_bytes(groups, placement.i_o)),
        ("activations", 2 * m, traffic.activations_link_bytes(problem)),
    )
    for state, times, amount in moved:
        if getattr(placement, state) == "offloaded":
            seconds = amount * host.beta_s_per_byte
            yield Item(f"{state}_over_host_link", "", "host link", times, amount, seconds, host.sources)
    if placement.optimizer == "offloaded":
        held = float((groups.optimizer / groups.ranks[placement.i_o]).sum())
        yield Item("host_update", "", "host", 1, held, held * host.update_s_per_byte, host.sources)
