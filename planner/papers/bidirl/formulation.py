"""The reference (page, section 4): every layout pair with every two pools, its replicas laid out GPU by GPU.

Plain loops over the page's own words, slow and short. Nothing of the search takes part, nor its stage times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf
from typing import TypeVar

from planner.errors import LimitError
from planner.papers.bidirl.problem import (
    AnyTime,
    BidirlProblem,
    Lengths,
    Linear,
    RolloutLayout,
    Table,
    TrainLayout,
)
from planner.papers.bidirl.splits import Split

EQUAL = 1 + 1e-9
"""Figures within this ratio tie."""
ROUNDED = 1 + 1e-12
"""What rounding may put above a capacity."""
MOST_TRIED = 200_000
"""Splits, allowed or not, that are tried one by one."""

L = TypeVar("L", RolloutLayout, TrainLayout)


@dataclass(frozen=True)
class Timed:
    """An allowed split and what it takes."""

    split: Split
    rollout_s: float
    train_s: float
    objective_s: float


def exhausted(problem: BidirlProblem) -> Split | None:
    """The split of the page, ties by its rule; None where none is allowed and timed. Raises LimitError."""
    left = list(enumerated(problem))
    for key in (_objective, _total):
        least = min(map(key, left), default=0.0)
        left = [one for one in left if key(one) <= least * EQUAL]
    return min(left, key=_order).split if left else None


def enumerated(problem: BidirlProblem) -> Iterator[Timed]:
    """Every allowed split whose times are known. Raises LimitError where there are too many to try one by one."""
    rollouts = _usable(problem, problem.costs.rollout_layouts)
    trains = _usable(problem, problem.costs.train_layouts)
    gpus = problem.cluster.gpus
    tried = len(rollouts) * len(trains) * gpus * (gpus if problem.allow_idle_gpus else 1)
    if tried > MOST_TRIED:
        message = f"method exhaustive tries splits one by one, {tried:,} here, and stops at {MOST_TRIED:,}"
        raise LimitError(message, code="too_large", where="cluster.gpus")
    for rollout in rollouts:
        for train in trains:
            for rollout_gpus in range(1, gpus):
                most = gpus - rollout_gpus
                for train_gpus in range(1, most + 1) if problem.allow_idle_gpus else (most,):
                    split = Split(rollout_gpus, train_gpus, rollout, train)
                    if is_allowed(problem, split):
                        timed = _timed(problem, split)
                        if timed.objective_s < inf:
                            yield timed


def is_allowed(problem: BidirlProblem, split: Split) -> bool:
    """Whether (3) and (4) hold, with the replicas of every pool laid out, lent ones too."""
    pool_r = list(range(split.rollout_gpus))
    pool_t = list(range(split.rollout_gpus, split.rollout_gpus + split.train_gpus))
    wanted = [(pool_r, split.rollout.gpus), (pool_t, split.train.gpus)]
    if problem.hot_switch.rollout_on_train:
        wanted.append((pool_t, split.rollout.gpus))
    if problem.hot_switch.train_on_rollout:
        wanted.append((pool_r, split.train.gpus))
    of_node = problem.cluster.gpus_per_node
    fine = split.rollout_gpus % problem.split_granularity_gpus == 0
    return fine and all(_lies_whole(pool, size, of_node) for pool, size in wanted)


def _lies_whole(pool: list[int], size: int, of_node: int) -> bool:
    """Whether replicas fill the pool without rest, each one of equal parts of a node, or whole nodes."""
    replicas = [pool[start : start + size] for start in range(0, len(pool), size)]
    return all(len(replica) == size and _keeps_nodes(replica, of_node) for replica in replicas)


def _keeps_nodes(replica: list[int], of_node: int) -> bool:
    size, nodes = len(replica), sorted({gpu // of_node for gpu in replica})
    whole = [node * of_node + place for node in nodes for place in range(of_node)]
    if len(nodes) > 1:
        return replica == whole
    parts = [whole[start : start + size] for start in range(0, of_node, size)]
    return replica in parts and all(len(part) == size for part in parts)


def _usable(problem: BidirlProblem, layouts: tuple[L, ...]) -> list[L]:
    cluster = problem.cluster
    bytes_ = cluster.gpu_memory_bytes * (1 - cluster.memory_reserve_fraction) * ROUNDED
    fitting = [layout for layout in layouts if layout.memory_bytes <= bytes_]
    if problem.layout_policy == "all" or not fitting:
        return fitting
    return [min(fitting, key=lambda layout: (layout.gpus, layout.memory_bytes, layout.id))]


def _timed(problem: BidirlProblem, split: Split) -> Timed:
    rollout_s = time_s(problem, split.rollout.time, problem.batch.prompt_groups, split.rollout_replicas)
    train_s = time_s(problem, split.train.time, problem.batch.train_chunks, split.train_replicas)
    return Timed(split, rollout_s, train_s, _judged_s(problem, split, rollout_s, train_s))


def time_s(problem: BidirlProblem, time: AnyTime, whole: int, replicas: int) -> float:
    """Seconds of a whole batch on so many replicas (page, section 3.2); infinite where a table does not list them."""
    longest = problem.batch.max_response_tokens
    if isinstance(time, Linear):
        return time.alpha_s + time.beta_s / replicas + time.gamma_s_per_token * longest
    if isinstance(time, Table):
        return dict(zip(time.replicas, time.time_s, strict=True)).get(replicas, inf)
    if isinstance(time, Lengths):
        sequences = ceil(whole / replicas) * problem.batch.responses_per_group
        at_once = min(time.concurrency, sequences)
        step_s = time.step_base_s + time.step_per_sequence_s * at_once
        prefill_s = sequences * time.prompt_tokens * time.prefill_s_per_token
        return time.alpha_s + prefill_s + step_s * max(longest, sequences * time.mean_response_tokens / at_once)
    return sum(stage.fixed_s + ceil(stage.chunks / replicas) * stage.chunk_s for stage in time.stages)


def _judged_s(problem: BidirlProblem, split: Split, rollout_s: float, train_s: float) -> float:
    """(1) or (2)."""
    staleness, sync_s = problem.staleness, problem.costs.weight_sync_s
    if problem.objective == "lambda_pipe":
        return max(rollout_s, train_s)
    if staleness >= 1:
        return sync_s + max(rollout_s, train_s)
    if staleness == 0:
        return sync_s + rollout_s + train_s
    time, tail_s, bulk_s = split.rollout.time, 0.0, rollout_s
    if isinstance(time, Linear):
        bulk_s = time.beta_s / split.rollout_replicas
        tail_s = time.gamma_s_per_token * problem.batch.max_response_tokens
    return sync_s + max(rollout_s, train_s + (1 - staleness) * bulk_s + tail_s)


def _objective(one: Timed) -> float:
    return one.objective_s


def _total(one: Timed) -> float:
    return one.rollout_s + one.train_s


def _order(one: Timed) -> tuple[int, int, int, int, str, str]:
    split = one.split
    rollout, train = split.rollout, split.train
    return (
        split.rollout_gpus + split.train_gpus,
        rollout.gpus,
        train.gpus,
        split.rollout_gpus,
        rollout.id,
        train.id,
    )
