"""Whether a layer's decision is one that the problem offers: its dimension, and who sits in which slot."""

from __future__ import annotations

import numpy as np

from planner.findings import Findings
from planner.papers.hiermoe.checks.counts import TOLERANCE, Ints
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.papers.hiermoe.solution import LayerPlacement
from planner.validation import shown_value


def named(number: int) -> str:
    """An integer of any size as a message shows it."""
    return shown_value(number)


def check_decision(problem: HiermoeProblem, layer: LayerPlacement, where: str, found: Findings) -> Ints | None:
    """The table as an array; None where it cannot be counted: a dimension or a slot that there is not."""
    D, d = problem.topology.dimensions, layer.dimension
    in_range = 1 <= d <= D
    if not in_range:
        found.add("dimension_range", f"expected 1 to {D}, got {named(d)}", f"{where}.dimension")
    elif d not in problem.allowed_dimensions:
        allowed = ", ".join(map(str, problem.allowed_dimensions))
        found.add("dimension_not_allowed", f"expected one of {allowed}, got {d}", f"{where}.dimension")
    table = check_slots(problem, layer.physical_to_logical, f"{where}.physical_to_logical", found)
    return table if in_range else None


def check_slots(problem: HiermoeProblem, slots: tuple[int, ...], where: str, found: Findings) -> Ints | None:
    """The table as an array, if it has P slots of known experts and every expert."""
    E, P, G = problem.num_experts, problem.num_experts + problem.redundant_slots, problem.topology.gpus
    if len(slots) != P:
        found.add("slot_count", f"expected {P} slots, got {len(slots)}", where)
    strangers = [(slot, expert) for slot, expert in enumerate(slots) if not 0 <= expert < E]
    for slot, expert in strangers:
        found.add("expert_range", f"expected experts 0 to {E - 1}, got {named(expert)}", f"{where}[{slot}]")
    if len(slots) != P or strangers:
        return None
    table = np.array(slots, dtype=np.int64)
    missing = np.flatnonzero(np.bincount(table, minlength=E) == 0).tolist()
    for expert in missing:
        found.add("expert_missing", f"expert {expert} has no slot", where)
    if problem.forbid_same_rank_replicas and len(table) > E:
        rows = np.sort(table.reshape(G, -1), axis=1)
        for rank, place in np.argwhere(rows[:, 1:] == rows[:, :-1]):
            message = f"rank {rank} holds expert {rows[rank, place]} more than once"
            found.add("duplicate_on_rank", message, f"{where}")
    return None if len(missing) else table


def exceeds_memory(problem: HiermoeProblem) -> str | None:
    """Why the experts of a rank, of all layers, do not fit its memory; None where they do or nothing says."""
    memory, expert_bytes = problem.topology.expert_memory_bytes_per_gpu, problem.costs.expert_bytes
    if memory is None or expert_bytes is None:
        return None
    slots = (problem.num_experts + problem.redundant_slots) // problem.topology.gpus * len(problem.layers)
    needed = slots * expert_bytes
    if needed <= memory * (1 + TOLERANCE):
        return None
    return f"{slots} experts of {expert_bytes:.17g} bytes are {needed:.17g}, a GPU has {memory}"
