"""What a plan asks ranks to do, free of any runner, and what came of it; the counterpart of ``view`` for `plan run`."""

from __future__ import annotations

from dataclasses import dataclass

from planner.json_text import Json
from profiles.geometry import DiTGeometry


@dataclass(frozen=True)
class Split:
    """How the ranks of a piece share a sequence: shard i stands at (q, h, k), q outermost and k innermost."""

    q: int
    h: int
    k: int

    @property
    def degree(self) -> int:
        """Ranks of the piece."""
        return self.q * self.h * self.k

    def place(self, position: int) -> tuple[int, int, int]:
        """Where shard ``position`` stands along q, h and k."""
        return position // (self.h * self.k), position // self.k % self.h, position % self.k

    def position(self, q: int, h: int, k: int) -> int:
        """The shard that stands there."""
        return (q * self.h + h) * self.k + k

    def rows(self, tokens: int, position: int) -> int:
        """Tokens of a shard: near-equal chunks, the first ``tokens mod degree`` one longer."""
        return tokens // self.degree + (position < tokens % self.degree)


@dataclass(frozen=True)
class Piece:
    """Sequences that the same ranks run one after the other; ``predicted_s`` is what that adds to each rank."""

    config: str
    split: Split
    ranks: tuple[int, ...]
    tokens: tuple[int, ...]
    predicted_s: float


@dataclass(frozen=True)
class Program:
    """One training step of a diffusion transformer on some ranks.

    ``run_lists`` gives each rank its pieces in order, by index; with ``recompute`` a backward runs the layer's forward
    again. ``rank_s`` and ``rank_bytes`` are the plan's own predictions, of a step under ``profile``. A plan counts what
    all sequences need as if at once; ``rank_peak_bytes`` is what the same model gives where one layer of one sequence
    is live at a time, None where the plan does not say what its bytes are for.
    """

    model: DiTGeometry
    dtype: str
    recompute: bool
    pieces: tuple[Piece, ...]
    run_lists: tuple[tuple[int, ...], ...]
    makespan_s: float
    rank_s: tuple[float, ...]
    rank_bytes: tuple[float, ...]
    rank_peak_bytes: tuple[float, ...] | None
    profile: str | None

    @property
    def ranks(self) -> int:
        """How many ranks the plan has."""
        return len(self.run_lists)


@dataclass(frozen=True)
class Stated:
    """What the user says of a plan that does not say it itself: the model by name or sizes, and the dtype."""

    model: Json = None
    dtype: str | None = None


@dataclass(frozen=True)
class Beside:
    """One quantity predicted and measured, in SI units."""

    name: str
    predicted: float
    measured: float

    @property
    def relative_error(self) -> float | None:
        """predicted / measured - 1; None if nothing was measured."""
        return self.predicted / self.measured - 1.0 if self.measured > 0 else None

    def as_object(self) -> dict[str, Json]:
        """For a program."""
        return {**vars(self), "relative_error": self.relative_error}


@dataclass(frozen=True)
class RunReport:
    """A plan run on real processes: medians over the repeats, beside what the plan predicts.

    ``makespans_s`` are all repeats, in order. Of each rank's median step are ``waits_s``, ``rank_work_s`` (products and
    attention, their backwards, collectives, other) and ``starved_s``: how long the rank was ready to run and had no
    core, which other programs took. ``numerics`` is, for each split, the largest difference between
    split and whole attention, forward and backward, relative to the largest value. ``memory`` is predicted as
    ``Program.rank_peak_bytes`` says, if it does.
    """

    kernels: str
    transport: str
    dtype: str
    profile: str | None
    shared_cores: bool
    starved_s: tuple[float, ...]
    makespans_s: tuple[float, ...]
    makespan: Beside
    ranks: tuple[Beside, ...]
    waits_s: tuple[float, ...]
    kinds: tuple[Beside, ...]
    memory: tuple[Beside, ...]
    rank_work_s: tuple[dict[str, float], ...]
    numerics: dict[str, float]

    @property
    def starved(self) -> float:
        """The largest share of the step that a rank had no core."""
        return max(self.starved_s) / self.makespan.measured

    def as_object(self) -> dict[str, Json]:
        """For a program."""
        return {
            **vars(self),
            "makespan": self.makespan.as_object(),
            **{name: [row.as_object() for row in getattr(self, name)] for name in ("ranks", "kinds", "memory")},
        }
