"""The tasks of one layer of a plan by kind: on what they run, how many, how long, priced by what."""

from __future__ import annotations

from dataclasses import dataclass

from planner.attribution import Sources
from planner.papers.findep.problem import FindepProblem, Split
from planner.papers.findep.solution import FindepSolution
from planner.papers.findep.times import task_times


@dataclass(frozen=True)
class Task:
    """One kind of task on one resource: ``count`` of them a layer, ``seconds`` each. ``sources`` None is stated."""

    resource: str
    name: str
    kind: str
    count: int
    seconds: float
    sources: Sources | None


def split_of(problem: FindepProblem, solution: FindepSolution) -> Split:
    """The split that a solution chose. Raises StopIteration where the problem has none such: the check says so."""
    pools = solution.attention_gpus, solution.expert_gpus
    return next(split for split in problem.splits if (split.attention_gpus, split.expert_gpus) == pools)


def tasks_of(problem: FindepProblem, solution: FindepSolution) -> tuple[Task, ...]:
    """All kinds in the order that a token meets them; shared experts only where there are some."""
    split = split_of(problem, solution)
    times = task_times(problem, split, solution.m_a, solution.r2)
    r1, chunks = solution.r1, solution.r1 * solution.r2
    shared, expert, e2a = problem.shared_expert, problem.expert_cost(split), split.e2a or split.a2e
    found = [Task("AG", "attention", "attention", r1, float(times.attention_s), problem.attention.sources)]
    if shared is not None:
        found.append(Task("AG", "shared expert", "shared expert", r1, float(times.shared_s), shared.sources))
    return (
        *found,
        Task("A2E", "dispatch", "transfer", chunks, float(times.a2e_s), split.a2e.sources),
        Task("EG", "experts", "expert", chunks, float(times.expert_s), expert.sources),
        Task("E2A", "combine", "transfer", chunks, float(times.e2a_s), e2a.sources),
    )
