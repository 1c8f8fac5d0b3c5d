"""``plan run``: execute a plan with real processes, measured beside predicted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from planner.cli.data_option import data_option

if TYPE_CHECKING:
    from planner.json_text import Json


@click.command("run", epilog="Example: plan run plan.json --device cpu")
@click.argument("plan")
@data_option
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True,
              help="Where the ranks run; only cpu today.")  # fmt: skip
@click.option("--repeats", type=click.IntRange(1, 1000), default=3, show_default=True,
              help="Timed steps after one of warm-up; their median is reported.")  # fmt: skip
@click.option("--model", metavar="NAME|FILE|JSON",
              help="A geometry by name, from a file or as an object, for a plan of explicit costs.")  # fmt: skip
@click.option("--dtype", type=click.Choice(["fp32", "bf16"]), help="Run in another dtype than the plan is priced in.")
@click.option("--library", type=click.Choice(["torch", "numpy"]),
              help="Whose kernels; torch where it is installed.")  # fmt: skip
@click.option("--transport", type=click.Choice(["gloo", "shared_memory"]),
              help="What carries the collectives; gloo where torch is installed.")  # fmt: skip
@click.option("--force", is_flag=True, help="Run more ranks, longer steps or more memory than is sensible here.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the output.")
def command(
    plan: str,
    data: str | None,
    device: str,
    repeats: int,
    model: str | None,
    dtype: str | None,
    library: str | None,
    transport: str | None,
    force: bool,
    form: str,
) -> None:
    """Run PLAN as its ranks would: a process a rank, real kernels and collectives, timed beside the prediction."""
    from planner.api import load
    from planner.errors import BadInputError
    from planner.program import Stated
    from planner.reports.run import print_run
    from planner.reports.terminal import progress
    from planner.runner.execute import RunOptions, run_plan
    from planner.verification import require_true

    if device != "cpu":
        raise BadInputError("plan run executes on cpu only today", code="out_of_range", where="--device")
    loaded = load(plan, data)
    require_true(loaded)
    options = RunOptions(repeats, library, transport, Stated(_model(model), dtype), force)
    with progress("running"), _terminated_as_interrupted():
        report = run_plan(loaded, options)
    if form == "json":
        from planner.documents import canonical_bytes

        click.echo(canonical_bytes(report.as_object()), nl=False)
    else:
        print_run(report)


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Inside, a request to terminate is what Ctrl-C is: the ranks end, one line, exit code 130."""
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _model(text: str | None) -> Json:
    """A name, or the object that the text is."""
    if text is None or not text.lstrip().startswith("{"):
        return text
    from planner.json_text import parse_json

    return parse_json(text, "--model")
