"""Where a rank's time goes: seconds by kind of work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

KINDS = ("products", "products_backward", "attention", "attention_backward", "collectives")


class Clock:
    """Adds up the seconds spent in each kind of work."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(KINDS, 0.0)

    @contextmanager
    def __call__(self, kind: str) -> Iterator[None]:
        """Time a block of one of KINDS."""
        start = time.perf_counter()
        yield
        self.seconds[kind] += time.perf_counter() - start
