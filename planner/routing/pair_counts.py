"""Counts of expert pairs of neighbouring layers: keys "a|b", as the OLMoE cross-layer lists have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.errors import BadInputError

Counts = NDArray[np.int64]


def is_pair(key: str) -> bool:
    """Whether a key names two experts."""
    return "|" in key


def parse_expert(text: str) -> int | None:
    """The expert that a key names, in its one decimal spelling; None if it names none."""
    named = text.isascii() and text.isdecimal() and len(text) <= 6 and str(int(text)) == text
    return int(text) if named else None


def parse_pair(key: str) -> tuple[int, int] | None:
    """The experts of a key "a|b", of the earlier and of the later layer; None if it is none."""
    experts = [parse_expert(part) for part in key.split("|")]
    if len(experts) != 2 or experts[0] is None or experts[1] is None:
        return None
    return experts[0], experts[1]


def loads_of_pairs(pairs: list[Counts], name: str, where: str) -> list[Counts]:
    """Loads of every layer from counts [E, E] of the pairs of each two neighbours: one more layer than there are pairs.

    Every assignment of a layer is in one pair with the layer before and in one with the layer after, so both must
    give the same loads. Raises BadInputError where they do not.
    """
    loads = [pairs[0].sum(axis=1)]
    for index, counts in enumerate(pairs):
        before, after = counts.sum(axis=1), counts.sum(axis=0)
        if not np.array_equal(before, loads[-1]):
            expert = int((before != loads[-1]).argmax())
            message = (
                f"{name}: the pairs of layers {index - 1} and {index} count expert {expert} of layer {index} "
                f"{loads[-1][expert]} times, those of layers {index} and {index + 1} {before[expert]} times"
            )
            raise BadInputError(message, code="out_of_range", where=where)
        loads.append(after)
    return loads
