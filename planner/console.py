"""The terminal: one rich console a stream, nothing else of ours imports rich."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from planner.printable import printable

WIDTH = 80


class _Console(Console):
    """A console whose reader may leave: the command line knows what to do then, rich would exit with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def out() -> Console:
    """Standard output, 80 columns unless the terminal is wider; colours only on a terminal (NO_COLOR honoured)."""
    return _console(stderr=False)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream is not None and stream.isatty() else WIDTH
    return _Console(stderr=stderr, width=width, highlight=False, emoji=False, markup=False, soft_wrap=False)


def unicode_ok() -> bool:
    """Whether block characters survive the stream's encoding."""
    try:
        "█░".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


@contextmanager
def spinner(message: str) -> Iterator[Callable[[float, str], None]]:
    """A progress line on stderr while a block runs, on a terminal only: call what it gives with what is done so far."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _done, _what: None
        return
    console = _console(stderr=True)
    if not console.is_terminal:
        yield lambda _done, _what: None
        return
    with console.status(message) as status:
        yield lambda _done, what: status.update(Text(f"{message}: {printable(what)}"))


@contextmanager
def progress_bar() -> Iterator[Callable[[float, str], None]]:
    """A bar on stderr, on a terminal only: call what it gives with the share that is done, 0 to 1, and what is done."""
    console = _console(stderr=True)
    if sys.stderr is None or not console.is_terminal:
        yield lambda _done, _what: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (BarColumn(bar_width=24), TaskProgressColumn(), TextColumn("{task.description}", markup=False))
    # It is drawn when it is told something: a thread of its own would disturb what is measured.
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda done, what: bar.update(task, completed=done, description=printable(what), refresh=True)


def say(line: str = "") -> None:
    """One line on standard output: wrapped between words on a terminal, whole for a program that reads it."""
    screen, text = out(), printable(line)
    pieces = wrapped(text, screen.width) if screen.is_terminal else [text]
    for piece in pieces:
        screen.print(Text(piece), soft_wrap=True)


def wrapped(text: str, width: int) -> list[str]:
    """A line in pieces of at most ``width`` characters, the later ones indented; a longer word stays whole."""
    words = text.lstrip()
    indent = text[: len(text) - len(words)]
    found = textwrap.wrap(
        words,
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return found or [""]


def draw(*pictures: RenderableType) -> None:
    """Tables or lines of a picture, cut at the width; without the blanks at line ends that only a terminal needs."""
    screen = out()
    if screen.is_terminal:
        _draw(screen, pictures)
        return
    with screen.capture() as drawn:
        _draw(screen, pictures)
    lines = drawn.get().removesuffix("\n").split("\n")
    screen.print(Text("\n".join(line.rstrip() for line in lines)), soft_wrap=True)


def _draw(screen: Console, pictures: Sequence[RenderableType]) -> None:
    for picture in pictures:
        screen.print(picture, no_wrap=isinstance(picture, Text), overflow="crop" if isinstance(picture, Text) else None)


_QUANTITY = re.compile(r"[-+]?[.\d][^-\s]*( [^\W\d]+)?|-")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """A plain table: the first column left, numbers right."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for position, column in enumerate(columns):
        numeric = all(_QUANTITY.fullmatch(row[position]) for row in rows if row[position])
        table.add_column(column, justify="right" if position and numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    draw(table)
