"""What a check finds: violations by code, the first of each listed and the rest counted."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.paper import Violation

MAX_LISTED = 100
"""Violations of one code that are listed; the rest are counted."""


@dataclass
class Findings:
    """Violations found so far, by code."""

    listed: dict[str, list[Violation]] = field(default_factory=dict)
    hidden: dict[str, int] = field(default_factory=dict)

    def add(self, code: str, message: str, where: str | None = None) -> None:
        """Note one violation."""
        known = self.listed.setdefault(code, [])
        if len(known) < MAX_LISTED:
            known.append(Violation(code, message, where))
        else:
            self.count(code, 1)

    def count(self, code: str, number: int) -> None:
        """Note violations that are counted without being listed."""
        self.hidden[code] = self.hidden.get(code, 0) + number

    def in_order(self, codes: tuple[str, ...]) -> list[Violation]:
        """All violations, code by code; the ones not listed are one line each code."""
        result: list[Violation] = []
        for code in codes:
            result.extend(self.listed.get(code, ()))
            if more := self.hidden.get(code, 0):
                result.append(Violation(code, f"and {more} more"))
        return result
