"""What the reader of a plan should know before launching, the most important first: a summary shows three."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.paper import Warned
from planner.papers.layout.evaluate import Evaluated
from planner.papers.layout.presentation import evaluated
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.rules import broken_rule
from planner.papers.layout.solution import LayoutSolution
from planner.papers.layout.step_parts import busiest_rank, step_parts
from planner.units import in_bytes, percent

NEAR = 0.85
"""Of the capacity: what the page calls near it (section 9)."""
TELLS = 0.01
"""Of the step: what is less is not worth a word."""
UNEVEN = 0.1
"""By how much the busiest rank may work longer than the mean."""
ERROR = 0.05
"""What a fitted model is off by at the median (section 11): layouts nearer than this are told apart by a run alone."""

FIRST = ("near_capacity", "few_micro_batches", "interleave_two_stages", "uneven_stages")
LAST = ("overlap_stated_zero", "overlap_stated_whole", "partial_node", "search_edge", "close_race")
"""Before and after what the prices say of themselves."""


def warnings(problem: LayoutProblem, solution: LayoutSolution) -> list[Warned]:
    """All of them, each code once."""
    found = evaluated(problem, solution)
    given = [Warned(code, text) for code, text in (problem.cautions or {}).items()]
    own = [
        *_near_capacity(problem, found),
        *_few_micro_batches(found),
        *_interleave_two_stages(problem, found),
        *_uneven_stages(problem, found),
        *_overlap(problem, found),
        *_partial_node(problem),
        *_search_edge(problem, found),
        *_close_race(solution),
    ]
    by_code = {one.code: one for one in (*own, *given)}
    order = [*FIRST, *(one.code for one in given), *LAST]
    return [by_code[code] for code in dict.fromkeys(order) if code in by_code]


def _near_capacity(problem: LayoutProblem, found: Evaluated) -> Iterator[Warned]:
    room = problem.cluster.capacity_bytes
    if found.peak_memory_bytes > NEAR * room:
        reserve = "" if problem.cluster.reserve_bytes else ", of which nothing is reserved"
        yield Warned(
            "near_capacity",
            f"the fullest rank holds {in_bytes(found.peak_memory_bytes)}, {percent(found.peak_memory_bytes / room)} of "
            f"what a GPU has free{reserve}: published runs as near to it ran out of memory; measure one peak and state "
            "reserve_bytes by it, or take a layout of the front that needs less",
        )


def _few_micro_batches(found: Evaluated) -> Iterator[Warned]:
    pp, m = found.layout.pp, found.sizes.num_micro_batches
    if m < pp:
        yield Warned(
            "few_micro_batches",
            f"{m} micro-batches for {pp} pipeline stages: equal stages are busy for {percent(m / (m + pp - 1))} of the "
            "pipeline; a larger batch costs less a token",
        )


def _interleave_two_stages(problem: LayoutProblem, found: Evaluated) -> Iterator[Warned]:
    if problem.launcher_rules == "megatron" and found.layout.pp == 2 and found.layout.vpp > 1:
        yield Warned(
            "interleave_two_stages",
            "two stages of several chunks each start only where pipeline messages overlap, as they do by default: "
            "leave --no-overlap-p2p-communication out",
        )


def _uneven_stages(problem: LayoutProblem, found: Evaluated) -> Iterator[Warned]:
    """Where the search offers equal stages alone and the ends make one rank much slower."""
    pp = found.layout.pp
    if "ends" in problem.search.partitions or pp == 1 or found.layout.vpp > 1:
        return
    work = [one + other for one, other in zip(found.stages.forward_s, found.stages.backward_s, strict=True)]
    mean, rank = sum(work) / pp, busiest_rank(found)
    if work[rank] > mean * (1 + UNEVEN):
        yield Warned(
            "uneven_stages",
            f"rank {rank} works {percent(work[rank] / mean - 1)} longer than the mean and all wait for it: add ends to "
            "search.partitions",
        )


def _overlap(problem: LayoutProblem, found: Evaluated) -> Iterator[Warned]:
    """Shares that were stated at an end of their range, where something hangs on them."""
    if "overlap_unmeasured" in (problem.cautions or {}):
        return
    overlap, step_s = problem.costs.overlap, found.step_time_s
    parts = step_parts(problem, found)
    shown = {"dp": parts["reduction"] + parts["sharding"], "p2p": parts["hops"]}
    named = {"dp": "data-parallel collectives", "p2p": "pipeline hops"}
    zero = [name for name in shown if getattr(overlap, name) == 0 and shown[name] > TELLS * step_s]
    if zero:
        told = " and ".join(f"{named[name]}, {percent(shown[name] / step_s)} of the step" for name in zero)
        yield Warned(
            "overlap_stated_zero",
            f"{told}, hide behind nothing by overlap.{' and overlap.'.join(zero)} = 0: measure what a run hides",
        )
    hides = {"dp": found.sizes.dense_ranks > 1, "p2p": found.layout.pp > 1}
    whole = [name for name in hides if getattr(overlap, name) == 1 and hides[name]]
    if whole:
        yield Warned(
            "overlap_stated_whole",
            f"{' and '.join(named[name] for name in whole)} hide wholly by overlap.{' and overlap.'.join(whole)} = 1, "
            "and slow no compute: measure what a run hides",
        )


def _partial_node(problem: LayoutProblem) -> Iterator[Warned]:
    num_gpus, node = problem.cluster.num_gpus, problem.cluster.gpus_per_node
    if num_gpus > node and num_gpus % node:
        priced = "groups that cross it are priced as if it were full"
        if problem.costs.collectives.inter.beta_of == "gpu":
            priced = "only data-parallel rings are priced by the ports it has"
        yield Warned(
            "partial_node",
            f"{num_gpus} GPUs are no whole number of nodes of {node}: the last node has {num_gpus % node}, "
            f"and {priced}",
        )


def _search_edge(problem: LayoutProblem, found: Evaluated) -> Iterator[Warned]:
    """Decisions at the end of a list beyond which the rules would allow more."""
    ended = []
    for name in ("tp", "cp", "pp", "vpp", "ep", "etp", "micro_batch"):
        listed, value = getattr(problem.search, name), getattr(found.layout, name)
        if len(listed) > 1 and value == listed[-1]:
            further = replace(found.layout, **{name: 2 * value})
            if broken_rule(problem, further) in (None, "row_not_in_table"):
                ended.append(f"{name} {value}")
    if ended:
        yield Warned(
            "search_edge",
            f"{', '.join(ended)}: the largest that search lists, and twice as much keeps the rules too: it may be "
            "better yet",
        )


def _close_race(solution: LayoutSolution) -> Iterator[Warned]:
    close = sum(one.ratio <= 1 + ERROR for one in solution.alternatives)
    if close:
        least = "at least " if close == len(solution.alternatives) else ""
        others = f"{close} other layouts are" if close > 1 else "1 other layout is"
        yield Warned(
            "close_race",
            f"{least}{others} within {percent(ERROR)} of the step, which is what a fitted model is "
            "off by: run the first few before you settle",
        )
