"""Degrees of a replica as the id of its layout spells them, such as ``tp4-pp2``, ``tp4-pp2-cp2`` or ``fsdp8-cp2``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.papers.bidirl.problem import RolloutLayout, TrainLayout

_SPELT = re.compile(r"(?:tp([1-9][0-9]{0,5})|fsdp([1-9][0-9]{0,5}))(?:-pp([1-9][0-9]{0,5}))?(?:-cp([1-9][0-9]{0,5}))?")


@dataclass(frozen=True)
class Degrees:
    """``shard`` is 0 but of FSDP, whose context ranks are among those of the shard."""

    tp: int
    pp: int
    cp: int
    shard: int


def degrees_of(layout: RolloutLayout | TrainLayout) -> Degrees | None:
    """The degrees; None where the id spells none, or others than make up the GPUs of the replica."""
    found = _SPELT.fullmatch(layout.id)
    if found is None:
        return None
    tp, shard, pp, cp = (int(part or 0) for part in found.groups())
    degrees = Degrees(max(tp, 1), max(pp, 1), max(cp, 1), shard)
    if shard:
        return degrees if shard == layout.gpus and pp == 0 and shard % degrees.cp == 0 else None
    return degrees if degrees.tp * degrees.pp * degrees.cp == layout.gpus else None
