"""Candidates evaluated in full, each pipeline replayed once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from planner.papers.layout.evaluate import Evaluated, evaluate
from planner.papers.layout.layouts import Layout
from planner.papers.layout.problem import LayoutProblem


@dataclass
class Evaluations:
    """What was evaluated so far of one problem."""

    problem: LayoutProblem
    done: dict[Layout, Evaluated] = field(default_factory=dict)
    pipelines_s: dict[Layout, float] = field(default_factory=dict)

    def of(self, layout: Layout) -> Evaluated:
        """All figures of a layout that keeps the rules."""
        if layout not in self.done:
            # Sharding the optimizer alone leaves every micro-batch as it is.
            same = replace(layout, zero_stage=0) if layout.zero_stage == 1 else layout
            found = evaluate(self.problem, layout, self.pipelines_s.get(same))
            self.pipelines_s[same] = found.pipeline_s
            self.done[layout] = found
        return self.done[layout]
