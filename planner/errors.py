"""The error tree: every expected failure is one of these, and each kind has its own exit code.

    PlanError
    ├── BadInputError      2   the request cannot be understood or used
    ├── InfeasibleError    3   proved: nothing satisfies the constraints
    ├── LimitError         4   a budget ran out before an answer, or before a proof of infeasibility
    └── RefutedError       5   the independent check disagrees with a plan

Anything else that reaches the command line is a bug of ours (exit 70).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from planner.units import told


@dataclass(frozen=True)
class Relaxation:
    """A change of one problem field that helps; ``proven`` says that it is enough and the least that is.

    Without ``enough`` the value is only needed, and more may be. ``value`` is an amount, or a word; with ``smaller``
    an amount below the problem's, where the least change is the largest value.
    """

    field: str
    value: float | str
    proven: bool
    enough: bool = True
    smaller: bool = False


class PlanError(Exception):
    """An expected failure: ``message`` is for a person, ``code`` and ``where`` for a program."""

    kind: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, code: str, where: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.where = where

    def as_object(self) -> dict[str, object]:
        """The object printed by ``--error-format json`` (without its outer ``error`` key)."""
        return {"kind": self.kind, "code": self.code, "message": self.message, "where": self.where}

    def lines(self) -> list[str]:
        """One to five lines for stderr."""
        place = f" (at {self.where})" if self.where else ""
        return [f"{self.kind.replace('_', ' ')}: {self.message}{place}"]


class BadInputError(PlanError):
    """The input is malformed, unknown, or outside what the planner accepts."""

    kind = "bad_input"
    exit_code = 2


class InfeasibleError(PlanError):
    """Proved infeasible; ``code`` names the binding constraint.

    ``required`` and ``available`` are in the constraint's unit, None where it has no amount. ``unit`` is "bytes" or
    "s" where people write them otherwise, and empty for counts. ``also`` are other relaxations, each enough by itself,
    of what only another form of the problem has a field for.
    """

    kind = "infeasible"
    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        code: str,
        where: str | None = None,
        required: float | None = None,
        available: float | None = None,
        unit: str = "",
        relaxation: Relaxation | None = None,
        also: tuple[Relaxation, ...] = (),
    ) -> None:
        super().__init__(message, code=code, where=where)
        self.also = also
        self.required = required
        self.available = available
        self.unit = unit
        self.relaxation = relaxation

    def as_object(self) -> dict[str, object]:
        smallest = None
        if self.relaxation is not None:
            smallest = {
                "field": self.relaxation.field,
                "value": _settable(self.relaxation.value),
                "proven": self.relaxation.proven,
            }
        return super().as_object() | {
            "required": _finite(self.required),
            "available": _finite(self.available),
            "smallest_relaxation": smallest,
        }

    def lines(self) -> list[str]:
        lines = super().lines()
        if self.required is not None and self.available is not None:
            lines.append(f"  required {told(self.required, self.unit)}, available {told(self.available, self.unit)}")
        if self.relaxation is not None:
            proof = "enough; not proved the least" if self.relaxation.enough else "needed at least; more may be"
            if self.relaxation.proven:
                least = "least change" if self.relaxation.smaller else "least"
                proof = f"enough, and the {least} that is"
            setting = f"{self.relaxation.field}={_settable(self.relaxation.value)!r}"
            lines.append(f"  smallest relaxation: --set {setting} ({proof})")
        return lines


def _finite(amount: float | None) -> float | None:
    """JSON has no infinity; an amount without end is no amount."""
    return None if amount is None or not math.isfinite(amount) else float(amount)


def _settable(value: float | str) -> float | int | str:
    """A whole number without its ``.0``: fields of counts take it, and so do the others."""
    if isinstance(value, str):
        return value
    value = float(value)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


class LimitError(PlanError):
    """A deterministic budget or the time limit ran out without an answer."""

    kind = "limit"
    exit_code = 4


class RefutedError(PlanError):
    """The check found violations; ``violations`` are their printed lines."""

    kind = "refuted"
    exit_code = 5

    def __init__(self, message: str, *, code: str, where: str | None = None, violations: tuple[str, ...] = ()) -> None:
        super().__init__(message, code=code, where=where)
        self.violations = violations

    def as_object(self) -> dict[str, object]:
        return super().as_object() | {"violations": list(self.violations)}

    def lines(self) -> list[str]:
        shown = [f"  {line}" for line in self.violations[:3]]
        hidden = len(self.violations) - len(shown)
        return super().lines() + shown + ([f"  and {hidden} more"] if hidden > 0 else [])
