"""Semantic difference of two plans: inputs, decisions, metrics and certificate, never formatting or versions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from planner.envelope import dump_model
from planner.json_text import Json
from planner.plan import Plan

SECTIONS = ("decisions", "metrics", "certificate", "inputs")
_ABSENT = object()


@dataclass(frozen=True)
class Change:
    """One value that differs; None stands for an absent value on either side."""

    section: str
    path: str
    old: Json
    new: Json


@dataclass(frozen=True)
class Difference:
    """All changes, in the order of SECTIONS and then by path."""

    changes: tuple[Change, ...]

    @property
    def same(self) -> bool:
        """True when nothing a reader or runtime acts on differs."""
        return not self.changes

    def as_object(self) -> dict[str, Json]:
        """The JSON form."""
        return {
            "same": self.same,
            "changes": [{"section": c.section, "path": c.path, "old": c.old, "new": c.new} for c in self.changes],
        }


def compare(old: Plan, new: Plan, *, rtol: float = 1e-9) -> Difference:
    """Decisions and inputs are compared exactly, metrics and the certificate's numbers within ``rtol`` relative."""
    if old.paper.name != new.paper.name:
        return Difference((Change("inputs", "paper", old.paper.name, new.paper.name),))
    paper = old.paper
    changes = [
        *changes_of("decisions", dict(paper.decisions(old.solution)), dict(paper.decisions(new.solution))),
        *changes_of("metrics", dict(paper.metrics(old.solution)), dict(paper.metrics(new.solution)), rtol),
        *changes_of("certificate", _certificate(old), _certificate(new), rtol),
        *_gap_change(old.certificate.gap, new.certificate.gap, rtol),
        *changes_of("inputs", _inputs(old), _inputs(new)),
    ]
    return Difference(tuple(changes))


def changes_of(section: str, old: Json, new: Json, rtol: float = 0.0) -> Iterator[Change]:
    """The values that differ, by path; numbers that differ by at most ``rtol`` relative are the same."""
    for path, before, after in _walk("", old, new, rtol):
        absent_to_none = tuple(None if value is _ABSENT else value for value in (before, after))
        yield Change(section, path, *absent_to_none)


def count_parts(value: Json) -> int:
    """How many values a document holds, each of which may change."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else None
    return 1 if parts is None else sum(map(count_parts, parts))


def _inputs(plan: Plan) -> dict[str, Json]:
    derive = plan.inputs.derive
    if isinstance(derive, dict):
        # What was looked up follows from what is compared here, number by number.
        derive = {name: value for name, value in derive.items() if name != "resolved"}
    return {
        "problem": dump_model(plan.problem),
        "derive": derive,
        "profile": plan.inputs.profile,
        "profile_sha256": plan.inputs.profile_sha256,
        "arrays": plan.inputs.arrays,
    }


def _certificate(plan: Plan) -> dict[str, Json]:
    stated = plan.certificate.model_dump(exclude_none=True, exclude={"gap"})
    return stated | {"warnings": sorted(warned.code for warned in plan.warnings), "sources": plan.sources}


def _gap_change(old: float, new: float, rtol: float) -> Iterator[Change]:
    # The gap is a difference of nearly equal numbers, already relative: rounding in them is not a change of it.
    if not math.isclose(old, new, rel_tol=0.0, abs_tol=rtol):
        yield Change("certificate", "gap", old, new)


def _walk(path: str, old: Json, new: Json, rtol: float) -> Iterator[tuple[str, Json, Json]]:
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        old, new = _by_name(old), _by_name(new)
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys(), key=_natural):
            inner = f"{path}.{key}" if path else str(key)
            yield from _walk(inner, old.get(key, _ABSENT), new.get(key, _ABSENT), rtol)
    elif not _equal(old, new, rtol):
        yield path, old, new


def _natural(key: str) -> tuple[int, int, str]:
    return (0, int(key), "") if key.isdecimal() else (1, 0, key)


def _by_name(elements: list[Json] | tuple[Json, ...]) -> dict[str, Json]:
    named = {str(e["id"]): e for e in elements if isinstance(e, dict) and "id" in e}
    if len(named) == len(elements) and elements:
        return named
    return {str(index): element for index, element in enumerate(elements)}


def _equal(old: Json, new: Json, rtol: float) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (old, new))
    return math.isclose(old, new, rel_tol=rtol) if numbers and rtol else bool(old == new)
