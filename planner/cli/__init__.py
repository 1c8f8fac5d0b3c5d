"""The ``plan`` command: one command a file, exit codes and error printing here and nowhere else."""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import click

from planner.cli.lazy import LazyGroup, NoCommandError
from planner.printable import printable

if TYPE_CHECKING:
    from planner.errors import PlanError

COMMANDS = {
    "demo": "Place a real mixed image-video batch on a built-in cost table.",
    "papers": "List the formulations: name, decision, citation, methods, exports.",
    "example": "Print a runnable problem of a paper.",
    "expand": "Print the explicit-cost form of a problem, every coefficient with its source.",
    "solve": "Solve a problem, check the plan, and write it.",
    "check": "Recompute what plans say from the plans alone.",
    "compare": "Put a plan beside each baseline, with ratios.",
    "show": "Draw a plan in the terminal.",
    "run": "Execute a plan with real processes, measured beside predicted.",
    "diff": "Compare two plans: inputs and decisions exactly, metrics within a tolerance.",
    "schema": "Print the JSON Schema of a document.",
    "profile": "Measure, import, check, fit, list and show hardware cost tables.",
}
INTERRUPTED = 130


class _Plan(LazyGroup):
    summaries = COMMANDS
    package = "planner.cli"


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if not value:
        return
    from importlib.metadata import version

    from planner import __version__

    click.echo(f"plan {__version__} (ortools {version('ortools')}, numpy {version('numpy')})")
    ctx.exit()


@click.command(
    cls=_Plan,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: plan demo",
)
@click.option("--version", is_flag=True, callback=_print_version, expose_value=False, is_eager=True,
              help="Show the versions of the planner and its solvers.")  # fmt: skip
@click.option("--error-format", type=click.Choice(["text", "json"]), default="text", expose_value=False,
              help="How a failure is printed on stderr; may stand anywhere on the line.")  # fmt: skip
@click.option("--debug", is_flag=True, expose_value=False,
              help="Show the traceback of an internal error; may stand anywhere on the line.")  # fmt: skip
def cli() -> None:
    """Turn a hardware cost table and a workload into a provably good plan.

    stdout is the result, stderr the talk, - is stdin or stdout.
    Exit codes: 0 done, 1 different (plan diff), 2 bad input, 3 infeasible, 4 limit reached, 5 refuted,
    70 internal error, 130 interrupted.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with a code of the contract."""
    arguments, error_format, debug = _common_options(list(sys.argv[1:] if arguments is None else arguments))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without a glyph is no reason to fail
    sys.exit(_run(arguments, error_format, debug))


def _common_options(arguments: list[str]) -> tuple[list[str], str, bool]:
    """Take --error-format and --debug out, wherever they stand before a ``--``."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    head, tail = arguments[:end], arguments[end:]
    debug = "--debug" in head
    head = [argument for argument in head if argument != "--debug"]
    error_format = "text"
    for position, argument in enumerate(head):
        value = argument.removeprefix("--error-format=") if argument.startswith("--error-format=") else None
        used = 1
        if argument == "--error-format":
            value, used = (head[position + 1], 2) if position + 1 < len(head) else (None, 1)
        if value in ("text", "json"):
            error_format = value
            del head[position : position + used]
            break
    return head + tail, error_format, debug


def _run(arguments: list[str], error_format: str, debug: bool) -> int:
    stdout = sys.stdout
    try:
        if stdout is None:
            raise click.ClickException("standard output is closed")
        result = cli.main(arguments, prog_name="plan", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as request:
        return request.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        _close_stdout()
        return 0
    except SystemExit:
        if sys.stdout is stdout:  # shell completion
            raise
        sys.stdout = stdout  # click wraps it when its reader left
        _close_stdout()
        return 0
    except click.ClickException as error:
        return _report(_from_click(error), error_format)
    except Exception as error:
        return _report_unexpected(error, error_format, debug)


def _close_stdout() -> None:
    """The reader of our output left; keep the interpreter from complaining about it at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _from_click(error: click.ClickException) -> PlanError:
    from planner.errors import BadInputError

    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    return BadInputError(message + hint, code=_usage_code(error, message))


def _usage_code(error: click.ClickException, message: str) -> str:
    if isinstance(error, click.NoSuchOption | NoCommandError):
        return "unknown_field"
    if isinstance(error, click.MissingParameter) or message.startswith("Missing"):
        return "missing_field"
    out_of_range = isinstance(error, click.BadParameter) and "is not a valid" not in message
    return "out_of_range" if out_of_range else "wrong_type"


def _report_unexpected(error: Exception, error_format: str, debug: bool) -> int:
    from planner.errors import BadInputError, PlanError
    from profiles.errors import ProfileError

    if isinstance(error, ProfileError):
        error = BadInputError(error.message, code=error.code, where=error.where)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
        # Files have errors of their own where they are written; what is left is standard output.
        _close_stdout()
        error = BadInputError(f"cannot write to standard output: {error.strerror}", code="out_of_range")
    if isinstance(error, PlanError):
        return _report(error, error_format)
    if isinstance(error, MemoryError):
        error = PlanError("out of memory", code="internal")
    if debug:
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    text = f"{type(error).__name__}: {str(error)[:300]}".replace("\n", " ")
    return _report(PlanError(f"{text} (a bug of ours; --debug shows the traceback)", code="internal"), error_format)


def _report(error: PlanError, error_format: str) -> int:
    if error_format == "json":
        import json

        click.echo(json.dumps({"error": error.as_object()}, default=str), err=True)
    else:
        for line in error.lines()[:5]:
            click.echo(printable(line), err=True)
    return error.exit_code
