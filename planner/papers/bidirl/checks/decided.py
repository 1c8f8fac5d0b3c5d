"""Whether the problem offers what a plan decides (page, (3) and (4), memory, tables)."""

from __future__ import annotations

import math
from typing import NamedTuple

from planner.findings import Findings
from planner.papers.bidirl.checks.stage_time import batch_s
from planner.papers.bidirl.problem import BidirlProblem, RolloutLayout, Table, TrainLayout
from planner.papers.bidirl.solution import BidirlSolution
from planner.units import in_bytes

EXACT = 1e-12
"""Relative: what rounding may add to a sum of bytes."""


class Pools(NamedTuple):
    """What is decided, with the layouts that are named. d = replicas of a pool's own role, d_a = of the other's."""

    rollout_gpus: int
    train_gpus: int
    rollout: RolloutLayout
    train: TrainLayout

    @property
    def rollout_replicas(self) -> int:
        """d_r."""
        return self.rollout_gpus // self.rollout.gpus

    @property
    def train_replicas(self) -> int:
        """d_t."""
        return self.train_gpus // self.train.gpus


def usable_layouts(
    problem: BidirlProblem, layouts: tuple[RolloutLayout, ...] | tuple[TrainLayout, ...]
) -> list[RolloutLayout | TrainLayout]:
    """Those of a role that fit and that the policy leaves."""
    room_bytes = (1 - problem.cluster.memory_reserve_fraction) * problem.cluster.gpu_memory_bytes
    fitting = [layout for layout in layouts if layout.memory_bytes <= room_bytes * (1 + EXACT)]
    if problem.layout_policy == "all" or not fitting:
        return fitting
    return [min(fitting, key=lambda layout: (layout.gpus, layout.memory_bytes, layout.id))]


def decided(problem: BidirlProblem, solution: BidirlSolution, found: Findings) -> Pools | None:
    """What is decided; None, with everything that is wrong of it found, where the problem does not offer that."""
    rollout = _named(problem.costs.rollout_layouts, solution.rollout_layout, "rollout_layout", found)
    train = _named(problem.costs.train_layouts, solution.train_layout, "train_layout", found)
    _check_counts(problem, solution, found)
    if not isinstance(rollout, RolloutLayout) or not isinstance(train, TrainLayout) or found.listed:
        return None
    pools = Pools(solution.rollout_gpus, solution.train_gpus, rollout, train)
    _check_split(problem, pools, found)
    _check_layouts(problem, pools, found)
    if not found.listed:
        _check_tables(problem, pools, found)
    return None if found.listed else pools


def _named(
    layouts: tuple[RolloutLayout, ...] | tuple[TrainLayout, ...], name: str, where: str, found: Findings
) -> RolloutLayout | TrainLayout | None:
    for layout in layouts:
        if layout.id == name:
            return layout
    found.add("unknown_layout", f'the problem has no layout "{name[:80]}" in {where[:-7]}_layouts', where)
    return None


def _check_counts(problem: BidirlProblem, solution: BidirlSolution, found: Findings) -> None:
    """That both pools are there and have the GPUs that there are."""
    gpus = problem.cluster.gpus
    counts = {"rollout_gpus": solution.rollout_gpus, "train_gpus": solution.train_gpus}
    for name, count in counts.items():
        if not 1 <= count < gpus:
            message = f"expected 1 to {gpus - 1} of {gpus} GPUs, got {_shown(count)}"
            found.add("gpu_budget", message, name)
    taken = sum(counts.values())
    if not found.listed.get("gpu_budget") and (taken > gpus or (taken < gpus and not problem.allow_idle_gpus)):
        atmost = "at most " if problem.allow_idle_gpus else ""
        found.add("gpu_budget", f"expected {atmost}{gpus} GPUs in both pools, got {taken}", "train_gpus")


def _check_split(problem: BidirlProblem, pools: Pools, found: Findings) -> None:
    g_r, g_t, of_r, of_t = pools.rollout_gpus, pools.train_gpus, pools.rollout.gpus, pools.train.gpus
    granularity, switch = problem.split_granularity_gpus, problem.hot_switch
    if g_r % granularity:
        found.add("split_granularity", f"expected a multiple of {granularity}, got {g_r}", "rollout_gpus")
    for where, count, size in (("rollout_gpus", g_r, of_r), ("train_gpus", g_t, of_t)):
        if count % size:
            found.add("pool_not_divisible", f"{count} GPUs are no whole number of replicas of {size}", where)
    for lent, where, count, size in (
        (switch.rollout_on_train, "train_gpus", g_t, of_r),
        (switch.train_on_rollout, "rollout_gpus", g_r, of_t),
    ):
        if lent and count % size:
            message = f"the pool may be lent, and its {count} GPUs are no whole number of the other role's {size}"
            found.add("hot_switch_incompatible", message, where)
    for where, offset, size in (("rollout_layout", 0, of_r), ("train_layout", g_r, of_t)):
        message = _why_straddles(size, offset, problem.cluster.gpus_per_node)
        if message:
            found.add("replica_straddles_node", message, where)


def _why_straddles(size: int, offset: int, per_node: int) -> str:
    """What is wrong with replicas of a size from a GPU on; empty where nothing is."""
    smaller, larger = sorted((size, per_node))
    if larger % smaller:
        return f"replicas of {size} GPUs do not tile nodes of {per_node}"
    if offset % smaller:
        return (
            f"its pool begins at GPU {offset}, which is no multiple of {smaller}: a replica of {size} straddles nodes"
        )
    return ""


def _check_layouts(problem: BidirlProblem, pools: Pools, found: Findings) -> None:
    """That the layouts fit, and are the smallest where those alone are allowed."""
    for where, layout, of_role in (
        ("rollout_layout", pools.rollout, problem.costs.rollout_layouts),
        ("train_layout", pools.train, problem.costs.train_layouts),
    ):
        usable = usable_layouts(problem, of_role)
        room_bytes = (1 - problem.cluster.memory_reserve_fraction) * problem.cluster.gpu_memory_bytes
        if layout.memory_bytes > room_bytes * (1 + EXACT):
            message = f'"{layout.id}" holds {in_bytes(layout.memory_bytes)} on a GPU with room for '
            found.add("memory", message + in_bytes(room_bytes), where)
        elif layout not in usable:
            message = f'"{layout.id}" has {layout.gpus} GPUs, the smallest that fits is "{usable[0].id}"'
            found.add("not_minimal_layout", message, where)


def _check_tables(problem: BidirlProblem, pools: Pools, found: Findings) -> None:
    for where, layout, replicas, trains in (
        ("rollout_layout", pools.rollout, pools.rollout_replicas, False),
        ("train_layout", pools.train, pools.train_replicas, True),
    ):
        if isinstance(layout.time, Table) and batch_s(layout.time, problem.batch, replicas, trains=trains) == math.inf:
            message = f'the table of "{layout.id}" has no time of {replicas} replicas'
            found.add("time_not_in_table", message, where)


def _shown(count: int) -> str:
    """A count of any size."""
    return str(count) if abs(count) < 10**20 else "a number of more than 20 digits"
