"""Launcher switches (page, section 3.6): operators under one switch are decided together, exactly.

TransformerEngine has one flag for the reduce-scatter pair and one for the four all-gathers, of which it can except the
two forward ones. No operator is under both, so each switch is settled alone: all that is on, or all that is off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.papers.compass.candidates import SEQUENTIAL, Candidates
from planner.papers.compass.closed_form import TIE
from planner.papers.compass.problem import AG_NAMES, RS_NAMES, CompassProblem
from planner.papers.compass.times import Ints


@dataclass(frozen=True)
class Switch:
    """Operators under one flag, by place: ``tied`` all overlap where it is on; ``free`` ones may stay off alone."""

    name: str
    tied: tuple[int, ...]
    free: tuple[int, ...] = ()

    @property
    def all(self) -> tuple[int, ...]:
        """Every operator under the flag."""
        return self.tied + self.free


def switches(problem: CompassProblem) -> list[Switch]:
    """The flags that bind operators of the problem to each other."""
    if problem.launcher_rules == "none":
        return []
    places = {
        operator.gemm_name: index
        for index, operator in enumerate(problem.operators)
        if operator.gemm_name is not None and operator.op in ("ag_gemm", "gemm_rs")
    }
    found = [
        Switch("reduce-scatter", tuple(places[name] for name in RS_NAMES if name in places)),
        Switch(
            "all-gather",
            tuple(places[name] for name in AG_NAMES if name in places and name.endswith("_dgrad")),
            tuple(places[name] for name in AG_NAMES if name in places and name.endswith("_fprop")),
        ),
    ]
    return [switch for switch in found if switch.tied]


def settled(problem: CompassProblem, offered: Candidates) -> Ints:
    """The best candidate of every operator under the launcher's rules; -1 for operators that are left without one.

    Of settings of a flag that tie, off.
    """
    chosen = offered.best()
    for switch in switches(problem):
        off = offered.without(offered.kind != SEQUENTIAL).best()
        on = chosen.copy()
        tied = list(switch.tied)
        on[tied] = offered.without(offered.kind == SEQUENTIAL).best()[tied]
        members = list(switch.all)
        seconds = [_seconds(offered, setting, members) for setting in (off, on)]
        setting = off if seconds[0] <= seconds[1] * (1 + TIE) else on
        chosen[members] = setting[members] if np.isfinite(min(seconds)) else -1
    return chosen


def switched_off(problem: CompassProblem, offered: Candidates, chosen: Ints) -> Ints:
    """What remains of a rule's choice where a flag is on only if all that it ties overlap; -1 where that is refused."""
    chosen = chosen.copy()
    off = offered.without(offered.kind != SEQUENTIAL).best()
    for switch in switches(problem):
        if any(chosen[place] < 0 or offered.kind[chosen[place]] == SEQUENTIAL for place in switch.tied):
            members = list(switch.all)
            chosen[members] = off[members]
    return chosen


def _seconds(offered: Candidates, chosen: Ints, members: list[int]) -> float:
    """Seconds of a step in some operators; infinity where one of them has no candidate."""
    places = chosen[members]
    return float(offered.count[members] @ offered.time_s[places]) if (places >= 0).all() else float("inf")
