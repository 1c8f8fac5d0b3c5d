"""A placement counted again from the page alone: its bytes on device, host and wire, and its seconds.

Nothing that planned takes part: neither the project's memory model nor the search.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.papers.memory.byte_fields import Dim, Group
from planner.papers.memory.problem import MemoryProblem

TOLERANCE = 1e-9
"""Relative difference below which two figures agree."""


@dataclass(frozen=True)
class Stated:
    """A decision as a plan states it: modes as words, and the dimensions each state is sharded over."""

    parameters: str
    gradients: str
    optimizer: str
    activations: str
    i_p: int
    i_g: int
    i_o: int


@dataclass(frozen=True)
class Recount:
    """What a decision needs and costs; device bytes include what no state explains."""

    by_state: dict[str, float]
    device_bytes: float
    host_bytes: float
    communication_bytes: float
    overhead_s: float


def agree(stated: float, recomputed: float) -> bool:
    """Whether two figures are the same but for rounding."""
    return math.isclose(stated, recomputed, rel_tol=TOLERANCE)


def recount_all(problem: MemoryProblem, stated: Stated) -> list[Recount]:
    """`recount` of every rank that the problem states, its own first."""
    return [recount(each, stated) for each in problem.each_rank()]


def together(ranks: Sequence[Recount]) -> Recount:
    """What ranks need that run the same placement: bytes of the fullest, the first of ties, seconds of the slowest."""
    return Recount(
        max(ranks, key=lambda rank: rank.device_bytes).by_state,
        max(rank.device_bytes for rank in ranks),
        max(rank.host_bytes for rank in ranks),
        max(rank.communication_bytes for rank in ranks),
        max(rank.overhead_s for rank in ranks),
    )


def recount(problem: MemoryProblem, stated: Stated) -> Recount:
    """Sections 3.1, 3.2 and 3.6 of the page on the problem's own rank; modes and prefixes are within the dimensions."""
    groups, m = problem.groups, problem.num_micro_batches
    by_state = {
        "parameters": math.fsum(_parameters(group, stated) for group in groups),
        "gradients": math.fsum(_gradients(group, stated) for group in groups),
        "optimizer": math.fsum(_optimizer(group, stated) for group in groups),
        "activations": _activations(problem, stated.activations),
    }
    host_bytes = math.fsum(_on_host(group, stated) for group in groups)
    host_bytes += problem.activations.kept_bytes if stated.activations == "offloaded" else 0.0
    messages = [message for group in groups for message in _messages(group, stated, m)]
    parts_s = [message.seconds for message in messages]
    if problem.host is not None:
        moved = math.fsum(_over_link(group, stated, m) for group in groups)
        if stated.activations == "offloaded":
            moved += 2 * m * (problem.activations.micro_batch_bytes or 0.0)
        parts_s.append(moved * problem.host.beta_s_per_byte)
        if stated.optimizer == "offloaded":
            updated = math.fsum(group.optimizer_bytes / _ranks(group.dims[: stated.i_o]) for group in groups)
            parts_s.append(updated * problem.host.update_s_per_byte)
    if stated.activations == "materialised":
        parts_s.append(m * (problem.activations.recompute_s or 0.0))
    return Recount(
        by_state,
        math.fsum([*by_state.values(), problem.other_bytes, problem.workspace_bytes]),
        host_bytes,
        math.fsum(message.sent_bytes for message in messages),
        math.fsum(parts_s),
    )


def _ranks(dims: Sequence[Dim]) -> int:
    return math.prod(dim.size for dim in dims)


def _parameters(group: Group, stated: Stated) -> float:
    whole, ranks = group.parameters_bytes, _ranks(group.dims[: stated.i_p])
    if stated.parameters == "offloaded":
        return 2 * group.parameters_unit_bytes
    if ranks == 1:
        return whole
    beside = {"gather": 2 * group.parameters_unit_bytes, "gather_keep": whole}
    return whole / ranks + beside[stated.parameters]


def _gradients(group: Group, stated: Stated) -> float:
    ranks = _ranks(group.dims[: stated.i_g])
    if stated.gradients == "offloaded":
        return group.gradients_unit_bytes
    return group.gradients_bytes / ranks + (group.gradients_unit_bytes if ranks > 1 else 0.0)


def _optimizer(group: Group, stated: Stated) -> float:
    return 0.0 if stated.optimizer == "offloaded" else group.optimizer_bytes / _ranks(group.dims[: stated.i_o])


def _activations(problem: MemoryProblem, mode: str) -> float:
    given = problem.activations
    return {"kept": given.kept_bytes, "materialised": given.materialised_bytes, "offloaded": given.unit_bytes}[
        mode
    ] or 0.0


def _on_host(group: Group, stated: Stated) -> float:
    held = 0.0
    for mode, whole, prefix in (
        (stated.parameters, group.parameters_bytes, stated.i_p),
        (stated.gradients, group.gradients_bytes, stated.i_g),
        (stated.optimizer, group.optimizer_bytes, stated.i_o),
    ):
        if mode == "offloaded":
            held += whole / _ranks(group.dims[:prefix])
    return held


def _over_link(group: Group, stated: Stated, m: int) -> float:
    """Bytes between device and host in a step."""
    moved = 0.0
    if stated.parameters == "offloaded":
        moved += 2 * m * group.parameters_bytes / _ranks(group.dims[: stated.i_p])
    if stated.gradients == "offloaded":
        moved += 2 * (m - 1) * group.gradients_bytes / _ranks(group.dims[: stated.i_g])
    if stated.optimizer == "offloaded":
        moved += (group.gradients_bytes + group.parameters_bytes) / _ranks(group.dims[: stated.i_o])
    return moved


@dataclass(frozen=True)
class _Message:
    """Gathers, or scatters, of the same bytes over the same ranks, one after another."""

    dims: Sequence[Dim]
    whole_bytes: float
    times: int

    @property
    def sent_bytes(self) -> float:
        return self.times * self.whole_bytes * (1 - 1 / _ranks(self.dims))

    @property
    def seconds(self) -> float:
        """Equation 1: one flat ring as slow as the slowest of its dimensions, ports of ranks inside one added."""
        ring = [dim for dim in self.dims if dim.size > 1]
        if not ring:
            return 0.0
        start_up_s = (_ranks(ring) - 1) * max(dim.alpha_s for dim in ring)
        beta, ports = 0.0, 1
        for dim in ring:
            beta = max(beta, dim.beta_s_per_byte / (ports if dim.beta_of == "gpu" else 1))
            ports *= dim.size
        return self.times * start_up_s + self.sent_bytes * beta


def _messages(group: Group, stated: Stated, m: int) -> Iterator[_Message]:
    """Every collective of a step (page, section 3.2); an all-reduce is a scatter and a gather."""
    dims, i_p, i_g, i_o = group.dims, stated.i_p, stated.i_g, stated.i_o
    passes = 1 if stated.parameters == "gather_keep" else 2
    yield _Message(dims[:i_p], group.parameters_bytes, m * passes)
    yield _Message(dims[:i_g], group.gradients_bytes, m)
    yield _Message(dims[i_g:i_o], group.gradients_bytes / _ranks(dims[:i_g]), 1)
    yield _Message(dims[i_o:], group.gradients_bytes / _ranks(dims[:i_o]), 2)
    yield _Message(dims[i_p:i_o], group.parameters_bytes / _ranks(dims[:i_p]), 1)
