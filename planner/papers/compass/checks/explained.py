"""What a choice says of itself: the bound stage, d*, the crossing and the runner-up, each tried against the problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from planner.findings import Findings
from planner.papers.compass.checks.facts import Stages, columns
from planner.papers.compass.checks.ways import TOLERANCE, Way, Ways, agree
from planner.papers.compass.problem import Operator
from planner.papers.compass.solution import Choice

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

STEP = 1e-4
"""Relative distance at which a stated optimum is compared with its neighbours."""


def check_explanations(
    operators: Sequence[Operator],
    of: Sequence[Stages],
    choices: Sequence[Choice],
    done: Sequence[Way],
    offered: Sequence[Ways],
    found: Findings,
) -> None:
    """Every explanation that is given, given that every choice is one of its operator's ways."""

    def wrong(place: int, field: str, message: str) -> None:
        found.add("explanation", message, f"choices.{place}.{field}")

    for place, (operator, each, choice) in enumerate(zip(operators, of, choices, strict=True)):
        stated = choice.bound
        if stated is not None and stated != (expected := _bound(operator, each, choice)):
            wrong(place, "bound", f"stated {stated}, expected {expected}")
    for place, d in _refuted(_crosses, of, [choice.crossing for choice in choices]):
        wrong(place, "crossing", f"the slower stage is the same on both sides of {d!r}")
    for place, d in _refuted(_is_least, of, [choice.d_star for choice in choices]):
        wrong(place, "d_star", f"T is not least at {d!r}")
    for place, (choice, way, ways) in enumerate(zip(choices, done, offered, strict=True)):
        message = _wrong_runner_up(choice, way, ways)
        if message:
            wrong(place, "runner_up", message)


def _wrong_runner_up(choice: Choice, done: Way, ways: Ways) -> str:
    """What is wrong with the runner-up, empty where nothing is."""
    runner_up = choice.runner_up
    if runner_up is None:
        return ""
    second = Way(runner_up.strategy, runner_up.degree, runner_up.variant)
    time_s = ways.seconds(second)
    if time_s is None or second == done or not agree(runner_up.time_s, time_s):
        return "no other candidate of the operator is this one with this time"
    least_s = ways.least_other_s(done)
    return f"another candidate takes {least_s!r} s" if runner_up.time_s > least_s * (1 + 2 * TOLERANCE) else ""


def _refuted(
    true: Callable[[Stages, Floats], Truths], of: Sequence[Stages], stated: Sequence[float | None]
) -> list[tuple[int, float]]:
    """The places at which a degree is stated that is not what ``true`` says of it, with that degree."""
    places = [place for place, d in enumerate(stated) if d is not None]
    if not places:
        return []
    degrees = np.array([stated[place] for place in places], dtype=np.float64)
    with np.errstate(all="ignore"):
        held = true(Stages(*columns([of[place] for place in places])), degrees)
    return [(places[index], degrees[index].item()) for index in np.flatnonzero(~held)]


def _bound(operator: Operator, of: Stages, choice: Choice) -> str | None:
    if choice.strategy == "inter_decom":
        if operator.inter_decom_table is not None:
            return "table"
        comm, gemm = (
            mu * (a + v / choice.degree) for mu, a, v in ((of.mu_c, of.a_c, of.v_c), (of.mu_g, of.a_g, of.v_g))
        )
        if agree(comm, gemm):
            return choice.bound
        return "comm" if comm > gemm else "gemm"
    return None if choice.strategy == "sequential" and operator.sequential_time_s is None else "given"


def _crosses(of: Stages, d: Floats) -> Truths:
    """Whether both stages take the same at d, and one is slower before it, the other after."""
    before, at, after = (_steady_s(of, d * factor) for factor in (0.5, 1.0, 2.0))
    changes = (before[0] < before[1]) != (after[0] < after[1])
    told_apart = _close(*before, TOLERANCE) | _close(*after, TOLERANCE) | changes
    return np.asarray((d > 0) & _close(*at, 1e-6) & told_apart)


def _is_least(of: Stages, d: Floats) -> Truths:
    """Whether T is no less anywhere near d; T falls and then rises, so then it is nowhere less."""
    here = _total_s(of, d) / (1 + TOLERANCE)
    return (d >= 1) & (here <= _total_s(of, d * (1 + STEP))) & (here <= _total_s(of, np.maximum(1.0, d * (1 - STEP))))


def _steady_s(of: Stages, d: Floats) -> tuple[Floats, Floats]:
    """Seconds of a chunk of each stage beside the other."""
    return of.mu_c * (of.a_c + of.v_c / d), of.mu_g * (of.a_g + of.v_g / d)


def _total_s(of: Stages, d: Floats) -> Floats:
    t_c, t_g = of.a_c + of.v_c / d, of.a_g + of.v_g / d
    return t_c + t_g + (d - 1) * np.maximum(of.mu_c * t_c, of.mu_g * t_g)


def _close(one: Floats, other: Floats, tolerance: float) -> Truths:
    """Equal within a relative tolerance."""
    return np.abs(one - other) <= tolerance * np.maximum(one, other)
