"""The independent check of a plan (page, "Check"), from problem and solution alone.

Nothing that planned takes part: seconds, tokens, bytes and the bound are computed again from the page. A task may start
later than it could, on the links also out of turn, as long as the stated makespan agrees with the last end.
"""

from __future__ import annotations

import numpy as np

from planner.findings import Findings
from planner.paper import Violation
from planner.papers.findep.check_bound import best_possible
from planner.papers.findep.check_facts import (
    TOLERANCE,
    Durations,
    agree,
    attention_bytes,
    durations,
    expert_bytes,
    tokens_per_pass,
)
from planner.papers.findep.check_order import check_starts, last_end_s
from planner.papers.findep.check_replay import earliest_end_s
from planner.papers.findep.check_timeline import read_starts
from planner.papers.findep.problem import FindepProblem, Split
from planner.papers.findep.solution import FindepSolution

VIOLATIONS: tuple[str, ...] = (
    "unknown_split",
    "not_an_integer",
    "m_a_range",
    "r1_range",
    "r2_range",
    "order_not_allowed",
    "launcher_rules",
    "chunk_tokens_mismatch",
    "attention_memory",
    "expert_memory",
    "memory_mismatch",
    "timeline_missing",
    "timeline_shape",
    "timeline_incomplete",
    "negative_start",
    "overlap_AG",
    "overlap_A2E",
    "overlap_EG",
    "overlap_E2A",
    "precedence_shared",
    "precedence_a2e",
    "precedence_expert",
    "precedence_e2a",
    "precedence_next_layer",
    "order_violation",
    "makespan_mismatch",
    "makespan_limit",
    "objective_mismatch",
    "utilisation_mismatch",
    "free_order_bound_mismatch",
)
"""Every code the check can report, in the order it reports them."""


def check(problem: FindepProblem, solution: FindepSolution) -> list[Violation]:
    """Everything the solution says that the problem refutes; empty for a correct plan. At most 100 of each code.

    Where the decision is not one the problem offers, that alone is reported: nothing else can be recomputed.

    Figures agree within 1e-9 relative; starts may be 1e-6 of the makespan too early.
    """
    found = Findings()
    # Starts of any size may be stated; what overflows disagrees with every stated figure.
    with np.errstate(over="ignore", invalid="ignore"):
        split = _check_decision(problem, solution, found)
        if split is not None:
            times = durations(problem, split, np.array(solution.m_a), np.array(solution.r2))
            _check_memory(problem, solution, split, times, found)
            _check_schedule(problem, solution, split, times, found)
    return found.in_order(VIOLATIONS)


def _check_decision(problem: FindepProblem, solution: FindepSolution, found: Findings) -> Split | None:
    """The split that was chosen; None where the decision is outside the problem's box."""
    box, rules = problem.search, problem.launcher_rules
    pools = (solution.attention_gpus, solution.expert_gpus)
    split = next((s for s in problem.splits if (s.attention_gpus, s.expert_gpus) == pools), None)
    if split is None:
        found.add("unknown_split", f"the problem has no split of {pools[0]} and {pools[1]} GPUs", "attention_gpus")
    for name in ("m_a", "r1", "r2"):
        value = getattr(solution, name)
        if not isinstance(value, int) or isinstance(value, bool):
            found.add("not_an_integer", f"expected an integer, got {value!r}", name)
    if solution.order not in box.orders:
        found.add("order_not_allowed", f"expected one of {', '.join(box.orders)}, got {solution.order}", "order")
    if "not_an_integer" in found.listed:
        return None
    chunks = min(box.max_r2, max(1, solution.m_a) * problem.tokens_per_sample)
    for name, value, most in (
        ("m_a", solution.m_a, box.max_m_a),
        ("r1", solution.r1, box.max_r1),
        ("r2", solution.r2, chunks),
    ):
        if not 1 <= value <= most:
            found.add(f"{name}_range", f"expected 1 to {most}, got {value}", name)
    if rules == "vllm_afd":
        _check_launcher_rules(solution, found)
    return None if {"m_a_range", "r1_range", "r2_range"} & found.listed.keys() else split


