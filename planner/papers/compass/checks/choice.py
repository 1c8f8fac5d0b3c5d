"""Whether the choices are the best there are, and what a launcher's switches allow; apart from the search."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.findings import Findings
from planner.papers.compass.checks.ways import EDGE, TOLERANCE, Way, Ways
from planner.papers.compass.problem import AG_NAMES, RS_NAMES, CompassProblem

EXCEPTED = ("qkv_fprop", "fc1_fprop")
"""What can be left in sequence while its flag is on."""


class Flag:
    """Operators under one flag of TransformerEngine, by place."""

    def __init__(self, problem: CompassProblem, names: tuple[str, ...]) -> None:
        named = {place: operator.gemm_name for place, operator in enumerate(problem.operators)}
        self.members = [place for place, name in named.items() if name in names]
        self.tied = [place for place in self.members if named[place] not in EXCEPTED]


def flags(problem: CompassProblem) -> list[Flag]:
    """The flags that tie operators of the problem."""
    if problem.launcher_rules == "none":
        return []
    return [flag for flag in (Flag(problem, RS_NAMES), Flag(problem, AG_NAMES)) if flag.tied]


def check_switches(problem: CompassProblem, done: Sequence[Way], found: Findings) -> None:
    """That every flag has a setting in which just these operators overlap."""
    for flag in flags(problem):
        overlapping = [place for place in flag.members if done[place].strategy != "sequential"]
        idle = [place for place in flag.tied if place not in overlapping]
        if overlapping and idle:
            on, off = problem.operators[overlapping[0]], problem.operators[idle[0]]
            message = f"{on.gemm_name} overlaps and {off.gemm_name} does not, but one switch is for both"
            found.add("launcher_switch", message, f"choices.{idle[0]}.strategy")


def check_choices(problem: CompassProblem, done: Sequence[Way], offered: Sequence[Ways], found: Findings) -> None:
    """That every choice is the first of the best."""
    under = flags(problem)
    held = {place for flag in under for place in flag.members}
    for place, operator in enumerate(problem.operators):
        if place not in held:
            _expect_best(operator.id, done[place], offered[place], place, found)
    for flag in under:
        _check_flag(problem, flag, done, offered, found)


def _check_flag(
    problem: CompassProblem, flag: Flag, done: Sequence[Way], offered: Sequence[Ways], found: Findings
) -> None:
    on = {place: offered[place] for place in flag.members}
    on |= {place: offered[place].only(overlap=True) for place in flag.tied}
    off = {place: offered[place].only(overlap=False) for place in flag.members}
    count = [operator.count for operator in problem.operators]
    on_s, off_s = (math.fsum(count[place] * ways.least_s() for place, ways in all_.items()) for all_ in (on, off))
    is_on = any(done[place].strategy != "sequential" for place in flag.members)
    better_on = off_s > on_s * (1 + TOLERANCE) * (1 + EDGE)
    better_off = off_s <= on_s * (1 + TOLERANCE) * (1 - EDGE)
    if (is_on and better_off) or (not is_on and better_on):
        stated, other = (on_s, off_s) if is_on else (off_s, on_s)
        message = f"under one switch {stated!r} s as stated, {other!r} s with the switch the other way"
        found.add("choice", message, f"choices.{flag.members[0]}")
        return
    for place, ways in (on if is_on else off).items():
        _expect_best(problem.operators[place].id, done[place], ways, place, found)


def _expect_best(name: str, way: Way, ways: Ways, place: int, found: Findings) -> None:
    if ways.is_alone_best(way):
        return
    first = ways.best()
    if first and way not in first:
        message = f"{name}: {way} is not the best, {first[0]} is, in {ways.seconds(first[0])!r} s"
        found.add("choice", message, f"choices.{place}")
