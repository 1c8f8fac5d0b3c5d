"""The pipeline ranks that a placement has to be judged by, with all that a problem states of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from planner.derivation.references import input_errors
from planner.papers.memory.costs.beside import workspace_bytes
from planner.papers.memory.costs.dims import Dims
from planner.papers.memory.costs.rank_bytes import RankBytes, rank_bytes
from planner.papers.memory.costs.recomputation import Forwards, Recomputation
from planner.papers.memory.costs.setting import Setting


@dataclass(frozen=True)
class RankCosts:
    """Bytes of one rank, those that live while one layer's backward runs, and its forward where a profile prices it."""

    of: RankBytes
    workspace_bytes: float
    recomputation: Recomputation | None

    @property
    def numbers(self) -> tuple[float, ...]:
        """All that bytes and seconds of any placement grow with."""
        own, again = self.of, self.recomputation
        parts = (own.kept, own.materialised, own.offloaded)
        totals = (math.fsum(each.values()) for each in parts)
        seconds = 0.0 if again is None else again.seconds
        return (*own.parameters, *own.units, *totals, own.micro_batch_bytes, self.workspace_bytes, seconds)


def every_rank(setting: Setting, place: str) -> list[RankBytes]:
    """The bytes of every pipeline rank. Raises BadInputError, at ``place``, where the layout does not divide."""
    with input_errors(place):
        return [rank_bytes(setting.job, setting.model, rank) for rank in range(setting.job.layout.pp)]


def judged(
    setting: Setting, ranks: Sequence[RankBytes], dims: tuple[Dims, Dims], forwards: Forwards | None, *, workspace: bool
) -> list[RankCosts]:
    """The rank that was asked for; else those that none beats in every number, first the one that holds most with its
    optimizer sharded.

    Raises BadInputError (outside_measured_range) where a forward has no price.
    """
    asked = setting.job.layout.rank
    chosen = ranks if asked is None else [ranks[asked]]
    found = _unbeaten(
        [
            RankCosts(
                each,
                workspace_bytes(setting.job, setting.model, each.rank) if workspace else 0.0,
                None if forwards is None else forwards.of_rank(each.rank),
            )
            for each in chosen
        ]
    )
    first = max(found, key=lambda each: _held(setting, each.of, dims))
    return [first, *(each for each in found if each is not first)]


def _unbeaten(ranks: Sequence[RankCosts]) -> list[RankCosts]:
    """In their order; of equal ones the first. Who is beaten has a smaller sum than who beats it."""
    front: list[tuple[RankCosts, tuple[float, ...]]] = []
    numbered = [(each, each.numbers) for each in ranks]
    for one, needs in sorted(numbered, key=lambda each: (-math.fsum(each[1]), each[0].of.rank)):
        if not any(all(mine >= its for mine, its in zip(other, needs, strict=True)) for _, other in front):
            front.append((one, needs))
    return sorted((one for one, _ in front), key=lambda each: each.of.rank)


def _held(setting: Setting, rank: RankBytes, dims: tuple[Dims, Dims]) -> float:
    """Bytes with the optimizer sharded and activations kept."""
    dtypes = setting.job.dtypes
    shards = [math.prod(dim.size for dim in each) for each in dims]
    states = sum(
        count * (dtypes.param + dtypes.grad + dtypes.optimizer / shared)
        for count, shared in zip(rank.parameters, shards, strict=True)
    )
    return float(states) + math.fsum(rank.kept.values())