def _check_launcher_rules(solution: FindepSolution, found: Findings) -> None:
    ag, eg = solution.attention_gpus, solution.expert_gpus
    if (solution.r1, solution.r2) != (2, 1):
        message = f"vllm_afd runs r1 = 2 micro-batches in r2 = 1 chunk, got {solution.r1} and {solution.r2}"
        found.add("launcher_rules", message, "r1")
    if ag < eg or eg < 1 or ag % eg:
        message = f"vllm_afd needs attention_gpus to be a multiple of expert_gpus, got {ag} and {eg}"
        found.add("launcher_rules", message, "attention_gpus")


def _check_memory(
    problem: FindepProblem, solution: FindepSolution, split: Split, times: Durations, found: Findings
) -> None:
    """Tokens of a chunk, and the bytes of both pools."""
    if not agree(solution.tokens_per_expert_chunk, float(times.m_e)):
        message = f"stated {solution.tokens_per_expert_chunk!r}, recomputed {float(times.m_e)!r}"
        found.add("chunk_tokens_mismatch", message, "tokens_per_expert_chunk")
    memory, m_a, r1 = problem.memory, np.array(solution.m_a), np.array(solution.r1)
    pools: tuple[tuple[str, float | None, float | None, float], ...]
    if memory is None:
        pools = (
            ("attention", solution.attention_memory_bytes, None, 0.0),
            ("expert", solution.expert_memory_bytes, None, 0.0),
        )
    else:
        held = float(attention_bytes(memory, split, m_a, r1))
        pools = (("attention", solution.attention_memory_bytes, held, memory.attention_capacity_bytes),)
        held = float(expert_bytes(problem, memory, split, m_a, r1))
        pools += (("expert", solution.expert_memory_bytes, held, memory.expert_capacity_bytes),)
    for pool, stated, needed, capacity in pools:
        if needed is not None and needed > capacity * (1 + TOLERANCE):
            message = f"an {pool} GPU holds {needed:.17g} bytes, expected at most {capacity:.17g}"
            found.add(f"{pool}_memory", message, f"{pool}_memory_bytes")
        same = stated is needed if stated is None or needed is None else agree(stated, needed)
        if not same:
            message = f"stated {stated!r}, recomputed {needed!r}"
            found.add("memory_mismatch", message, f"{pool}_memory_bytes")


def _check_schedule(
    problem: FindepProblem, solution: FindepSolution, split: Split, times: Durations, found: Findings
) -> None:
    """The timeline, and what follows from it: makespan, objective, busy times, the bound."""
    _compare("free_order_bound", solution.free_order_bound, best_possible(problem), "free_order_bound", found)
    starts = read_starts(problem, solution, found)
    if starts is None:
        return
    makespan_s = last_end_s(starts, times)
    check_starts(starts, times, solution.order, makespan_s, found)
    _compare("makespan", solution.makespan_s, makespan_s, "makespan_s", found)
    earliest_s = earliest_end_s(problem.num_layers, solution.r1, solution.r2, solution.order, times)
    if not makespan_s >= earliest_s * (1 - TOLERANCE):
        message = f"the last task ends at {makespan_s!r} s, but it cannot end before {earliest_s!r} s"
        found.add("makespan_mismatch", message, "timeline")
    limit_s = problem.makespan_limit_s
    if limit_s is not None and not makespan_s <= limit_s * (1 + TOLERANCE):
        found.add("makespan_limit", f"takes {makespan_s!r} s, expected at most {limit_s!r} s", "makespan_s")
    if not makespan_s > 0:
        return
    tokens = solution.r1 * solution.m_a * tokens_per_pass(problem, split)
    _compare("objective", solution.objective, tokens / makespan_s, "objective", found)
    layers = problem.num_layers * solution.r1
    busy_s = {
        "AG": layers * (times.a + times.s),
        "A2E": layers * solution.r2 * times.x,
        "EG": layers * solution.r2 * times.e,
        "E2A": layers * solution.r2 * times.y,
    }
    for resource, busy in busy_s.items():
        stated = getattr(solution.utilisation, resource)
        _compare("utilisation", stated, float(busy) / makespan_s, f"utilisation.{resource}", found)


def _compare(figure: str, stated: float, recomputed: float, where: str, found: Findings) -> None:
    if not agree(stated, recomputed):
        found.add(f"{figure}_mismatch", f"stated {stated!r}, recomputed {recomputed!r}", where)
