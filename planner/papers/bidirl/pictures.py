"""What there is to see in a BiDiRL plan: pools, splits, policies and who waits, a few steps, bytes, settings."""

from __future__ import annotations

from collections.abc import Iterator

from planner.paper import MemoryRow
from planner.papers.bidirl.launch_settings import launched, lending_rules
from planner.papers.bidirl.partition_sweep import partition_sweep
from planner.papers.bidirl.presentation import memory, split_of, times
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.run_picture import run_pictures
from planner.papers.bidirl.search import Space, space_of
from planner.papers.bidirl.solution import POLICIES, BidirlSolution, Policy, Replayed
from planner.papers.bidirl.split_figures import figures_of
from planner.papers.bidirl.splits import Split
from planner.papers.bidirl.sweep import even_split
from planner.units import in_bytes, seconds
from planner.view import Bar, Bars, Segment, Table, Timeline, View

UNKNOWN = "-"


def view(problem: BidirlProblem, solution: BidirlSolution) -> View:
    """The pools, what other splits cost, the policies, a few steps with and without lending, bytes, what is told."""
    split, space = split_of(problem, solution), space_of(problem)
    rows = solution.simulation or {}
    return View(
        (
            _pools(problem, split),
            partition_sweep(problem, space, split),
            *_policies(problem, solution, rows),
            *_idle(problem, space, split, rows),
            *_runs(problem, solution, split),
            _memory_table(memory(problem, solution)),
            _settings(problem, solution, split),
        )
    )


def _pools(problem: BidirlProblem, split: Split) -> Table:
    """What each pool is, and what a batch takes there."""
    figures, rollout, both = figures_of(problem, split), split.rollout_gpus, split.rollout_gpus + split.train_gpus
    rows = [
        ("rollout", _ids(0, rollout), split.rollout.id, split.rollout_replicas, figures.rollout_s, split.train_helpers),
        ("train", _ids(rollout, both), split.train.id, split.train_replicas, figures.train_s, split.rollout_helpers),
    ]
    cells = tuple(
        (pool, ids, layout, f"{d:,}", seconds(took_s), f"{lent:,}") for pool, ids, layout, d, took_s, lent in rows
    )
    return Table("pools", ("pool", "GPUs", "layout", "replicas", "a batch", "replicas if lent"), cells)


def _ids(first: int, end: int) -> str:
    return f"{first}" if end - first == 1 else f"{first}-{end - 1}"


def _policies(problem: BidirlProblem, solution: BidirlSolution, rows: dict[str, Replayed]) -> Iterator[Table]:
    """The replay of every policy beside the recommended one, which is marked."""
    chosen = rows.get(solution.policy or "")
    if chosen is None:
        return
    cells = tuple(
        (
            f"{name} *" if name == solution.policy else name,
            seconds(row.makespan_s),
            times(row, chosen),
            seconds(row.step_period_s),
            _share(row.rollout_idle_share),
            _share(row.train_idle_share),
            _count(row.rollout_pool_lent),
            _count(row.train_pool_lent),
        )
        for name, row in ((policy, rows[policy]) for policy in POLICIES if policy in rows)
    )
    columns = ("policy", "run", "ratio", "a step", "R idle", "T idle", "R lent", "T lent")
    yield Table(f"replay of {problem.simulation.steps:,} steps, * recommended", columns, cells)


def _share(share: float | None) -> str:
    return UNKNOWN if share is None else f"{share:.1%}"


def _count(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}" if number else ""


def _idle(problem: BidirlProblem, space: Space, planned: Split, rows: dict[str, Replayed]) -> Iterator[Bars]:
    """Of the time of all GPUs of both pools, what each pool has nothing to do, by policy."""
    bars = []
    for policy in POLICIES:
        row = rows.get(policy)
        if row is None or row.rollout_idle_share is None or row.train_idle_share is None:
            continue
        split = (even_split(problem, space) or planned) if policy == "half_split" else planned
        both = split.rollout_gpus + split.train_gpus
        rollout = 100 * row.rollout_idle_share * split.rollout_gpus / both
        train = 100 * row.train_idle_share * split.train_gpus / both
        segments = tuple(
            Segment(kind, amount) for kind, amount in (("rollout pool", rollout), ("train pool", train)) if amount > 0
        )
        bars.append(Bar(policy, segments, f"{rollout + train:.1f} %"))
    if any(bar.segments for bar in bars):
        yield Bars("idle share of GPU time", tuple(bars), "%", ("rollout pool", "train pool"))


def _runs(problem: BidirlProblem, solution: BidirlSolution, split: Split) -> list[Timeline]:
    """Some steps without lending, and under the recommended policy where that is another."""
    policies: list[Policy] = ["no_borrow"]
    if solution.policy is not None and solution.policy != "no_borrow":
        policies.append(solution.policy)
    return run_pictures(problem, split, policies)


def _memory_table(rows: list[MemoryRow]) -> Table:
    """Bytes of the fullest GPU of each pool by cause."""
    cells = tuple((row.where, row.cause, in_bytes(row.bytes), f"{row.bytes / row.capacity_bytes:.1%}") for row in rows)
    return Table("bytes of a GPU", ("pool", "cause", "bytes", "share"), cells)


def _settings(problem: BidirlProblem, solution: BidirlSolution, split: Split) -> Table:
    """The split for each runtime, and when to lend for whoever implements it."""
    rows: list[tuple[str, str]] = []
    for one in launched(problem, split):
        lines = one.settings if one.broken is None else (f"cannot be told: {one.broken}",)
        rows += [(one.runtime if not place else "", line) for place, line in enumerate(lines)]
    rows += [("lending" if not place else "", line) for place, line in enumerate(lending_rules(problem, solution))]
    return Table("as a runtime is told it", ("runtime", "settings"), tuple(rows))
