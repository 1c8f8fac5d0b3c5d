"""The GPUs of the monolithic baseline, counted again (page, "Baselines")."""

from __future__ import annotations

import math

from planner.papers.janus.checks.offers import TOLERANCE
from planner.papers.janus.problem import Monolithic, SizingProblem

STEPS = 100_000
"""Steps of one iteration."""


def fewest_gpus(problem: SizingProblem, demand: float) -> int | None:
    """The fewest allowed GPUs; None where the baseline is not described or none of them will do."""
    told = problem.baselines.monolithic
    if told is None:
        return None
    return next((gpus for gpus in sorted(told.allowed_gpus) if _carries(problem, told, gpus, demand)), None)


def _carries(problem: SizingProblem, told: Monolithic, N: int, demand: float) -> bool:
    """Follow B <- max(1, lambda x TPOT(B)) up from 1 until it stands still within what is allowed."""
    E, K, L, S = problem.num_experts, problem.top_k, problem.num_layers, problem.context_tokens
    hosted = math.ceil(E / N)
    B = 1.0
    for _ in range(STEPS):
        expected = E * (1 - (1 - K / E) ** B) / N
        a_max = min(hosted, K * B, expected + math.sqrt(2 * expected * math.log(N)) + 1)
        requests_s = B / N * (problem.attention.per_request_s + problem.attention.per_cached_token_s * S)
        floor_s = problem.attention.floor_s
        T_attn = floor_s + requests_s if problem.attention.combine == "sum" else max(floor_s, requests_s)
        tpot_s = L * (T_attn + problem.moe.per_expert_s * a_max + problem.moe.base_s + told.comm_s)
        if tpot_s > problem.slo_tpot_s * (1 + TOLERANCE) or _bytes(problem, told, hosted, B / N) > _capacity(problem):
            return False
        rising = max(1.0, demand * tpot_s)
        if rising - B <= 1e-13 * B:
            return True
        B = rising
    return False


def _capacity(problem: SizingProblem) -> float:
    return math.inf if problem.memory is None else problem.memory.capacity_bytes * (1 + TOLERANCE)


def _bytes(problem: SizingProblem, told: Monolithic, hosted: int, each: float) -> float:
    memory = problem.memory
    if memory is None:
        return 0.0
    own = memory.attention_fixed_bytes
    fixed = math.fsum(own.values()) if isinstance(own, dict) else own
    request = memory.kv_bytes_per_token * problem.context_tokens + memory.activation_bytes_per_request
    return fixed + hosted * told.expert_bytes + request * math.ceil(each - 1e-9)
