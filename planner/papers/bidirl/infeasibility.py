"""Why no split is possible (page, section 4), and the least change of one field that makes one possible.

Whatever change is named was solved again before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from planner.errors import InfeasibleError, Relaxation
from planner.papers.bidirl.exclusions import RULES, excluded, finest_steps, unlisted_replicas
from planner.papers.bidirl.layouts import fits
from planner.papers.bidirl.more_gpus import next_gpus
from planner.papers.bidirl.problem import BidirlProblem, Role, RolloutLayout, TrainLayout
from planner.papers.bidirl.search import best_split
from planner.papers.bidirl.splits import Split
from planner.papers.bidirl.warned.words import counted
from planner.units import in_bytes

SHOWN = 6
"""Layouts, and counts of replicas of each, that a message lists."""


def no_split(problem: BidirlProblem) -> InfeasibleError:
    """The error of a problem without an allowed split that both times are known of.

    ``rollout_memory_infeasible`` and ``train_memory_infeasible`` where no layout of a role fits, else
    ``time_not_in_table`` where splits are allowed, else ``no_compatible_split``.
    """
    roles: tuple[Role, ...] = ("rollout", "train")
    if full := [role for role in roles if not any(fits(problem, layout) for layout in problem.layouts(role))]:
        return _memory(problem, full)
    unlisted = unlisted_replicas(problem)
    return _not_in_table(problem, unlisted) if unlisted else _no_compatible(problem)


def _memory(problem: BidirlProblem, full: Sequence[Role]) -> InfeasibleError:
    """Of the first role that fits no GPU; the message speaks of all of them."""
    usable_bytes = problem.cluster.usable_bytes
    all_nearest = [_smallest(problem, role) for role in full]
    message = "; ".join(
        f"no {role} layout fits a GPU; nearest is {each.id[:60]} on {each.gpus} GPUs, "
        f"{in_bytes(each.memory_bytes - usable_bytes)} short"
        for role, each in zip(full, all_nearest, strict=True)
    )
    nearest = all_nearest[0]
    return InfeasibleError(
        message,
        code=f"{full[0]}_memory_infeasible",
        where="cluster.gpu_memory_bytes",
        required=nearest.memory_bytes,
        available=usable_bytes,
        unit="bytes",
        relaxation=_enough_memory(problem, nearest),
    )


def _smallest(problem: BidirlProblem, role: Role) -> RolloutLayout | TrainLayout:
    return min(problem.layouts(role), key=lambda layout: (layout.memory_bytes, layout.gpus, layout.id))


def _enough_memory(problem: BidirlProblem, nearest: RolloutLayout | TrainLayout) -> Relaxation:
    """The least memory at which a split is possible: what some layout needs, as only those change what fits."""
    kept = 1 - problem.cluster.memory_reserve_fraction
    layouts = (*problem.layouts("rollout"), *problem.layouts("train"))
    needs = sorted({each.memory_bytes for each in layouts if each.memory_bytes >= nearest.memory_bytes})

    def enough(needed_bytes: float) -> bool:
        cluster = problem.cluster.model_copy(update={"gpu_memory_bytes": needed_bytes / kept})
        return _solved(problem, cluster=cluster) is not None

    if problem.layout_policy == "all":
        least = bisect_left(needs, True, key=enough)
    else:
        # A smaller layout that comes to fit takes the place of one that splits.
        least = next((place for place, needed_bytes in enumerate(needs) if enough(needed_bytes)), len(needs))
    found = least < len(needs)
    needed_bytes = needs[least] if found else nearest.memory_bytes
    return Relaxation("cluster.gpu_memory_bytes", needed_bytes / kept, proven=found, enough=found)


def _not_in_table(problem: BidirlProblem, unlisted: dict[str, list[int]]) -> InfeasibleError:
    lists = [f"{name[:80]} {_listed(counts)}" for name, counts in unlisted.items()]
    more = f" and {len(lists) - SHOWN} more layouts" if len(lists) > SHOWN else ""
    relaxation, possible = _relaxations(problem)
    return InfeasibleError(
        "splits are allowed, but of none do the tables list the replicas of both roles; "
        f"they lack {'; '.join(lists[:SHOWN])}{more}{possible}",
        code="time_not_in_table",
        where="costs",
        relaxation=relaxation,
    )


def _no_compatible(problem: BidirlProblem) -> InfeasibleError:
    counts, steps = excluded(problem), finest_steps(problem)
    rule = max(RULES, key=lambda name: (counts[name], -RULES.index(name)))
    message = f"no split of {problem.cluster.gpus} GPUs is allowed; {rule} excludes most, {counts[rule]:,}"
    if steps is not None:
        message += (
            f"; at best rollout_gpus is a multiple of {steps.rollout} and train_gpus of {steps.train}"
            if steps.rollout != steps.train
            else f"; at best both pools are multiples of {steps.rollout}"
        )
    relaxation, possible = _relaxations(problem)
    return InfeasibleError(
        message + possible,
        code="no_compatible_split",
        where="cluster.gpus",
        relaxation=relaxation,
    )


def _relaxations(problem: BidirlProblem) -> tuple[Relaxation | None, str]:
    """The first change that makes a split possible, and all of them for the message."""
    found = list(_changes(problem))
    if not found:
        tried = (
            f"idle GPUs, more GPUs up to {2 * problem.cluster.gpus}, either direction off, other layouts, granularity"
        )
        return None, f"; none of these alone makes one possible: {tried}"
    return found[0][0], f"; possible with {' or '.join(words for _, words in found)}"


def _changes(problem: BidirlProblem) -> Iterator[tuple[Relaxation, str]]:
    """Changes of one field that make a split possible, in the order of the page, and words for them."""
    cluster, switch = problem.cluster, problem.hot_switch
    if not problem.allow_idle_gpus and (split := _solved(problem, allow_idle_gpus=True)):
        idle = cluster.gpus - split.rollout_gpus - split.train_gpus
        yield Relaxation("allow_idle_gpus", "true", proven=True), counted(idle, "idle GPU")
    gpus = next_gpus(problem)
    if gpus is not None and _solved(problem, cluster=cluster.model_copy(update={"gpus": gpus})):
        yield Relaxation("cluster.gpus", gpus, proven=True), f"{gpus} GPUs"
    for direction in ("rollout_on_train", "train_on_rollout"):
        without = switch.model_copy(update={direction: False})
        if without != switch and _solved(problem, hot_switch=without):
            yield Relaxation(f"hot_switch.{direction}", "false", proven=True), f"hot_switch.{direction} false"
    if problem.layout_policy == "minimal" and _solved(problem, layout_policy="all"):
        yield Relaxation("layout_policy", "all", proven=True), "layout_policy all"
    for finer in range(problem.split_granularity_gpus - 1, 0, -1):
        if problem.split_granularity_gpus % finer == 0 and _solved(problem, split_granularity_gpus=finer):
            yield Relaxation("split_granularity_gpus", finer, proven=False), f"split_granularity_gpus {finer}"
            return


def _solved(problem: BidirlProblem, **changes: object) -> Split | None:
    """The best split of a problem with other values in some fields."""
    return best_split(problem.model_copy(update=changes))


def _listed(counts: list[int]) -> str:
    return ", ".join(map(str, counts[:SHOWN])) + (" ..." if len(counts) > SHOWN else "")
