"""What the reader of a plan should know of the runs that its prices were fitted to: warnings by code."""

from __future__ import annotations

from collections.abc import Collection

from planner.papers.layout.calibration.learned import ENOUGH, Learned
from planner.papers.layout.calibration.quality import Confusion
from profiles.errors import shown

MOST_WRONG = 0.25
"""Of the runs: more on the wrong side of the memory contradict the bytes, or each other."""
MOST_NAMED = 8


def cautions_of_runs(learned: Learned, columns: Collection[str]) -> dict[str, str]:
    """By code, empty where it does not apply; ``columns`` of the file that nobody read."""
    return {
        "runs_far_off": _far_off(learned),
        "uncalibrated": _few(learned),
        "memory_runs_contradict": "" if learned.memory is None else _contradict(learned.memory),
        "run_columns_unread": _unread(columns),
    }


def _far_off(learned: Learned) -> str:
    ratios = learned.ratios
    if ratios is None or not ratios.far:
        return ""
    return (
        f"measured steps are {ratios.least:.3g} (line {ratios.least_line}) to {ratios.most:.3g} (line "
        f"{ratios.most_line}) times as long as priced: is step_time_s in seconds, and of these GPUs and this model?"
    )


def _few(learned: Learned) -> str:
    if learned.timed >= ENOUGH:
        return ""
    if learned.timed == 0:
        return "no run has a step time: prices are those of kernels measured one by one, 20 to 50 % off a training step"
    runs = "1 timed run" if learned.timed == 1 else f"{learned.timed} timed runs"
    return (
        f"prices are fitted to {runs}, too few to say how far off they still are: give at least {ENOUGH}, of different "
        "layouts"
    )


def _contradict(memory: Confusion) -> str:
    if memory.wrong <= MOST_WRONG * (memory.failed + memory.ran):
        return ""
    return (
        f"of {memory.failed} runs out of memory {memory.foreseen} are foreseen, and {memory.refused} of {memory.ran} "
        "that ran are refused, whatever the reserve: look for a tensor that the code keeps (derive.training_code), or "
        "for a wrong row"
    )


def _unread(columns: Collection[str]) -> str:
    if not columns:
        return ""
    named = ", ".join(shown(name) for name in list(columns)[:MOST_NAMED])
    return f"columns of the runs that are not read: {named}; names that are read stand in the documentation"
