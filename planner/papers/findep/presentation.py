"""What people and programs read off a FinDEP plan: summary, warnings, memory by cause, shares by source."""

from __future__ import annotations

from collections.abc import Iterator

from planner.derivation.shares import by_source
from planner.json_text import Json
from planner.memory.near_capacity import NEAR_CAPACITY
from planner.paper import MemoryRow, Warned
from planner.papers.findep.cautions import cautions_of
from planner.papers.findep.larger_box import binding_maxima
from planner.papers.findep.pictures import RESOURCES, memory_table, resources, timelines
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.residency import attention_bytes_by_cause, expert_bytes_by_cause
from planner.papers.findep.solution import FindepSolution
from planner.papers.findep.space import obeys
from planner.papers.findep.tasks import split_of, tasks_of
from planner.units import amount, in_bytes, percent, seconds
from planner.view import View

SAME = 1e-9
"""A bound so near, relative, is met."""


def shares(problem: FindepProblem, solution: FindepSolution) -> dict[str, float]:
    """Fraction of the busy seconds of all resources by source."""
    return by_source((task.count * task.seconds, task.sources) for task in tasks_of(problem, solution))


def memory(problem: FindepProblem, solution: FindepSolution) -> list[MemoryRow]:
    """Bytes of an attention GPU and of the busiest expert GPU by cause; none where the problem states no memory."""
    held = problem.memory
    if held is None:
        return []
    split, m_a, r1 = split_of(problem, solution), solution.m_a, solution.r1
    pools = (
        ("attention GPU", attention_bytes_by_cause(held, split, m_a, r1), held.attention_capacity_bytes),
        ("expert GPU", expert_bytes_by_cause(problem, held, split, m_a, r1), held.expert_capacity_bytes),
    )
    return [
        MemoryRow(where, cause, amount, capacity)
        for where, causes, capacity in pools
        for cause, amount in sorted(causes.items())
    ]


def warnings(problem: FindepProblem, solution: FindepSolution) -> list[Warned]:
    """near_capacity, idle_expert_slots, search_box_binds, few_tokens; first what the costs say themselves."""
    return [
        *(Warned(code, text) for code, text in cautions_of(problem).items()),
        *_near_capacity(problem, solution),
        *_idle_expert_slots(problem, solution),
        *_search_box_binds(problem, solution),
        *_few_tokens(problem, solution),
    ]


def _near_capacity(problem: FindepProblem, solution: FindepSolution) -> Iterator[Warned]:
    for pool, used, capacity in _filled(problem, solution):
        if used > NEAR_CAPACITY * capacity:
            yield Warned(
                "near_capacity",
                f"the {pool} is planned at {used / capacity:.1%} of its memory, which the model counts without "
                "fragmentation: measure one step, or plan with a larger reserve",
            )


def _idle_expert_slots(problem: FindepProblem, solution: FindepSolution) -> Iterator[Warned]:
    split = split_of(problem, solution)
    hosted = problem.hosted_experts(split)
    slots = hosted * split.expert_gpus
    if slots > problem.num_experts:
        yield Warned(
            "idle_expert_slots",
            f"{slots - problem.num_experts} of {slots} expert slots idle, since the GPUs with {hosted} experts set "
            f"the pace: {_about_even_splits(problem)}",
        )


def _about_even_splits(problem: FindepProblem) -> str:
    even = [s for s in problem.splits if problem.num_experts % s.expert_gpus == 0 and obeys(problem, s)]
    if not even:
        return f"offer a split whose expert_gpus divides {problem.num_experts}"
    return "none of the splits offered whose GPUs all hold as many gives more"


def _search_box_binds(problem: FindepProblem, solution: FindepSolution) -> Iterator[Warned]:
    if maxima := binding_maxima(problem, solution):
        ends = " and ".join(f"search.{name} = {most}" for name, most in maxima.items())
        yield Warned(
            "search_box_binds",
            f"the plan ends at {ends}, not at memory or time: a larger one may give a better plan",
        )


def _few_tokens(problem: FindepProblem, solution: FindepSolution) -> Iterator[Warned]:
    experts = problem.expert_cost(split_of(problem, solution))
    # Costs with sources are rows of whole batches: they hold already that few tokens reach few experts.
    stated = experts.sources is None or experts.sources.stated > 0
    if stated and problem.search.token_rounding == "real" and solution.tokens_per_expert_chunk < 1:
        yield Warned(
            "few_tokens",
            f"a chunk has {solution.tokens_per_expert_chunk:.3g} tokens an expert, but kernels see whole ones: set "
            "search.token_rounding to ceil",
        )


