"""What people and programs read off a BiDiRL plan: summary, bytes of a GPU, shares by source, decisions, metrics."""

from __future__ import annotations

from collections.abc import Iterator

from planner.attribution import Sources, parts_of
from planner.derivation.shares import by_source
from planner.json_text import Json
from planner.paper import MemoryRow
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.solution import BidirlSolution, Replayed, Thresholds
from planner.papers.bidirl.split_figures import figures_of
from planner.papers.bidirl.splits import Split
from planner.units import percent, seconds

SAME = 1e-9
"""Relative: what differs by less is equal."""
BYTES, RESERVE = "layout", "reserve"
"""Causes: bytes of a layout that are not known by cause, and what no layout may fill."""
LENT = {"rollout_on_train": "pool T to rollout", "train_on_rollout": "pool R to training"}
BESIDE = (("without lending", "no_borrow"), ("all GPUs in turn", "colocated"))
"""Policies that the recommended one is set beside."""


def split_of(problem: BidirlProblem, solution: BidirlSolution) -> Split:
    """The split of a plan that holds, with its layouts."""
    rollout = next(layout for layout in problem.costs.rollout_layouts if layout.id == solution.rollout_layout)
    train = next(layout for layout in problem.costs.train_layouts if layout.id == solution.train_layout)
    return Split(solution.rollout_gpus, solution.train_gpus, rollout, train)


def shares(problem: BidirlProblem, solution: BidirlSolution) -> dict[str, float]:
    """Fraction by source of both stage times, and of the weight sync where the objective counts it.

    The slower stage alone is the objective, but the split is what balances both.
    """
    return by_source(_attributed(problem, split_of(problem, solution)))


def _attributed(problem: BidirlProblem, split: Split) -> Iterator[tuple[float, Sources | None]]:
    figures = figures_of(problem, split)
    yield figures.rollout_s, split.rollout.time.sources
    yield figures.train_s, split.train.time.sources
    if problem.objective == "period":
        yield problem.costs.weight_sync_s, problem.costs.sync_sources


def memory(problem: BidirlProblem, solution: BidirlSolution) -> list[MemoryRow]:
    """Bytes by cause on the fullest GPU of a replica, in the layout of each pool's own role, and the reserve."""
    split, cluster = split_of(problem, solution), problem.cluster
    rows = []
    for pool, layout in (("rollout pool", split.rollout), ("train pool", split.train)):
        causes = parts_of(layout.memory_causes, layout.memory_bytes) or {BYTES: layout.memory_bytes}
        held = dict(sorted(causes.items())) | {RESERVE: cluster.gpu_memory_bytes - cluster.usable_bytes}
        rows += [MemoryRow(pool, cause, amount, cluster.gpu_memory_bytes) for cause, amount in held.items() if amount]
    return rows


def summary(problem: BidirlProblem, solution: BidirlSolution) -> list[str]:
    """Lines about the pools, what they take, when to lend, and what the replay says of it."""
    split = split_of(problem, solution)
    lines = [_pools(problem, split), _times(problem, split)]
    bound_s = solution.fractional_bound_s
    if bound_s is not None:
        more = max(0.0, solution.objective_s / bound_s - 1)
        cost = f"whole replicas cost {percent(more)}" if more > SAME else "whole replicas cost nothing"
        lines.append(f"{cost}: divided without rest, no split would take less than {seconds(bound_s)}")
    if solution.thresholds is not None:
        lines.append(f"lend {lend_words(problem, solution.thresholds)}")
    return [*lines, *_run(problem, solution)]


def _pools(problem: BidirlProblem, split: Split) -> str:
    idle = problem.cluster.gpus - split.rollout_gpus - split.train_gpus
    return (
        f"{split.rollout_gpus:,} GPUs roll out, {_replicas(split.rollout_replicas, split.rollout.id)}; "
        f"{split.train_gpus:,} train, {_replicas(split.train_replicas, split.train.id)}"
        + (f"; {idle:,} of {problem.cluster.gpus:,} left out" if idle else "")
    )


def _replicas(number: int, layout: str) -> str:
    return f"{number:,} x {layout}"


