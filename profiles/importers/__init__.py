"""Foreign formats, one a file, all becoming the same profile document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from profiles.errors import ProfileError, shown, unknown_message

if TYPE_CHECKING:
    from profiles.importers.assembly import Imported, Options


@dataclass(frozen=True)
class Format:
    """One foreign format: how to read its files, what they are, and which options it takes beside the files."""

    read: Callable[[Sequence[str], Options], Imported]
    meaning: str
    options: tuple[str, ...] = ()
    needs_files: bool = True


def _aiconfigurator(files: Sequence[str], options: Options) -> Imported:
    from profiles.families import FAMILIES
    from profiles.importers.aiconfigurator import import_system
    from profiles.importers.assembly import Imported, Report, known_families

    if options.system is None:
        raise ProfileError("aiconfigurator needs --system, such as h200_sxm", code="missing_field", where="system")
    if len(files) > 1:
        raise ProfileError("give at most one folder, that with a YAML per system", code="out_of_range", where="files")
    known_families(options.families, list(FAMILIES))
    root = Path(files[0]) if files else None
    if root is not None and not root.is_dir():
        raise ProfileError(
            f"{shown(root.name)} is not a folder: aiconfigurator takes a folder with a YAML per system, or none for "
            "the installed package",
            code="wrong_type",
            where="files",
        )
    document, messages = import_system(options.system, root=root, name=options.name, families=options.families)
    return Imported(document, Report(tuple(messages)))


def _nccl(files: Sequence[str], options: Options) -> Imported:
    from profiles.importers.nccl_tests import import_logs

    return import_logs(files, options, "nccl")


def _rccl(files: Sequence[str], options: Options) -> Imported:
    from profiles.importers.nccl_tests import import_logs

    return import_logs(files, options, "rccl")


def _vidur(files: Sequence[str], options: Options) -> Imported:
    from profiles.importers.vidur import import_tables

    return import_tables(files, options)


def _deepep(files: Sequence[str], options: Options) -> Imported:
    from profiles.importers.deepep import import_tables

    return import_tables(files, options)


def _nvbandwidth(files: Sequence[str], options: Options) -> Imported:
    from profiles.importers.nvbandwidth import import_outputs

    return import_outputs(files, options)


def _dynamo(files: Sequence[str], options: Options) -> Imported:
    from profiles.importers.dynamo import import_results

    return import_results(files, options)


FORMATS: Mapping[str, Format] = {
    "aiconfigurator": Format(
        _aiconfigurator, "all tables of one system of aiconfigurator-core", ("system",), needs_files=False
    ),
    "deepep": Format(_deepep, "the latency table of DeepEP's README (CSV or Markdown)"),
    "dynamo": Format(_dynamo, "raw_data.npz or *_raw_data.json of Dynamo's profiler, or their folder"),
    "nccl-tests": Format(_nccl, "logs of nccl-tests; all_gather=FILE where a log does not name its test"),
    "nvbandwidth": Format(_nvbandwidth, "output of nvbandwidth, text or JSON", ("buffer_bytes",)),
    "rccl-tests": Format(_rccl, "logs of rccl-tests"),
    "vidur": Format(_vidur, "Vidur's mlp.csv, all_reduce.csv, send_recv.csv of one device"),
}


def formats() -> list[str]:
    """The formats that `run` reads, sorted."""
    return sorted(FORMATS)


def run(
    format_name: str,
    files: Sequence[str],
    system: str | None = None,
    name: str | None = None,
    families: Sequence[str] = (),
    buffer_bytes: int | None = None,
) -> Imported:
    """The profile document in `files`, and a report: what was read, dropped, refused or assumed, and why.

    `system` picks one device of a database; `name` names the profile; `families` are the only ones to keep, none for
    all; `buffer_bytes` is the size of what was copied where the output does not say. Raises `ProfileError`.
    """
    from pydantic import ValidationError

    from profiles.document import ProfileDocument
    from profiles.importers.assembly import Options
    from profiles.validation import first_error

    if format_name not in FORMATS:
        raise ProfileError(unknown_message("format", format_name, formats()), code="out_of_range", where="format")
    chosen = FORMATS[format_name]
    for option, value in (("system", system), ("buffer_bytes", buffer_bytes)):
        if value is not None and option not in chosen.options:
            takers = " and ".join(key for key in formats() if option in FORMATS[key].options)
            raise ProfileError(
                f"{format_name} takes no --{option.replace('_', '-')}: it is for {takers}",
                code="unknown_field",
                where=option,
            )
    if chosen.needs_files and not files:
        raise ProfileError(f"name at least one file to import: {chosen.meaning}", code="missing_field", where="files")
    try:
        return chosen.read(files, Options(system, name, tuple(families), buffer_bytes))
    except ValidationError as error:
        # A name that no profile can have: the one asked for, a file's, or one that a file states.
        raise first_error(error, "the imported profile", ProfileDocument) from None
