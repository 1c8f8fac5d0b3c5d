"""What people and programs read off a memory plan: summary, bytes by state, shares by source, decisions, metrics."""

from __future__ import annotations

from planner.derivation.shares import by_source
from planner.json_text import Json
from planner.paper import MemoryRow
from planner.papers.memory.account import account, names_of
from planner.papers.memory.causes import OTHER, WORKSPACE
from planner.papers.memory.explained import bytes_by_group, device_bytes, fullest, placement_of
from planner.papers.memory.names import listed, named
from planner.papers.memory.problem import MemoryProblem
from planner.papers.memory.solution import MemorySolution
from planner.units import in_bytes, percent, seconds

DEVICE = "device"
HOST = "host"


def shares(problem: MemoryProblem, solution: MemorySolution) -> dict[str, float]:
    """Fraction of the objective's seconds by source."""
    return by_source((item.seconds, item.sources) for item in account(problem, placement_of(solution)))


def memory(problem: MemoryProblem, solution: MemorySolution) -> list[MemoryRow]:
    """One row a state and group, one of activations and one of all else; then other ranks, and the host, where any.

    States are those of the fullest rank.
    """
    placement = placement_of(solution)
    capacity = problem.capacity_bytes
    own = fullest(problem, placement)
    held = bytes_by_group(own, placement)
    rows = [
        MemoryRow(DEVICE, f"{state}, {group}", amount, capacity)
        for state, each in held.items()
        for group, amount in each.items()
    ]
    rows.append(MemoryRow(DEVICE, "activations", solution.by_state.activations, capacity))
    rows.append(MemoryRow(DEVICE, OTHER, problem.other_bytes, capacity))
    if own.workspace_bytes:
        rows.append(MemoryRow(DEVICE, WORKSPACE, own.workspace_bytes, capacity))
    others = (each for each in problem.each_rank() if each.rank != own.rank)
    rows += [MemoryRow(f"rank {each.rank}", "in all", device_bytes(each, placement), capacity) for each in others]
    if problem.host is not None and solution.host_bytes:
        rows.append(MemoryRow(HOST, "offloaded", solution.host_bytes, problem.host.capacity_bytes))
    return rows


def summary(problem: MemoryProblem, solution: MemorySolution) -> list[str]:
    """Lines about the placement, what fills the device, and what it costs."""
    lines = [named(placement_of(solution), problem.num_dims), _over(problem, solution), _filled(problem, solution)]
    if problem.host is not None and solution.host_bytes:
        lines.append(f"host: {in_bytes(solution.host_bytes)} of {in_bytes(problem.host.capacity_bytes)}")
    return [*lines, _paid(problem, solution)]


def _over(problem: MemoryProblem, solution: MemorySolution) -> str:
    """What each state is sharded over, dimensions as the first group names them."""
    dims, prefixes = problem.groups[0].dims, solution.shard_dims
    parts = []
    for state in ("parameters", "gradients", "optimizer"):
        prefix: int = getattr(prefixes, state)
        over = f" over {names_of(dims[:prefix])}" if prefix else ""
        parts.append(f"{state} {getattr(solution, state)}{over}")
    return f"{'; '.join(parts)}; activations {solution.activations}"


def _filled(problem: MemoryProblem, solution: MemorySolution) -> str:
    own = fullest(problem, placement_of(solution))
    amounts = dict(solution.by_state) | {OTHER: own.other_bytes, WORKSPACE: own.workspace_bytes}
    largest = sorted((name for name in amounts if amounts[name]), key=lambda name: -amounts[name])
    parts = ", ".join(f"{name} {in_bytes(amounts[name])}" for name in largest)
    used, capacity = solution.device_bytes, problem.capacity_bytes
    which = f"device of rank {own.rank}, the fullest" if problem.ranks else "device"
    filled = f"{which}: {in_bytes(used)} of {in_bytes(capacity)} ({used / capacity:.1%})"
    return f"{filled}: {parts}" if parts else filled


def _paid(problem: MemoryProblem, solution: MemorySolution) -> str:
    seconds_by: dict[str, float] = {}
    for item in account(problem, placement_of(solution)):
        seconds_by[item.name] = seconds_by.get(item.name, 0.0) + item.seconds
    largest = sorted((name for name in seconds_by if seconds_by[name]), key=lambda name: -seconds_by[name])[:3]
    total_s = solution.overhead_s
    if not largest or not total_s:
        return "nothing to move or recompute costs anything"
    parts = listed([f"{name.replace('_', ' ')} {percent(min(1.0, seconds_by[name] / total_s))}" for name in largest])
    return f"moving and recomputing take {seconds(total_s)} a step if nothing of it is overlapped: {parts}"


def decisions(solution: MemorySolution) -> dict[str, Json]:
    """Mode and prefix of every state."""
    dims = solution.shard_dims
    return {
        "parameters": solution.parameters,
        "gradients": solution.gradients,
        "optimizer": solution.optimizer,
        "activations": solution.activations,
        "shard_dims": f"{dims.parameters}, {dims.gradients}, {dims.optimizer}",
    }


def metrics(solution: MemorySolution) -> dict[str, Json]:
    """The recomputable figures."""
    return {
        "overhead_s": solution.overhead_s,
        "device_bytes": solution.device_bytes,
        "host_bytes": solution.host_bytes,
        "communication_bytes": solution.communication_bytes,
        "by_state": dict(solution.by_state),
    }
