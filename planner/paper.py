"""The extension point: a paper is a frozen record of facts and functions, one folder under ``planner/papers``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pydantic import BaseModel

from planner.beside import Beside
from planner.errors import InfeasibleError, LimitError
from planner.json_text import Json
from planner.program import Program, Stated
from planner.view import View
from solvers.report import Limits, Report

P = TypeVar("P", bound=BaseModel)
S = TypeVar("S", bound=BaseModel)
D = TypeVar("D", bound=BaseModel)

SOURCES = ("measured", "interpolated", "modelled", "stated")
"""Where a coefficient comes from: a row of the table, between rows, a formula, or the user."""


@dataclass(frozen=True)
class Violation:
    """One thing a plan says that the problem refutes; ``where`` is a path in the solution."""

    code: str
    message: str
    where: str | None = None

    def __str__(self) -> str:
        place = f" (at {self.where})" if self.where else ""
        return f"{self.code}: {self.message}{place}"


@dataclass(frozen=True)
class Bound:
    """A proved bound on the objective, its kind (combinatorial, fractional, solver, exhaustive) and its name.

    ``attained``: a solution was met that reaches it, so whoever claims a stronger bound is wrong.
    """

    value: float
    kind: str
    name: str
    attained: bool = False


@dataclass(frozen=True)
class MemoryRow:
    """Bytes of one cause in one place, beside the capacity of that place."""

    where: str
    cause: str
    bytes: float
    capacity_bytes: float


@dataclass(frozen=True)
class Warned:
    """Something true of a plan that its reader should know before launching."""

    code: str
    message: str


@dataclass(frozen=True)
class Baseline(Generic[S]):
    """What a simpler published rule gives. ``solution`` is None where the rule has no placement to check.

    ``objective`` is None when the rule fails; ``note`` says why, or which setting of the rule was best.

    ``outside``: what it gives is no answer of the problem, such as one pool where two are to be sized, so that no bound
    holds for it.

    ``beside`` is what the plan itself gives in the measure of this row, where that is not the plan's objective.
    """

    name: str
    objective: float | None
    note: str = ""
    solution: S | None = None
    feasible: bool = True
    outside: bool = False
    beside: float | None = None


@dataclass(frozen=True)
class Derivation(Generic[P]):
    """An explicit problem made from a profile and a model, and the account of its coefficients.

    ``derive`` is the derived form's own object after defaults, with what was resolved on the way. ``profile`` is None
    where everything that one would price was stated. ``arrays`` are the files read beside the problem: base name to
    sha256.

    ``relaxable`` says, for a field of the explicit form that a relaxation may name, which field of the derived form
    moves it, and by what amount that one is larger, or as a string the value that is always enough. ``multiples`` says
    of such a field that it takes multiples of a number alone.
    """

    problem: P
    derive: Json
    profile: str | None
    profile_sha256: str | None
    cost_error: Mapping[str, float] | None
    arrays: Mapping[str, str] = field(default_factory=dict)
    relaxable: Mapping[str, tuple[str, float | str]] = field(default_factory=dict)
    multiples: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Attached(Generic[P]):
    """A problem with what it names by file: small things written into it, arrays held in memory beside it.

    ``files`` are those read: base name to sha256.
    """

    problem: P
    files: Mapping[str, str]


@dataclass(frozen=True)
class DeriveOptions:
    """Command-line overrides of a derived problem."""

    profile: str | None = None
    extrapolate: str | None = None
    base_folder: str = "."


@dataclass(frozen=True)
class Paper(Generic[P, S, D]):
    """One published method.

    ``solve`` returns a feasible solution and the engine's report, or raises InfeasibleError / LimitError.
    ``bounds(problem, certify, effort)`` needs no solver unless ``certify`` asks for the strong ones.
    ``check`` sees only problem and solution and never a solver. ``shares`` gives the fraction of the objective's
    coefficients by source, in the order of SOURCES.

    ``unit`` is that of the objective, which a problem may choose.

    ``attach`` reads what a problem names by file from the folder it lies in, and checks it; None where nothing is. The
    explicit problem keeps of a file its base name and digest. A plan's problem is attached again when it is loaded.

    ``as_stated`` is told of an explicit problem that somebody wrote, or edited after ``plan expand``, before it is
    solved; never of a plan's. None where such a problem is taken as it is.

    ``run`` says what a plan asks ranks to do, for ``plan run``; None where no runner knows how.

    ``derives_by`` are fields that both forms have and that the derivation itself goes by: moved, they derive again. Of
    a part of the explicit form that ``derive`` has too, paths that follow from it: who moves one is told where.

    ``step`` says of what step the objective is the time, and what of it is left out, for who holds a clock beside it;
    empty where it is not the time of a step.
    """

    name: str
    title: str
    decision: str
    citation: str
    unit: Callable[[P], str]
    methods: tuple[str, ...]
    problem_model: type[P]
    solution_model: type[S]
    derived_model: type[D]
    derive: Callable[[D, DeriveOptions], Derivation[P]]
    solve: Callable[[P, str | None, Limits], tuple[S, Report]]
    bounds: Callable[[P, S, bool, float], tuple[Bound, ...]]
    check: Callable[[P, S], list[Violation]]
    objective: Callable[[S], float]
    shares: Callable[[P, S], Mapping[str, float]]
    memory: Callable[[P, S], list[MemoryRow]]
    warnings: Callable[[P, S], list[Warned]]
    baselines: Callable[[P, Limits], list[Baseline[S]]]
    view: Callable[[P, S], View]
    summary: Callable[[P, S], list[str]]
    decisions: Callable[[S], Mapping[str, Json]]
    metrics: Callable[[S], Mapping[str, Json]]
    violations: tuple[str, ...]
    sense: str = "min"
    exports: tuple[str, ...] = field(default=())
    attach: Callable[[P, Beside], Attached[P]] | None = None
    as_stated: Callable[[P], P] | None = None
    run: Callable[[P, S, Json, Stated], Program] | None = None
    step: str = ""
    derives_by: tuple[str, ...] = ()


__all__ = [
    "SOURCES",
    "Attached",
    "Baseline",
    "Bound",
    "Derivation",
    "DeriveOptions",
    "InfeasibleError",
    "LimitError",
    "MemoryRow",
    "Paper",
    "Violation",
    "Warned",
]