def _times(problem: BidirlProblem, split: Split) -> str:
    figures = figures_of(problem, split)
    slower = "rollout" if figures.rollout_s >= figures.train_s else "training"
    rate = problem.batch.prompt_groups / max(figures.rollout_s, figures.train_s)
    alike = abs(figures.rollout_s - figures.train_s) <= SAME * figures.rollout_s
    bound = "both are as slow" if alike else f"{slower} is the slower"
    return (
        f"a batch rolls out in {seconds(figures.rollout_s)} and trains in {seconds(figures.train_s)}: {bound}, "
        f"{rate:.4g} groups/s; a step without lending takes {seconds(figures.period_s)} at staleness "
        f"{problem.staleness:g}"
    )


def lend_words(problem: BidirlProblem, thresholds: Thresholds) -> str:
    """From what backlog on each pool is lent, in words."""
    parts = []
    for direction, least, noun in (
        ("rollout_on_train", thresholds.min_missing_groups, "missing groups"),
        ("train_on_rollout", thresholds.min_remaining_chunks, "remaining chunks"),
    ):
        to = LENT[direction]
        if not getattr(problem.hot_switch, direction):
            parts.append(f"{to} never (hot_switch.{direction} is false)")
        elif least is None:
            parts.append(f"{to} never: no backlog repays the switch")
        else:
            parts.append(f"{to} from {least:,} {noun} on")
    return "; ".join(parts)


def _run(problem: BidirlProblem, solution: BidirlSolution) -> Iterator[str]:
    """The recommended policy beside the others, and who waits."""
    rows, policy = solution.simulation or {}, solution.policy
    chosen = None if policy is None else rows.get(policy)
    if policy is None or chosen is None:
        return
    others = [(name, key) for name, key in BESIDE if key in rows and key != policy]
    faster = [f"{times(rows[key], chosen)} times as fast as {name}" for name, key in others]
    line = f"replay of {problem.simulation.steps:,} steps: {policy}, {seconds(chosen.makespan_s)}"
    yield ", ".join([line, *faster])
    if chosen.rollout_idle_share is not None and chosen.train_idle_share is not None:
        yield (
            f"pools have nothing to do for {percent(chosen.rollout_idle_share)} of it (rollout) and "
            f"{percent(chosen.train_idle_share)} (train){_without(rows.get('no_borrow'), policy)}"
        )


def _without(alone: Replayed | None, policy: str) -> str:
    if alone is None or policy == "no_borrow" or alone.rollout_idle_share is None or alone.train_idle_share is None:
        return ""
    return f"; without lending {percent(alone.rollout_idle_share)} and {percent(alone.train_idle_share)}"


def times(row: Replayed, chosen: Replayed) -> str:
    """How many times as fast the chosen run is; runs of no time are as fast."""
    return f"{row.makespan_s / chosen.makespan_s:.3f}" if chosen.makespan_s else "1.000"


def decisions(solution: BidirlSolution) -> dict[str, Json]:
    """What a job is started with; from what backlog on pools are lent follows from it."""
    return {
        "rollout_gpus": solution.rollout_gpus,
        "train_gpus": solution.train_gpus,
        "rollout_layout": solution.rollout_layout,
        "train_layout": solution.train_layout,
        "policy": solution.policy,
    }


def metrics(solution: BidirlSolution) -> dict[str, Json]:
    """The recomputable figures; of the replay the recommended policy, and the makespan of each."""
    rows = solution.simulation or {}
    chosen = rows.get(solution.policy or "")
    return {
        **(solution.thresholds.model_dump() if solution.thresholds is not None else {}),
        "objective_s": solution.objective_s,
        "rollout_time_s": solution.rollout_time_s,
        "train_time_s": solution.train_time_s,
        "period_s": solution.period_s,
        "lambda_pipe_groups_per_s": solution.lambda_pipe_groups_per_s,
        "fractional_bound_s": solution.fractional_bound_s,
        "makespan_s": {name: row.makespan_s for name, row in rows.items()},
        "step_period_s": None if chosen is None else chosen.step_period_s,
        "rollout_idle_share": None if chosen is None else chosen.rollout_idle_share,
        "train_idle_share": None if chosen is None else chosen.train_idle_share,
    }
