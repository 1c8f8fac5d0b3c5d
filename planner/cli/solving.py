"""Options and steps that the solving commands share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from planner.json_text import Json
    from planner.plan import Options

F = TypeVar("F", bound=Callable[..., Any])


class FiniteRange(click.FloatRange):
    """A float in a range; NaN, which compares with nothing, is outside."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self.min:g}..{self.max:g}.", param, ctx)
        return number


_PROBLEM_OPTIONS = (
    click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Change a problem field (repeatable)."),
    click.option("--profile", metavar="NAME|FILE", help="Use another cost table for a derived problem."),
    click.option("--extrapolate", type=click.Choice(["refuse", "roofline"]),
                 help="What no measured row covers: refuse it, or price it by the roofline model."),
)  # fmt: skip
_SOLVE_OPTIONS = (
    click.option("--method", metavar="NAME", help="A method that `plan papers` lists; the paper's default otherwise."),
    click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True,
                 help="Seed of every random choice."),
    click.option("--workers", type=click.IntRange(1, 256), default=1, show_default=True,
                 help="Solver threads, more than one not reproducible; or processes for independent parts."),
    click.option("--effort", type=FiniteRange(0.001, 10000), default=1.0, show_default=True,
                 help="Multiplier of the deterministic budgets."),
    click.option("--gap", type=FiniteRange(0, 1), default=0.0, help="Stop at this relative gap."),
    click.option("--certify", is_flag=True, help="Spend more on the bound: a minute at most, or all of a search box."),
    click.option("--time-limit", type=FiniteRange(0, 1e9, min_open=True), metavar="S",
                 help="Wall-clock safety net; when it fires no plan is written."),
    click.option("--keep-best", is_flag=True,
                 help="With --time-limit: keep what was found, which depends on the machine."),
)  # fmt: skip


def problem_options(command: F) -> F:
    """--set, --profile, --extrapolate."""
    for option in reversed(_PROBLEM_OPTIONS):
        command = option(command)
    return command


def solve_options(command: F) -> F:
    """The problem options, and budgets."""
    for option in reversed(_SOLVE_OPTIONS):
        command = option(command)
    return problem_options(command)


def read_problem(path: str, settings: tuple[str, ...]) -> Json:
    """A problem document with its --set changes applied."""
    from planner.documents import read_document
    from planner.errors import BadInputError
    from planner.fields import parse_setting, set_field

    document = read_document(path)
    if not isinstance(document, dict):
        raise BadInputError("expected a problem object", code="wrong_type")
    for setting in settings:
        field, value = parse_setting(setting)
        set_field(document, field, [value] if _means_a_list(document, field, value) else value)
    return document


def _means_a_list(document: Json, field: str, value: Json) -> bool:
    """Whether a scalar is given for a list that the document leaves out: one that it has is seen without its model."""
    from planner import papers
    from planner.validation import expects_list

    name = document.get("paper")
    if value is None or isinstance(value, list | dict) or name not in papers.names():
        return False
    paper = papers.get(name)
    return expects_list(paper.derived_model if "derive" in document else paper.problem_model, field)


def make_options(
    path: str,
    profile: str | None,
    extrapolate: str | None,
    *,
    method: str | None = None,
    seed: int = 0,
    workers: int = 1,
    effort: float = 1.0,
    gap: float = 0.0,
    certify: bool = False,
    time_limit: float | None = None,
    keep_best: bool = False,
) -> Options:
    """Library options from command-line options."""
    from planner.paper import DeriveOptions
    from planner.plan import Options
    from solvers.report import Limits

    folder = "." if path == "-" else str(Path(path).parent)
    return Options(
        method=method,
        certify=certify,
        limits=Limits(effort=effort, gap=gap, seed=seed, workers=workers, time_limit_s=time_limit, keep_best=keep_best),
        derive=DeriveOptions(profile=profile, extrapolate=extrapolate, base_folder=folder),
    )


def told(options: Options, tell: Callable[[float, str], None]) -> Options:
    """The options with someone to tell how far a long search is."""
    return replace(options, limits=replace(options.limits, progress=tell))


@contextmanager
def time_limit(seconds: float | None, keep_best: bool) -> Iterator[None]:
    """Raise LimitError in the main thread after so many seconds; with ``keep_best`` only the solver's limit acts."""
    if seconds is None or keep_best or os.name != "posix":
        yield
        return
    import signal

    from planner.errors import LimitError

    def stop(_signal: int, _frame: object) -> None:
        raise LimitError(f"the time limit of {seconds:g} s ran out; no plan was written", code="time_limit")

    previous = signal.signal(signal.SIGALRM, stop)
    try:
        # Again and again: an error raised while Python runs a destructor is lost.
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6), 0.1)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def echo_timings(timings: dict[str, float]) -> None:
    """Wall-clock seconds per phase, on stderr."""
    for name, seconds in timings.items():
        click.echo(f"{name:<8} {seconds * 1e3:10.1f} ms", err=True)
