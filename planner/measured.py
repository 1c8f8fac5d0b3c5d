"""Measured step times beside a plan's prediction: what others' clocks say of the time that the plan promises."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from dataclasses import dataclass

from planner.errors import BadInputError
from planner.json_text import Json
from planner.plan import Plan
from planner.steps.lines import StepTimes
from planner.units import percent, seconds

WARM_UP_SHARE = 0.1
"""Steps left out of each run at its start, at least one where there are more."""
SPIKE = 1.5
"""A step of more than so many medians is a spike: a checkpoint, an evaluation, a slow rank."""


@dataclass(frozen=True)
class Summary:
    """Steps of a log after warm-up, seconds. ``restarts``: how often the step numbers went back.

    ``interval`` is the usual distance between step numbers: above 1, Megatron's lines are means of so many steps.
    ``repeats`` are lines for a step that another rank's line had already given; the longest of them counts.
    ``rows_without`` rows of the log hold no step time under the name that was read.
    """

    steps: int
    warm_up: int
    median_s: float
    p10_s: float
    p90_s: float
    spikes: int
    median_with_warm_up_s: float
    interval: int
    restarts: int
    repeats: int
    rows_without: int


@dataclass(frozen=True)
class Against:
    """A plan's predicted step time beside a log; ``relative_error`` is predicted / measured - 1, in the median."""

    log: str
    form: str
    field: str
    predicted_s: float
    measured: Summary
    relative_error: float
    compared: str
    explanations: tuple[str, ...]

    def as_object(self) -> dict[str, Json]:
        """The comparison for a program."""
        return {**vars(self), "measured": vars(self.measured), "explanations": list(self.explanations)}

    def lines(self) -> list[str]:
        """The comparison for a person."""
        measured = self.measured
        what = f"{self.form}, {self.field}" if self.field else self.form
        notes = [f"{measured.spikes} over {SPIKE:g} times that"] if measured.spikes else []
        notes.append(f"{seconds(measured.median_with_warm_up_s)} with warm-up")
        lines = [
            f"  {self.log} ({what}): {_steps(measured)}{_oddities(measured)}",
            f"  predicted {seconds(self.predicted_s)}; measured {seconds(measured.median_s)} in the median "
            f"(p10 {seconds(measured.p10_s)}, p90 {seconds(measured.p90_s)}; {'; '.join(notes)}): "
            f"the prediction is {_off(self.relative_error)}",
            f"  compared: {self.compared}",
        ]
        return [*lines, *(f"  {explanation}" for explanation in self.explanations)]


def _steps(measured: Summary) -> str:
    steps = f"{measured.steps} step{'' if measured.steps == 1 else 's'}"
    if measured.warm_up:
        return f"{steps} after {measured.warm_up} of warm-up"
    return f"{steps}, too few to leave a warm-up out: the time may hold start-up and compilation"


def _oddities(measured: Summary) -> str:
    found = []
    if measured.interval > 1:
        found.append(f"one line for every {measured.interval} steps")
    if measured.restarts:
        found.append(f"{measured.restarts} restart{'s' if measured.restarts > 1 else ''}")
    if measured.repeats:
        found.append(f"{measured.repeats} repeated lines, the longest of a step counts")
    if measured.rows_without:
        found.append(f"{measured.rows_without} row{'s' if measured.rows_without > 1 else ''} without that time")
    return "".join(f"; {text}" for text in found)


def _off(relative_error: float) -> str:
    if relative_error == 0:
        return "met"
    return f"{percent(abs(relative_error))} too {'long' if relative_error > 0 else 'short'}"


