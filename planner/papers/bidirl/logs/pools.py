"""How a published run shared its GPUs between rollout and training."""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.csv_rows import Wrong, shown

_SHARED = re.compile(r"[0-9]{1,7}")
_SPLIT = re.compile(r"([0-9]{1,7}):\s?([0-9]{1,7})")
_HYBRID = re.compile(r"([0-9]{1,7}) hybrid(?: \+ ([0-9]{1,7}) standalone)?")


@dataclass(frozen=True)
class Pools:
    """``shared`` run both roles in turn; the other two one role each. GPUs, or nodes where the table counts those."""

    shared: int = 0
    rollout: int = 0
    train: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.shared + self.rollout + self.train


def pools_of(text: str, column: str, wrong: Wrong) -> Pools:
    """``32`` run both in turn; ``96:32`` roll out and train; ``2 hybrid + 2 standalone``, where the latter roll out."""
    if _SHARED.fullmatch(text):
        found = Pools(shared=int(text))
    elif split := _SPLIT.fullmatch(text):
        found = Pools(rollout=int(split[1]), train=int(split[2]))
    elif hybrid := _HYBRID.fullmatch(text):
        found = Pools(shared=int(hybrid[1]), rollout=int(hybrid[2] or 0))
    else:
        message = f"expected {column}, such as 32, 16:16 or 2 hybrid + 2 standalone, got {shown(text)}"
        raise wrong(message, "wrong_type")
    if found.total < 1:
        raise wrong(f"expected {column} of at least one, got {shown(text)}", "out_of_range")
    return found
