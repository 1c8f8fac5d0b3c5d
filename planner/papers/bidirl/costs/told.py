"""What a stage time was made from, for the reader of a plan."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.json_text import Json
from planner.papers.bidirl.problem import AnyTime
from planner.papers.bidirl.time_kinds import POOR

MAX_SHOWN = 1000
"""Rows whose residuals are kept."""


@dataclass
class Told:
    """Times by layout, how each was fitted, and cautions by code; ``error`` is the worst median and p90 of the fits."""

    times: dict[str, AnyTime] = field(default_factory=dict)
    fits: dict[str, Json] = field(default_factory=dict)
    cautions: dict[str, str] = field(default_factory=dict)
    errors: list[tuple[float, float]] = field(default_factory=list)

    def judge(self, what: str, median: float, p90: float) -> None:
        """Note the errors of a line of decode steps, prefills or timers, with a caution where they are large."""
        self.errors.append((median, p90))
        if p90 > POOR:
            self.cautions["stage_fit_poor"] = (
                f"a line through the measured times of {what} is off by {p90:.0%} (p90), so what is planned of them is "
                "a guess: measure more, or fewer kinds of work at a time"
            )
