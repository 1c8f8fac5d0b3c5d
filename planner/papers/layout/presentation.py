"""What people and programs read off a layout plan: summary, bytes by rank and cause, decisions, metrics."""

from __future__ import annotations

from collections.abc import Iterator

from planner.json_text import Json
from planner.paper import MemoryRow
from planner.papers.layout.evaluate import Evaluated, bytes_by_rank, evaluate
from planner.papers.layout.layouts import Layout, layout_of
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.solution import Figures, LayoutSolution
from planner.papers.layout.step_parts import step_parts
from planner.units import in_bytes, percent, seconds

ALWAYS = ("weights", "gradients", "optimizer", "activations", "transient")
"""Causes that are shown where they are nothing, too."""
TOLD_CAUSES = 3
"""Of the fullest rank, in the summary."""
TOLD_PART = 1e-3
"""Of the step, so much is told of in the summary."""


def evaluated(problem: LayoutProblem, solution: LayoutSolution) -> Evaluated:
    """All figures of a plan's layout, without a replay."""
    return evaluate(problem, layout_of(solution), solution.pipeline_s)


def memory(problem: LayoutProblem, solution: LayoutSolution) -> list[MemoryRow]:
    """Bytes of every pipeline rank by cause at its peak; each stands for all GPUs of the rank."""
    capacity, reserve = problem.cluster.gpu_memory_bytes, problem.cluster.reserve_bytes
    rows: list[MemoryRow] = []
    for rank, held in enumerate(bytes_by_rank(problem, evaluated(problem, solution))):
        for cause, amount in (*held.by_cause().items(), ("reserve", reserve)):
            if amount or cause in ALWAYS:
                rows.append(MemoryRow(f"rank {rank}", cause, amount, capacity))
    return rows


def summary(problem: LayoutProblem, solution: LayoutSolution) -> list[str]:
    """Lines about the layout, its time and memory, and what comes next."""
    found = evaluated(problem, solution)
    lines = [words(solution), _time(problem, solution, found), _peak(problem, found)]
    if solution.combinations is not None and solution.legal is not None:
        lines.append(_searched(solution, solution.combinations, solution.legal))
    lines += _next(solution)
    if len(solution.pareto) > 1:
        smallest = solution.pareto[-1]
        ends = f"{in_bytes(smallest.peak_memory_bytes)} in {seconds(smallest.step_time_s)} ({words(smallest)})"
        lines.append(f"{len(solution.pareto):,} layouts trade time for memory, down to {ends}")
    return lines


def words(row: Layout | Figures) -> str:
    """A layout for people: degrees above 1, and whatever is on."""
    names = ("tp", "cp", "pp", "vpp", "ep", "etp")
    parts = [f"{name} {getattr(row, name)}" for name in names if getattr(row, name) > 1]
    parts += [f"ZeRO {row.zero_stage}", f"micro-batch {row.micro_batch}"]
    if isinstance(row, Figures):
        if row.dp > 1:
            parts.insert(-2, f"dp {row.dp}")
        parts[-1] += f" x {row.num_micro_batches}"
    if row.recompute != "none":
        parts.append(f"{row.recompute} recomputation")
    if row.sequence_parallel:
        parts.append("sequence parallel")
    if len(set(row.partition)) > 1:
        parts.append(f"layers {layers(row.partition)}")
    return ", ".join(parts)


def layers(partition: tuple[int, ...]) -> str:
    """First, middle and last stages; middle ones are equal."""
    if len(partition) <= 3:
        return " + ".join(map(str, partition))
    return f"{partition[0]} + {len(partition) - 2} x {partition[1]} + {partition[-1]}"


def _time(problem: LayoutProblem, solution: LayoutSolution, found: Evaluated) -> str:
    """The step, and what the busiest rank does in it."""
    parts = [
        f"{part} {seconds(amount)}"
        for part, amount in step_parts(problem, found).items()
        if amount > TOLD_PART * solution.step_time_s
    ]
    told = f": {', '.join(parts)}" if parts else ""
    return f"{seconds(solution.step_time_s)} a step{told}; {solution.tokens_per_s_per_gpu:,.4g} tokens/s a GPU"


def _peak(problem: LayoutProblem, found: Evaluated) -> str:
    held = bytes_by_rank(problem, found)
    totals = [rank.total for rank in held]
    fullest = totals.index(max(totals))
    causes = sorted(held[fullest].by_cause().items(), key=lambda one: -one[1])[:TOLD_CAUSES]
    where = f"rank {fullest} of {len(totals)}" if len(totals) > 1 else "every GPU"
    told = ", ".join(f"{cause} {in_bytes(amount)}" for cause, amount in causes)
    return (
        f"peak {in_bytes(totals[fullest])} of {in_bytes(problem.cluster.capacity_bytes)} that are free on a GPU, on "
        f"{where}: {told}"
    )


def _searched(solution: LayoutSolution, combinations: int, legal: int) -> str:
    excluded = dict(solution.excluded or {})
    too_full = excluded.pop("memory", 0)
    line = f"{combinations:,} combinations: {legal:,} layouts keep the rules, {legal - too_full:,} of them fit"
    if excluded:
        most = max(excluded, key=lambda rule: excluded[rule])
        line += f"; the rule {most} excludes most, {excluded[most]:,}"
    return line


def _next(solution: LayoutSolution) -> Iterator[str]:
    if solution.alternatives:
        second = solution.alternatives[0]
        more = "as fast" if second.ratio <= 1 + 1e-9 else f"{percent(second.ratio - 1)} longer"
        yield f"next: {words(second)}: {more} ({second.reason})"


def decisions(solution: LayoutSolution) -> dict[str, Json]:
    """What a launcher is told."""
    return {
        "tp": solution.tp,
        "cp": solution.cp,
        "pp": solution.pp,
        "vpp": solution.vpp,
        "ep": solution.ep,
        "etp": solution.etp,
        "zero_stage": solution.zero_stage,
        "recompute": solution.recompute,
        "sequence_parallel": solution.sequence_parallel,
        "micro_batch": solution.micro_batch,
        "partition": list(solution.partition),
    }


def metrics(solution: LayoutSolution) -> dict[str, Json]:
    """The recomputable figures."""
    return {
        "dp": solution.dp,
        "num_micro_batches": solution.num_micro_batches,
        "pipeline_s": solution.pipeline_s,
        "tail_s": solution.tail_s,
        "step_time_s": solution.step_time_s,
        "tokens_per_s_per_gpu": solution.tokens_per_s_per_gpu,
        "peak_memory_bytes": solution.peak_memory_bytes,
    }
