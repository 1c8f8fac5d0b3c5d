"""A replay written as the page words it, task by task in plain Python, and a search that leaves nothing out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from planner.papers.findep.problem import FindepProblem, Split
from planner.papers.findep.times import task_times

Durations = tuple[float, float, float, float, float]


def makespan_s(num_layers: int, r1: int, r2: int, order: str, durations: Durations) -> float:
    """Start every task as early as equation 5 and the order allow; the last end."""
    t_a, t_s, t_x, t_e, t_y = durations
    free = dict.fromkeys(("AG", "A2E", "EG", "E2A"), 0.0)
    a_end: dict[int, float] = {}
    done = [0.0] * r1

    def run(resource: str, ready: float, duration: float) -> float:
        free[resource] = max(free[resource], ready) + duration
        return free[resource]

    for _ in range(num_layers):
        ready, done = done, [0.0] * r1
        for kind, i in attention_sequence(r1, order, t_s > 0):
            if kind == "a":
                a_end[i] = run("AG", ready[i], t_a)
            else:
                done[i] = run("AG", a_end[i], t_s)
        for i, _j in product(range(r1), range(r2)):
            x_end = run("A2E", a_end[i], t_x)
            e_end = run("EG", x_end, t_e)
            done[i] = max(done[i], run("E2A", e_end, t_y))
    return max(free.values())


def attention_sequence(r1: int, order: str, shared: bool) -> list[tuple[str, int]]:
    """The tasks of one layer on the attention GPU."""
    a, s = [("a", i) for i in range(r1)], [("s", i) for i in range(r1)] if shared else []
    return a + s if order == "AASS" else [task for i in range(r1) for task in (a[i : i + 1] + s[i : i + 1])]


def durations_of(problem: FindepProblem, split: Split, m_a: int, r2: int) -> Durations:
    times = task_times(problem, split, m_a, r2)
    kinds = (times.attention_s, times.shared_s, times.a2e_s, times.expert_s, times.e2a_s)
    a, s, x, e, y = (float(value) for value in kinds)
    return a, s, x, e, y


def everything(problem: FindepProblem) -> Iterator[tuple[float, float, tuple[int, int, int, int, int, str]]]:
    """(objective, makespan, (ag, eg, m_a, r1, r2, order)) of all that memory, rules and limit allow."""
    for split, m_a, r1 in product(
        problem.splits, range(1, problem.search.max_m_a + 1), range(1, problem.search.max_r1 + 1)
    ):
        ag, eg = split.attention_gpus, split.expert_gpus
        if problem.launcher_rules == "vllm_afd" and (r1 != 2 or ag < eg or ag % eg):
            continue
        if not fits(problem, split, m_a, r1):
            continue
        most = min(problem.search.max_r2, m_a * problem.tokens_per_sample)
        for r2, order in product(
            range(1, (1 if problem.launcher_rules == "vllm_afd" else most) + 1), problem.search.orders
        ):
            D = makespan_s(problem.num_layers, r1, r2, order, durations_of(problem, split, m_a, r2))
            if problem.makespan_limit_s is not None and problem.makespan_limit_s * (1 + 1e-9) < D:
                continue
            worth = r1 * m_a * ag * problem.tokens_per_sample / D
            per = 1 if problem.objective == "tokens_per_s" else ag + eg
            yield worth / per, D, (ag, eg, m_a, r1, r2, order)


def fits(problem: FindepProblem, split: Split, m_a: int, r1: int) -> bool:
    """Equation 10, amounts added up here."""
    memory = problem.memory
    if memory is None:
        return True

    def amount(value: object) -> float:
        return sum(value.values()) if isinstance(value, dict) else float(value)  # type: ignore[arg-type]

    own = split.attention_bytes_per_sample
    resident = amount(memory.attention_bytes_per_sample if own is None else own)
    attention = amount(memory.attention_fixed_bytes) + r1 * m_a * resident
    attention += m_a * amount(memory.attention_workspace_bytes_per_sample)
    h = -(-problem.num_experts // split.expert_gpus)
    copies = r1 * m_a * split.attention_gpus * problem.top_k * problem.tokens_per_sample / problem.num_experts * h
    expert = amount(memory.expert_fixed_bytes) + h * amount(memory.expert_bytes_per_expert)
    expert += copies * amount(memory.expert_buffer_bytes_per_token)
    slack = 1 + 1e-9
    return attention <= memory.attention_capacity_bytes * slack and expert <= memory.expert_capacity_bytes * slack


def preferred(candidates: list[tuple[float, float, tuple[int, int, int, int, int, str]]]) -> tuple[object, ...]:
    """The page's tie rule: fewer GPUs, smaller ag, r1 m_a, r1, r2, then AASS."""
    best = max(objective for objective, _, _ in candidates)
    equal = [plan for objective, _, plan in candidates if objective >= best * (1 - 1e-9)]
    return min(equal, key=lambda p: (p[0] + p[1], p[0], p[3] * p[2], p[3], p[4], p[5]))
