"""The pools that a sizing solution uses, each at its operating point, for all that is told of a plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.papers.janus import model
from planner.papers.janus.model import WHOLE, Floats, Ints, Option, Pairs
from planner.papers.janus.options import options
from planner.papers.janus.problem import JanusProblem, ScalingProblem, SeriesProblem, SizingProblem
from planner.papers.janus.solution import IntervalPools, JanusSolution, ScalingSolution, SeriesSolution


@dataclass(frozen=True)
class Used:
    """Pools of one device [n]: their places in the series (0 where there is none), batch, and GPU-seconds."""

    option: Option
    places: Ints
    pairs: Pairs
    batch: Floats
    gpu_seconds: Floats

    def layer_s(self) -> tuple[Floats, Floats, Floats]:
        """Seconds [n] of one layer: attention, experts, exchange."""
        return (
            model.attention_s(self.pairs, self.batch),
            model.moe_s(self.pairs, self.batch),
            model.comm_s(self.pairs, self.batch)[0],
        )

    def tpot_s(self) -> Floats:
        """Seconds [n] of an output token."""
        return model.tpot_s(self.pairs, self.batch)

    def requests(self) -> Floats:
        """Whole requests [n] on the busiest attention instance."""
        return np.asarray(np.ceil(self.batch / self.pairs.n_a - WHOLE))


def used_of(problem: JanusProblem, solution: JanusSolution) -> list[Used]:
    """What a solution of a sizing task uses, device by device; nothing for a placement."""
    if isinstance(problem, ScalingProblem) and isinstance(solution, ScalingSolution):
        return [_used(option_of(problem, solution.device), [(0, 1.0, solution)])]
    if isinstance(problem, SeriesProblem) and isinstance(solution, SeriesSolution):
        by_device: dict[str | None, list[tuple[int, float, ScalingSolution | IntervalPools]]] = {}
        for place, (interval, pools) in enumerate(zip(problem.series, solution.intervals, strict=True)):
            by_device.setdefault(pools.device, []).append((place, interval.duration_s, pools))
        return [_used(option_of(problem, device), rows) for device, rows in by_device.items()]
    return []


def option_of(problem: SizingProblem, device: str | None) -> Option:
    """The option of a device of the problem."""
    return next(option for option in options(problem) if option.device == device)


def _used(option: Option, rows: list[tuple[int, float, ScalingSolution | IntervalPools]]) -> Used:
    n_a = np.array([pools.attention_instances for _, _, pools in rows], np.int64)
    n_e = np.array([pools.expert_instances for _, _, pools in rows], np.int64)
    seconds = np.array([duration_s for _, duration_s, _ in rows], np.float64)
    return Used(
        option=option,
        places=np.array([place for place, _, _ in rows], np.int64),
        pairs=model.pairs_of(option, n_a, n_e),
        batch=np.array([pools.batch for _, _, pools in rows], np.float64),
        gpu_seconds=seconds * (n_a + n_e),
    )
