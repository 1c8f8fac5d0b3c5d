"""Which placements the page allows, before any byte is counted, for the check."""

from __future__ import annotations

from collections.abc import Iterator

from planner.papers.memory.checks.recount import Stated
from planner.papers.memory.problem import MODES, STATES, MemoryProblem, State


def modes_allowed(problem: MemoryProblem, state: State) -> list[str]:
    """The modes of a state that the problem offers, in the order of ties."""
    asked = getattr(problem.search, state)
    offered = [mode for mode in MODES[state] if asked is None or mode in asked]
    if state == "activations":
        given = problem.activations
        absent = {"materialised": given.materialised_bytes is None, "offloaded": given.unit_bytes is None}
        offered = [mode for mode in offered if not absent.get(mode, False)]
    return offered


def broken_modes(problem: MemoryProblem, stated: Stated) -> Iterator[tuple[str, str, str]]:
    """Modes that the problem does not offer: code, message, field."""
    for state in STATES:
        mode, offered = getattr(stated, state), modes_allowed(problem, state)
        if mode not in offered:
            message = f'expected one of {", ".join(offered) or "none"} for {state}, got "{mode[:60]}"'
            yield "mode_not_allowed", message, state


def broken_nesting(problem: MemoryProblem, stated: Stated) -> Iterator[tuple[str, str, str]]:
    """Rule 1: each state is sharded over what the one before is, or more, and over no more dimensions than there are.

    Code, message, field.
    """
    prefixes = (0, stated.i_p, stated.i_g, stated.i_o, problem.num_dims)
    if list(prefixes) != sorted(prefixes):
        got = f"{stated.i_p}, {stated.i_g}, {stated.i_o}"
        message = f"expected 0 <= parameters <= gradients <= optimizer <= {problem.num_dims}, got {got}"
        yield "nesting", message, "shard_dims"


def broken_rules(problem: MemoryProblem, stated: Stated) -> Iterator[tuple[str, str, str]]:
    """Rules 2 to 4 of section 3.1: code, message, field."""
    for state, i in (("parameters", stated.i_p), ("gradients", stated.i_g), ("optimizer", stated.i_o)):
        mode = getattr(stated, state)
        if mode != "offloaded" and (mode == "replicated") != (i == 0):
            message = f"{state} {mode} over {i} dims: replicated goes with 0 dims, and only it does"
            yield "mode_dims", message, f"shard_dims.{state}"
    for state in ("parameters", "gradients"):
        if getattr(stated, state) == "offloaded" and stated.optimizer != "offloaded":
            message = f"{state} offloaded, and the optimizer {stated.optimizer}: it would update what is not there"
            yield "offload_order", message, "optimizer"
    if problem.host is None:
        for state in STATES:
            if getattr(stated, state) == "offloaded":
                yield "no_host", f"{state} offloaded, and the problem has no host", state
