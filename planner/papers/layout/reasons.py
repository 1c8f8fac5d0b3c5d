"""Why a layout loses to the chosen one, in a few words (page, section 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from planner.papers.layout.evaluate import Evaluated
from planner.papers.layout.layouts import TIE_ORDER, Layout
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.step_parts import step_parts
from planner.papers.layout.ties import EQUAL
from planner.units import in_bytes, percent


@dataclass(frozen=True)
class Losses:
    """What other layouts of a problem lose against the chosen one."""

    problem: LayoutProblem
    chosen: Evaluated
    told: dict[Layout, str] = field(default_factory=dict)
    """Reasons that were given already: what is on the front is often an alternative too."""

    @cached_property
    def _parts(self) -> dict[str, float]:
        return step_parts(self.problem, self.chosen)

    def why(self, found: Evaluated) -> str:
        """The part of the step that grows most, as a share of the chosen step; of equally fast ones memory or ties."""
        if found.layout not in self.told:
            self.told[found.layout] = self._why(found)
        return self.told[found.layout]

    def _why(self, found: Evaluated) -> str:
        if found.layout == self.chosen.layout:
            return "chosen"
        if found.step_time_s <= self.chosen.step_time_s * (1 + EQUAL):
            return self._as_fast(found)
        more = {part: own_s - self._parts[part] for part, own_s in step_parts(self.problem, found).items()}
        most = max(more, key=lambda part: more[part])
        step_s = self.chosen.step_time_s
        return f"{most} +{percent(more[most] / step_s)}" if step_s > 0 else most

    def too_large(self, found: Evaluated) -> str:
        """By how much its fullest rank goes beyond what it has."""
        return f"memory: {in_bytes(found.peak_memory_bytes - self.problem.cluster.capacity_bytes)} over"

    def on_the_front(self, found: Evaluated) -> str:
        """Why it loses, and the memory that it saves."""
        saved = self.chosen.peak_memory_bytes - found.peak_memory_bytes
        return f"{self.why(found)}; {in_bytes(saved)} less" if saved > 0 else self.why(found)

    def _as_fast(self, found: Evaluated) -> str:
        more = found.peak_memory_bytes - self.chosen.peak_memory_bytes
        if more > EQUAL * self.chosen.peak_memory_bytes:
            return f"as fast; {in_bytes(more)} more"
        pairs = zip(TIE_ORDER, found.layout.tie_key, self.chosen.layout.tie_key, strict=True)
        return f"as fast and as large; {next(name for name, its, mine in pairs if its != mine)} comes later"
