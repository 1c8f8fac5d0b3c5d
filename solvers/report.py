"""What goes into a solver and what comes out, in one vocabulary for every engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

Progress = Callable[[float, str], None]
"""Told the share that is done, 0 to 1, and what is done."""


class Status(StrEnum):
    """How a search ended."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    LIMIT = "limit"


@dataclass(frozen=True)
class Limits:
    """Budgets. All but ``time_limit_s`` are deterministic: the same limits give the same answer on any machine load.

    ``effort`` multiplies every iteration count and deterministic time; ``gap`` stops a search early at that relative
    distance from its bound; ``time_limit_s`` is a wall-clock safety net that discards the answer unless ``keep_best``.
    ``progress`` is told how far a long search is, and changes nothing.
    """

    effort: float = 1.0
    gap: float = 0.0
    seed: int = 0
    workers: int = 1
    time_limit_s: float | None = None
    keep_best: bool = False
    progress: Progress | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Report:
    """One engine's account of one solve. ``bound`` is proved by the engine itself, None if it proves none."""

    status: Status
    engine: str
    method: str
    version: str
    objective: float
    bound: float | None = None
    bound_kind: str | None = None