def compare_with_log(plan: Plan, times: StepTimes, log: str) -> Against:
    """A plan's objective beside the step times of a log.

    Raises BadInputError if what the plan's paper predicts is not the time of a step.
    """
    paper, certificate = plan.paper, plan.certificate
    if not paper.step or certificate.unit != "s":
        raise BadInputError(
            f"a {paper.name} plan predicts no step time (its objective: {paper.decision}, in {certificate.unit})",
            code="out_of_range",
            where="--against",
        )
    measured = summarize(times)
    error = certificate.objective / measured.median_s - 1.0
    return Against(
        log=log,
        form=times.form,
        field=times.field,
        predicted_s=certificate.objective,
        measured=measured,
        relative_error=error,
        compared=paper.step,
        explanations=tuple(_explanations(plan, measured, error)),
    )


def summarize(times: StepTimes) -> Summary:
    """Median, spread and spikes after warm-up. Raises BadInputError for a log that runs backwards."""
    _refuse_backwards(times.steps)
    runs, repeats = _runs(times)
    warm_ups = [min(len(run) - 1, max(1, int(WARM_UP_SHARE * len(run)))) for run in runs]
    kept = [value for run, first in zip(runs, warm_ups, strict=True) for value in run[first:]]
    median = statistics.median(kept)
    tenths = statistics.quantiles(kept, n=10, method="inclusive") if len(kept) > 1 else [median] * 9
    return Summary(
        steps=len(kept),
        warm_up=sum(warm_ups),
        median_s=median,
        p10_s=tenths[0],
        p90_s=tenths[-1],
        spikes=sum(value > SPIKE * median for value in kept),
        median_with_warm_up_s=statistics.median([value for run in runs for value in run]),
        interval=_interval(times.steps),
        restarts=len(runs) - 1,
        repeats=repeats,
        rows_without=times.without,
    )


def _refuse_backwards(steps: tuple[int | None, ...]) -> None:
    """A restart goes back once in a while; a log that mostly goes back is newest first, or no order of steps."""
    pairs = [(a, b) for a, b in itertools.pairwise(steps) if a is not None and b is not None]
    down = sum(b < a for a, b in pairs)
    if down > sum(b > a for a, b in pairs):
        raise BadInputError(
            f"the step numbers go back {down} times and forward less often: expected the log in the order of its steps",
            code="out_of_range",
            where="--against",
        )


def _runs(times: StepTimes) -> tuple[list[list[float]], int]:
    """The log cut where step numbers go back (a restart warms up again), lines of one step joined; how many were."""
    runs: list[list[float]] = []
    repeats, before = 0, None
    for seconds_, step in zip(times.step_s, times.steps, strict=True):
        if runs and step is not None and step == before:
            runs[-1][-1] = max(runs[-1][-1], seconds_)
            repeats += 1
        elif runs and (step is None or before is None or step > before):
            runs[-1].append(seconds_)
        else:
            runs.append([seconds_])
        before = step
    return runs, repeats


def _interval(steps: tuple[int | None, ...]) -> int:
    pairs = itertools.pairwise(steps)
    gaps = Counter(b - a for a, b in pairs if a is not None and b is not None and b > a)
    return gaps.most_common(1)[0][0] if gaps else 1


def _explanations(plan: Plan, measured: Summary, error: float) -> list[str]:
    """What could explain the difference, from what the plan knows of its own numbers."""
    said = []
    if plan.cost_error:
        said.append(
            f"the table is itself off by {percent(plan.cost_error['median'])} in the median, "
            f"{percent(plan.cost_error['p90'])} in the worst tenth"
        )
    unmeasured = [
        f"{share:.0%} {name}"
        for name, share in plan.sources.items()
        if name in ("modelled", "stated") and share >= 0.005
    ]
    if unmeasured:
        said.append(f"of the predicted time {' and '.join(unmeasured)}, not measured on the device")
    noise = (measured.p90_s - measured.p10_s) / 2 / measured.median_s
    if measured.steps > 1:
        said.append(f"the steps themselves lie {percent(noise)} around their median")
    ratio = 1.0 / (1.0 + error)
    if 300 < ratio < 3000 or 1 / 3000 < ratio < 1 / 300:
        said.append("a factor near 1,000: is the log's time in the unit its name says?")
    return [f"what may explain it: {'; '.join(said)}"] if said else []
