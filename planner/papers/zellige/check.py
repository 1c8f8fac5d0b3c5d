"""The independent check of a plan (page section 8), from problem and solution alone.

It recomputes loads, memory and the replay from the problem's options. No engine, no instance, no list of rank sets.
A stated lower bound above the objective is refuted by the plan's envelope, not here.
"""

from __future__ import annotations

from collections import Counter

from planner.findings import Findings
from planner.paper import Violation
from planner.papers.zellige.check_facts import TOLERANCE, Facts, agree, read_facts, shown, total
from planner.papers.zellige.check_segments import check_segments
from planner.papers.zellige.problem import ZelligeProblem
from planner.papers.zellige.solution import PlacedSequence, ZelligeSolution

VIOLATIONS: tuple[str, ...] = (
    "missing_sequence",
    "duplicate_sequence",
    "unknown_sequence",
    "option_not_offered",
    "illegal_rank_set",
    "memory_over_cap",
    "metric_makespan",
    "metric_split",
    "metric_rank_time_s",
    "metric_rank_memory_bytes",
    "metric_replay",
    "rank_segments",
    "segment_order",
    "segment_position",
    "segment_mismatch",
    "collective_mismatch",
    "degree_order",
    "illegal_coalescing",
    "whole_not_coalesced",
    "segment_duplicate",
    "segment_placement",
    "token_ranges",
)
"""Every code the check can report, in the order it reports them."""


def check(problem: ZelligeProblem, solution: ZelligeSolution) -> list[Violation]:
    """Everything the solution says that the problem refutes; empty for a correct plan. At most 100 of each code."""
    facts = read_facts(problem)
    found = Findings()
    placed = _check_placements(facts, solution, found)
    time_s, memory_bytes, splits = _check_options(facts, placed, found)
    _check_memory(facts, memory_bytes, found)
    _check_metrics(solution, time_s, memory_bytes, splits, found)
    check_segments(facts, solution, placed, found)
    return found.in_order(VIOLATIONS)


def _check_placements(facts: Facts, solution: ZelligeSolution, found: Findings) -> dict[str, PlacedSequence]:
    """The first placement of every known sequence."""
    placed: dict[str, PlacedSequence] = {}
    for placement in solution.placements:
        name = placement.sequence_id
        if name not in facts.group_of:
            found.add("unknown_sequence", f'the problem has no sequence "{name}"', f"placements.{name}")
        elif name in placed:
            found.add("duplicate_sequence", f'"{name}" is placed more than once, expected once', f"placements.{name}")
        else:
            placed[name] = placement
    if len(placed) < len(facts.group_of):
        for name in facts.group_of:
            if name not in placed:
                found.add("missing_sequence", f'"{name}" has no placement, expected one', "placements")
    return placed


def _check_options(
    facts: Facts, placed: dict[str, PlacedSequence], found: Findings
) -> tuple[list[float], list[float], int]:
    """Time [s] and memory [bytes] of every rank, and the number of split sequences; counts what has a price."""
    equal = Counter((facts.group_of[name], p.config, p.ranks) for name, p in placed.items())
    time_s: list[list[float]] = [[] for _ in range(facts.num_ranks)]
    memory_bytes: list[list[float]] = [[] for _ in range(facts.num_ranks)]
    splits = 0
    not_offered: set[tuple[int, str]] = set()
    illegal: dict[tuple[str, tuple[int, ...]], str] = {}
    for (group, config, ranks), count in equal.items():
        option = facts.options[group].get(config)
        splits += count * (facts.degrees.get(config, len(ranks)) > 1)
        if option is None:
            not_offered.add((group, config))
            continue
        if fault := facts.rank_set_fault(config, ranks):
            illegal[config, ranks] = fault
        for rank in ranks:
            if 0 <= rank < facts.num_ranks:
                time_s[rank].append(count * option.time_s)
                memory_bytes[rank].append(count * option.memory_bytes)
    if not_offered or illegal:
        for name, p in placed.items():
            group = facts.group_of[name]
            if (group, p.config) in not_offered:
                message = f'"{p.config}" is not offered; expected one of {shown(facts.options[group])}'
                found.add("option_not_offered", message, f"placements.{name}.config")
            elif (p.config, p.ranks) in illegal:
                message = f"{illegal[p.config, p.ranks]}; found {shown(p.ranks)}"
                found.add("illegal_rank_set", message, f"placements.{name}.ranks")
    return [total(parts) for parts in time_s], [total(parts) for parts in memory_bytes], splits


def _check_memory(facts: Facts, memory_bytes: list[float], found: Findings) -> None:
    cap = facts.problem.cluster.memory_cap_bytes
    for rank, used in enumerate(memory_bytes):
        if used > cap * (1 + TOLERANCE):
            message = f"rank {rank} holds {used:.17g} bytes, expected at most {cap:.17g}"
            found.add("memory_over_cap", message, f"metrics.rank_memory_bytes.{rank}")


def _check_metrics(
    solution: ZelligeSolution, time_s: list[float], memory_bytes: list[float], splits: int, found: Findings
) -> None:
    metrics = solution.metrics
    makespan_s = max(time_s)
    if not agree(metrics.makespan_s, makespan_s):
        message = f"stated {metrics.makespan_s!r} s, recomputed {makespan_s!r} s"
        found.add("metric_makespan", message, "metrics.makespan_s")
    if metrics.split_sequences != splits:
        message = f"stated {metrics.split_sequences}, recomputed {splits}"
        found.add("metric_split", message, "metrics.split_sequences")
    _check_per_rank("rank_time_s", metrics.rank_time_s, time_s, found)
    _check_per_rank("rank_memory_bytes", metrics.rank_memory_bytes, memory_bytes, found)


def _check_per_rank(name: str, stated: tuple[float, ...], recomputed: list[float], found: Findings) -> None:
    code, place = f"metric_{name}", f"metrics.{name}"
    if len(stated) != len(recomputed):
        found.add(code, f"has {len(stated)} entries, expected one for each of {len(recomputed)} ranks", place)
        return
    for rank, (ours, theirs) in enumerate(zip(recomputed, stated, strict=True)):
        if not agree(ours, theirs):
            found.add(code, f"stated {theirs!r}, recomputed {ours!r}", f"{place}.{rank}")
