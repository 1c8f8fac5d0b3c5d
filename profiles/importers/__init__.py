"""Foreign formats, one a file, all becoming the same profile document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profiles.errors import ProfileError, unknown_message

if TYPE_CHECKING:
    from profiles.document import ProfileDocument

    Outcome = tuple[ProfileDocument, list[str]]


def _aiconfigurator(files: Sequence[str], system: str | None, name: str | None) -> Outcome:
    from profiles.importers.aiconfigurator import import_system

    if system is None:
        raise ProfileError("aiconfigurator needs --system, such as h200_sxm", code="missing_field", where="system")
    if len(files) > 1:
        raise ProfileError("give at most one folder, that with a YAML per system", code="out_of_range", where="files")
    return import_system(system, root=Path(files[0]) if files else None, name=name)


def _nccl_tests(files: Sequence[str], system: str | None, name: str | None) -> Outcome:
    from profiles.importers.nccl_tests import import_logs

    if system is not None:
        raise ProfileError("nccl-tests logs name their own device: leave --system out", code="unknown_field")
    return import_logs(files, name=name)


_FORMATS: dict[str, Callable[[Sequence[str], str | None, str | None], Outcome]] = {
    "aiconfigurator": _aiconfigurator,
    "nccl-tests": _nccl_tests,
    "rccl-tests": _nccl_tests,
}


def formats() -> list[str]:
    """The formats that `run` reads, sorted."""
    return sorted(_FORMATS)


def run(format_name: str, files: Sequence[str], system: str | None = None, name: str | None = None) -> Outcome:
    """The profile document in `files`, and messages for stderr: what was dropped, refused or assumed, and why.

    `system` picks one device of a database; `name` names the profile. Raises `ProfileError`.
    """
    if format_name not in _FORMATS:
        raise ProfileError(unknown_message("format", format_name, formats()), code="out_of_range", where="format")
    return _FORMATS[format_name](files, system, name)
