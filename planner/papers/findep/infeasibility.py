"""Why a problem has no schedule (page, "When there is no plan"), and the least change that helps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.errors import InfeasibleError, Relaxation
from planner.papers.findep.problem import FindepProblem, Memory, Split
from planner.papers.findep.residency import TOLERANCE, attention_bytes, expert_bytes
from planner.papers.findep.scan import scan
from planner.papers.findep.space import Floats, Ints, micro_batches, obeys


def diagnose(problem: FindepProblem) -> InfeasibleError:
    """The error of a problem that nothing satisfies.

    The first that binds of launcher_rules, attention_memory or expert_memory, makespan_limit.
    """
    legal = [split for split in problem.splits if obeys(problem, split)]
    if not micro_batches(problem):
        return _too_few_micro_batches(problem)
    if not legal:
        return InfeasibleError(
            f"no split obeys launcher_rules {problem.launcher_rules}: it wants attention_gpus >= expert_gpus, and "
            "expert_gpus to divide attention_gpus",
            code="launcher_rules",
            where="splits",
        )
    if problem.memory is not None:
        lightest = [_need(problem, problem.memory, split) for split in legal]
        if all(need.violated for need in lightest):
            return _memory_error(min(lightest, key=lambda need: (len(need.violated), need.ratio)))
    return _limit_error(problem)


def _too_few_micro_batches(problem: FindepProblem) -> InfeasibleError:
    """The relaxation is named only where it is enough: memory, splits or a limit may forbid two micro-batches too."""
    search = problem.search.model_copy(update={"max_r1": 2})
    helps = scan(problem.model_copy(update={"search": search})).best is not None
    return InfeasibleError(
        f"launcher_rules {problem.launcher_rules} runs two micro-batches, the search allows one",
        code="launcher_rules",
        where="search.max_r1",
        required=2,
        available=problem.search.max_r1,
        relaxation=Relaxation("search.max_r1", 2, proven=True) if helps else None,
    )


class _Need(NamedTuple):
    """What the lightest load takes of each pool of a split: bytes and capacity by pool, and the violated pools."""

    split: Split
    bytes: dict[str, float]
    capacity: dict[str, float]
    violated: list[str]
    r1: int

    @property
    def ratio(self) -> float:
        return max(self.share(pool) for pool in self.violated)

    def share(self, pool: str) -> float:
        """Need over capacity."""
        return self.bytes[pool] / self.capacity[pool] if self.capacity[pool] else np.inf


def _need(problem: FindepProblem, memory: Memory, split: Split) -> _Need:
    r1 = micro_batches(problem)[0]
    needed = {
        "attention": float(attention_bytes(memory, split, 1, r1)),
        "expert": float(expert_bytes(problem, memory, split, 1, r1)),
    }
    capacity = {"attention": memory.attention_capacity_bytes, "expert": memory.expert_capacity_bytes}
    violated = [pool for pool, amount in needed.items() if amount > capacity[pool] * (1 + TOLERANCE)]
    return _Need(split, needed, capacity, violated, r1)


def _memory_error(need: _Need) -> InfeasibleError:
    """Of the split that comes nearest its worse pool; enough if the other one fits."""
    pool = max(need.violated, key=need.share)
    other = [name for name in need.violated if name != pool]
    field = f"memory.{pool}_capacity_bytes"
    split = need.split
    also = f" (its {other[0]} GPUs are too small as well)" if other else ""
    return InfeasibleError(
        f"the lightest load, one sample in {need.r1} micro-batch{'es' if need.r1 > 1 else ''}, fits the {pool} GPUs of "
        f"no split; the nearest is {split.attention_gpus} attention and {split.expert_gpus} expert GPUs{also}",
        code=f"{pool}_memory",
        where=field,
        required=need.bytes[pool],
        available=need.capacity[pool],
        unit="bytes",
        relaxation=Relaxation(field, need.bytes[pool], proven=not other, enough=not other),
    )


def _limit_error(problem: FindepProblem) -> InfeasibleError:
    fastest = scan(problem.model_copy(update={"makespan_limit_s": None}), goal=_one_pass).best
    if fastest is None or problem.makespan_limit_s is None:
        raise AssertionError("a problem with room and without a limit has a schedule")
    split = problem.splits[fastest.split]
    field = "makespan_limit_s"
    return InfeasibleError(
        f"no schedule ends within makespan_limit_s; the fastest has m_a={fastest.m_a}, r1={fastest.r1}, "
        f"r2={fastest.r2}, {fastest.order} on {split.attention_gpus} attention and {split.expert_gpus} expert GPUs",
        code="makespan_limit",
        where=field,
        required=fastest.makespan_s,
        available=problem.makespan_limit_s,
        unit="s",
        relaxation=Relaxation(field, fastest.makespan_s, proven=True),
    )


def _one_pass(problem: FindepProblem, split: Split, m_a: Ints, r1: Ints) -> Floats:
    """A goal that only the makespan decides."""
    del problem, split
    return np.ones(np.broadcast_shapes(m_a.shape, np.shape(r1)))
