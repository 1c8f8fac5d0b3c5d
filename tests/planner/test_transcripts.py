"""Every ```console block of the documentation is run, in order, in one folder per document, and says what is printed.

A line that is exactly ``...`` stands for any lines, a ``…`` inside a line for any characters; blanks at line ends do
not count. What follows a ``$ `` line is its whole standard output and error: nothing there means nothing printed.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FRESH = {"README.md"}
"""Documents whose commands each get a fresh process, as a reader's do; the others share this one, to be quick."""


@dataclass(frozen=True)
class Step:
    """A command of a transcript, and the lines that it prints."""

    line: int
    command: str
    expected: tuple[str, ...]


def steps(document: Path) -> list[Step]:
    """The commands of a document's console blocks."""
    found: list[Step] = []
    inside = False
    for number, line in enumerate(document.read_text("utf-8").splitlines(), start=1):
        if not inside:
            inside = line.startswith("```console")
        elif line.startswith("```"):
            inside = False
        elif line.startswith("$ "):
            found.append(Step(number, line[2:], ()))
        else:
            assert found, f"{document.name}:{number}: a transcript starts with a command"
            found[-1] = Step(found[-1].line, found[-1].command, (*found[-1].expected, line.rstrip()))
    return found


def fault(expected: tuple[str, ...], got: list[str]) -> str | None:
    """What of the expected lines is not there, None if they describe the output."""
    parts: list[list[str]] = [[]]
    for line in expected:
        if line == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    at = 0
    for position, part in enumerate(parts):
        last = position == len(parts) - 1
        starts = list(_starts(part, got, at, anchored=position == 0))
        if last:
            starts = [start for start in starts if start + len(part) == len(got)] if part or position == 0 else [at]
        if not starts:
            where = "at the end" if last and position else "at the start" if position == 0 else f"after line {at}"
            return "\n".join([f"not found {where}:", *part])
        at = starts[0] + len(part)
    return None


def _starts(part: list[str], got: list[str], at: int, *, anchored: bool) -> Iterator[int]:
    patterns = [re.compile(".*".join(map(re.escape, line.split("…")))) for line in part]
    for start in [at] if anchored else range(at, len(got) - len(part) + 1):
        lines = got[start : start + len(part)]
        if len(lines) == len(part) and all(p.fullmatch(line) for p, line in zip(patterns, lines, strict=True)):
            yield start


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Path], str]:
    """Run a line by bash, where ``plan`` is this interpreter's."""
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "plan"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m planner "$@"\n')
    script.chmod(0o755)
    environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}

    def run(line: str, cwd: Path) -> str:
        command = ["bash", "-c", line]
        ran = subprocess.run(command, cwd=cwd, env=environment, stdout=-1, stderr=subprocess.STDOUT, check=False)
        return ran.stdout.decode()

    return run


def run_here(line: str, cwd: Path, plan: Callable[..., Any]) -> str | None:
    """Run a line of nothing but ``plan`` commands, ``|`` and ``>`` in this process; None if it is of more."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|>")
    lexer.whitespace_split = True
    words = list(lexer)
    target = None
    if len(words) > 2 and words[-2] == ">":
        target, words = words[-1], words[:-2]
    commands: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            commands.append([])
        else:
            commands[-1].append(word)
    if any(c in line for c in "$;&<`*") or ">" in words or any(not c or c[0] != "plan" for c in commands):
        return None
    output, errors = b"", ""
    for command in commands:
        ran = plan(*command[1:], stdin=output)
        output, errors = ran.output, errors + ran.err
    if target is not None:
        (cwd / target).write_bytes(output)
        output = b""
    return output.decode() + errors


def test_the_readme_has_a_transcript() -> None:
    assert steps(ROOT / "README.md")


@pytest.mark.parametrize(
    "document", [pytest.param(d, id=d.relative_to(ROOT).as_posix()) for d in DOCUMENTS if d.exists() and steps(d)]
)
def test_a_transcript_says_what_is_printed(
    document: Path,
    plan: Callable[..., Any],
    shell: Callable[[str, Path], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    for step in steps(document):
        output = None if document.name in FRESH else run_here(step.command, tmp_path, plan)
        if output is None:
            output = shell(step.command, tmp_path)
        got = [line.rstrip() for line in output.splitlines()]
        if found := fault(step.expected, got):
            printed = "\n".join(got[:40])
            wrong.append(f"{document.name}:{step.line}: $ {step.command}\n{found}\n--- printed:\n{printed}")
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize(
    ("expected", "got", "fits"),
    [
        ((), [], True),
        ((), ["a"], False),
        (("a",), ["a"], True),
        (("a",), ["a", "b"], False),
        (("a…c",), ["abbc"], True),
        (("a…c",), ["abb"], False),
        (("...",), [], True),
        (("...",), ["a", "b"], True),
        (("...", "b"), ["a", "b"], True),
        (("...", "b"), ["b", "a"], False),
        (("...", "b"), ["b", "a", "b"], True),
        (("a", "...", "c", "..."), ["a", "b", "c", "d"], True),
        (("a", "...", "c", "..."), ["b", "c"], False),
        (("a", "...", "a"), ["a"], False),
        (("(", "..."), ["(x"], False),
    ],
)
def test_ellipses_stand_for_lines_and_characters(expected: tuple[str, ...], got: list[str], fits: bool) -> None:
    assert (fault(expected, got) is None) == fits
