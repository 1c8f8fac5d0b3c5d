"""Every operator beside its choice: what the reader's tables, warnings and shares start from."""

from __future__ import annotations

from typing import NamedTuple

from planner.papers.compass.candidates import candidates
from planner.papers.compass.problem import CompassProblem, Operator
from planner.papers.compass.solution import Choice, CompassSolution


class Call(NamedTuple):
    """One operator as planned, and the seconds of one call in sequence."""

    operator: Operator
    choice: Choice
    sequential_s: float

    @property
    def total_s(self) -> float:
        """Seconds of a step."""
        return self.operator.count * self.choice.time_s

    @property
    def saved_s(self) -> float:
        """Seconds of a step that it takes less than in sequence; below 0 where it had to overlap."""
        return 0.0 if not self.overlaps else self.operator.count * (self.sequential_s - self.choice.time_s)

    @property
    def overlaps(self) -> bool:
        """Whether anything runs beside anything."""
        return self.choice.strategy != "sequential"


def calls(problem: CompassProblem, solution: CompassSolution) -> list[Call]:
    """All operators of a problem in canonical form, in its order."""
    alone_s = candidates(problem).sequential_s.tolist()
    return [Call(*each) for each in zip(problem.operators, solution.choices, alone_s, strict=True)]


def words(strategy: str, degree: int, variant: str | None) -> str:
    """What an operator does, for people."""
    if strategy == "inter_decom":
        return f"{degree} chunks"
    return strategy if variant is None else variant