def _filled(problem: FindepProblem, solution: FindepSolution) -> list[tuple[str, float, float]]:
    """Bytes and capacity of each pool's fullest GPU."""
    rows = memory(problem, solution)
    pools = dict.fromkeys((row.where, row.capacity_bytes) for row in rows)
    return [(where, sum(row.bytes for row in rows if row.where == where), capacity) for where, capacity in pools]


def summary(problem: FindepProblem, solution: FindepSolution) -> list[str]:
    """Lines about the schedule."""
    batch = solution.r1 * solution.m_a * solution.attention_gpus * problem.tokens_per_sample
    pace = [f"{_many(batch, 'token')} pass {_many(problem.num_layers, 'layer')} in {seconds(solution.makespan_s)}"]
    steady = solution.timeline.steady
    if steady is not None:
        pace.append(f"once steady a layer takes {seconds(steady.period_s / steady.cycle_layers)}")
    if problem.objective != "tokens_per_s":
        pace.append(amount(batch / solution.makespan_s, "tokens/s"))
    lines = [
        f"{_many(solution.attention_gpus, 'attention GPU')} (AG), {_many(solution.expert_gpus, 'expert GPU')} (EG); "
        f"{_order(problem, solution)}",
        f"m_a {_many(solution.m_a, 'sample')} on each AG, r1 {_many(solution.r1, 'micro-batch')}, "
        f"r2 {_many(solution.r2, 'chunk')} of {_many(solution.tokens_per_expert_chunk, 'token')} an expert",
        "; ".join(pace),
        "idle: " + ", ".join(f"{name} {1 - _busy(solution, name):.1%}" for name in RESOURCES),
    ]
    filled = _filled(problem, solution)
    if filled:
        pools = (f"{pool} {in_bytes(used)} of {in_bytes(capacity)}" for pool, used, capacity in filled)
        lines.append(f"memory: {', '.join(pools)}")
    return [*lines, _any_order(solution)]


def _order(problem: FindepProblem, solution: FindepSolution) -> str:
    if problem.shared_expert is None:
        return f"{solution.order} (no shared experts: both orders are one)"
    if solution.order == "AASS":
        return "AASS: all attention of a layer, then its shared experts"
    return "ASAS: each shared expert right after its attention"


def _any_order(solution: FindepSolution) -> str:
    """How far the plan is, at most, from any other of the search, whatever the order of its tasks."""
    left = solution.free_order_bound / solution.objective - 1
    better = f"more than {percent(left)} better" if left > SAME else "better"
    return f"no order of the tasks, in this or any other plan of the search, can be {better}"


def _busy(solution: FindepSolution, resource: str) -> float:
    # Sums of task times round: a resource that never rests may come out a hair above the makespan.
    return min(1.0, float(getattr(solution.utilisation, resource)))


def _many(count: float, noun: str) -> str:
    plural = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count:,.0f} {noun}{plural}" if count == int(count) else f"{count:,.4g} {noun}{plural}"


def decisions(solution: FindepSolution) -> dict[str, Json]:
    """What a runtime is told."""
    return {
        "attention_gpus": solution.attention_gpus,
        "expert_gpus": solution.expert_gpus,
        "m_a": solution.m_a,
        "r1": solution.r1,
        "r2": solution.r2,
        "order": solution.order,
    }


def metrics(solution: FindepSolution) -> dict[str, Json]:
    """The recomputable figures; of the steady part its period, null where every layer is listed."""
    steady = solution.timeline.steady
    return {
        "makespan_s": solution.makespan_s,
        "objective": solution.objective,
        "period_s": None if steady is None else steady.period_s,
        "cycle_layers": None if steady is None else steady.cycle_layers,
        "utilisation": solution.utilisation.model_dump(),
        "attention_memory_bytes": solution.attention_memory_bytes,
        "expert_memory_bytes": solution.expert_memory_bytes,
        "free_order_bound": solution.free_order_bound,
        "tokens_per_expert_chunk": solution.tokens_per_expert_chunk,
    }


def view(problem: FindepProblem, solution: FindepSolution) -> View:
    """The schedule as a picture, then what each resource does and what fills the memory."""
    rows = memory(problem, solution)
    tables = [resources(problem, solution)] + ([memory_table(rows)] if rows else [])
    return View((*timelines(problem, solution), *tables))
