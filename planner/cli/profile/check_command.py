"""``plan profile check``: what a profile says that cannot be, or that a reader should know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from planner.json_text import Json
    from profiles.checks.finding import Finding
    from profiles.document import HeldOut, ProfileDocument


@click.command("check", epilog="Example: plan profile check my-card.json --strict")
@click.argument("profiles", nargs=-1, required=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the output.")
@click.option("--strict", is_flag=True, help="Warnings refute a profile too, not only errors.")
@click.option("-o", "--output", metavar="FILE",
              help="Compute the errors and formulas that it lacks, and write it here unless refuted.")  # fmt: skip
def command(profiles: tuple[str, ...], form: str, strict: bool, output: str | None) -> int:
    """Look for units, spikes, holes and contradictions in each PROFILE (a built-in name or a file).

    An error contradicts physics or the profile itself and exits with 5; warnings are odd, notes are to know.
    """
    from planner.errors import BadInputError, RefutedError
    from planner.files import write_atomically
    from profiles.checks import check_profile
    from profiles.files import document_bytes
    from profiles.library import load

    if output is not None and len(profiles) > 1:
        raise BadInputError("-o takes one profile", code="out_of_range", where="--output")
    results: list[dict[str, Json]] = []
    refuting: list[tuple[str, Finding]] = []
    for name in profiles:
        loaded = load(name)
        document = loaded.document
        found = check_profile(document)
        severe = _severe(found, strict=strict)
        if output is not None and not severe:
            document = _completed(document)
            found = check_profile(document)
            severe = _severe(found, strict=strict)
        refuting += [(name, each) for each in severe]
        result = _result(name, document, loaded.sha256, found, ok=not severe)
        results.append(result)
        if form == "text":
            _print(name, document, found)
        if output is not None and not severe:
            write_atomically(output, document_bytes(document))
    if form == "json":
        from planner.cli.profile.overview import print_json

        print_json(results)
    if refuting:
        raise RefutedError(
            f"{len(refuting)} finding{'s' if len(refuting) > 1 else ''}"
            + (f"; {output} was not written" if output is not None else ""),
            code=refuting[0][1].code,
            where=refuting[0][1].where,
            violations=tuple(f"{name}: {_line(each)}" for name, each in refuting),
        )
    return 0


def _severe(found: list[Finding], *, strict: bool) -> list[Finding]:
    """What refutes a profile."""
    return [each for each in found if each.severity == "error" or (strict and each.severity == "warning")]


def _completed(document: ProfileDocument) -> ProfileDocument:
    from planner.console import progress_bar
    from profiles.checks.completion import completed

    with progress_bar() as progress:
        return completed(document, progress)


def _result(name: str, document: ProfileDocument, sha256: str, found: list[Finding], *, ok: bool) -> dict[str, Json]:
    from profiles.checks.finding import title

    return {
        "profile": name,
        "name": document.name,
        "sha256": sha256,
        "ok": ok,
        "findings": [vars(each) for each in found],
        "errors": [
            {"table": title(table), **error.model_dump()} for table in document.tables for error in table.errors
        ],
    }


def _line(each: Finding) -> str:
    return (
        f"{each.severity} {each.code}: " + (f"{each.table}: " if each.table else "") + f"{each.what} (at {each.where})"
    )


def _print(name: str, document: ProfileDocument, found: list[Finding]) -> None:
    from planner import console
    from profiles.checks.finding import SEVERITIES, count, title

    counts = (count(sum(each.severity == severity for each in found), severity) for severity in SEVERITIES)
    console.say(f"{name}: {', '.join(counts)}")
    for each in found:
        console.say(f"  {_line(each)}")
        if each.severity != "note":
            console.say(f"    expected: {each.expected}")
            console.say(f"    fix: {each.fix}")
    if not any(error.rows for table in document.tables for error in table.errors):
        return
    console.say("  prices against rows that were left out, |predicted / measured - 1|:")
    for table in document.tables:
        for error in [error for error in table.errors if error.rows]:
            console.say(f"  {title(table)}: {', '.join(_words(error))}")


def _words(error: HeldOut) -> list[str]:
    """What was left out, in words, then the numbers by name."""
    from planner.units import percent

    values = {name: value for name, value in error.model_dump().items() if value not in (None, "")}
    texts = [value for value in values.values() if isinstance(value, str)]
    return texts + [
        f"{name} {percent(value) if isinstance(value, float) else value}"
        for name, value in values.items()
        if not isinstance(value, str)
    ]
