"""The baseline of one pool: expert-parallel over all its GPUs, attention and experts on each (page, "Baselines")."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.papers.janus.costs import Memory
from planner.papers.janus.frontier import ROUNDING
from planner.papers.janus.model import WHOLE
from planner.papers.janus.problem import Monolithic, SizingProblem

STILL = 1e-13
"""Relative change of the batch at which the iteration has arrived."""
MOST_STEPS = 100_000
"""Steps of one iteration. Where they run out, lambda x TPOT rises as fast as the batch, and the pool is left out."""


@dataclass(frozen=True)
class OnePool:
    """GPUs that carry the demand alone: requests in flight, seconds of a token, bytes of a GPU (None: no memory)."""

    gpus: int
    batch: float
    tpot_s: float
    memory_bytes: float | None


def smallest_pool(problem: SizingProblem, demand_tokens_per_s: float) -> OnePool | None:
    """The fewest of the allowed GPUs that carry the demand within SLO and memory.

    None where the problem does not describe the baseline or no allowed number will do. Its costs are the problem's
    own, whatever devices may be chosen from.
    """
    described = problem.baselines.monolithic
    if described is None:
        return None
    points = (_point(problem, described, gpus, demand_tokens_per_s) for gpus in sorted(described.allowed_gpus))
    return next((point for point in points if point is not None), None)


def _point(problem: SizingProblem, described: Monolithic, gpus: int, demand: float) -> OnePool | None:
    """The operating point: the limit of B <- lambda x TPOT(B) from one request, which is the smallest fixed point."""
    slo_s = problem.slo_tpot_s * (1 + ROUNDING)
    capacity = math.inf if problem.memory is None else problem.memory.capacity_bytes * (1 + ROUNDING)
    batch = 1.0
    for _ in range(MOST_STEPS):
        tpot_s = _tpot_s(problem, described, gpus, batch)
        used = None if problem.memory is None else _bytes(problem, problem.memory, described, gpus, batch)
        # Both only rise with the batch, and the batch with every step.
        if tpot_s > slo_s or (used is not None and used > capacity):
            return None
        following = max(1.0, demand * tpot_s)
        if following <= batch * (1 + STILL):
            return OnePool(gpus, following, tpot_s, used)
        batch = following
    return None


def _tpot_s(problem: SizingProblem, described: Monolithic, gpus: int, batch: float) -> float:
    attention, moe = problem.attention, problem.moe
    each = batch / gpus
    requests_s = each * (attention.per_request_s + attention.per_cached_token_s * problem.context_tokens)
    floor_s = attention.floor_s
    attention_s = floor_s + requests_s if attention.combine == "sum" else max(floor_s, requests_s)
    moe_s = moe.per_expert_s * _activated(problem, gpus, batch) + moe.base_s
    return problem.num_layers * (attention_s + moe_s + described.comm_s)


def _activated(problem: SizingProblem, gpus: int, batch: float) -> float:
    """Experts activated on the busiest GPU: the balanced bound with the experts of a GPU in place of slots."""
    E, K = problem.num_experts, problem.top_k
    mean = E * (1 - math.pow(1 - K / E, batch)) / gpus
    return min(-(-E // gpus), K * batch, mean + math.sqrt(2 * mean * math.log(gpus)) + 1)


def _bytes(problem: SizingProblem, memory: Memory, described: Monolithic, gpus: int, batch: float) -> float:
    fixed = memory.attention_fixed_bytes
    weights = math.fsum(fixed.values()) if isinstance(fixed, dict) else fixed
    hosted = -(-problem.num_experts // gpus) * described.expert_bytes
    request = problem.context_tokens * memory.kv_bytes_per_token + memory.activation_bytes_per_request
    return weights + hosted + math.ceil(batch / gpus - WHOLE) * request
