"""Documents of the page's cases, and random ones, as typed problems."""

from __future__ import annotations

import copy
import random
from typing import Any

from janus_oracle import const, example

from planner.papers.janus.engines import solve
from planner.papers.janus.problem import JanusProblem, ScalingProblem, SeriesProblem
from planner.papers.janus.solution import ScalingSolution, SeriesSolution
from planner.validation import validate
from solvers.report import Limits

Document = dict[str, Any]


def j(**changes: Any) -> Document:
    """The page's J; objects are merged, other fields replaced."""
    return merged(example(), changes)


def merged(document: Document, changes: Document) -> Document:
    """A document with fields changed; a dictionary changes the object it meets unless that is of another kind."""
    made = copy.deepcopy(document)
    for name, value in changes.items():
        held = made.get(name)
        same = (
            isinstance(held, dict)
            and isinstance(value, dict)
            and value.get("kind", held.get("kind")) == held.get("kind")
        )
        made[name] = held | value if same and isinstance(held, dict) else value
    return made


def series(demands: list[float], hours: list[float] | None = None, **changes: Any) -> Document:
    """J over intervals one after the other, by default of an hour each."""
    document = j(task="series", **changes)
    del document["demand_tokens_per_s"]
    start, document["series"] = 0.0, []
    for demand, length in zip(demands, hours or [1.0] * len(demands), strict=True):
        interval = {"start_s": start, "duration_s": length * 3600.0, "demand_tokens_per_s": demand}
        document["series"].append(interval)
        start += interval["duration_s"]
    return document


def problem_of(document: Document) -> ScalingProblem | SeriesProblem:
    """The typed problem in canonical order."""
    problem = validate(JanusProblem, document).sorted()
    assert isinstance(problem, ScalingProblem | SeriesProblem)
    return problem


def scaled(document: Document, method: str | None = None) -> ScalingSolution:
    """The solution of a scaling document."""
    solution, _ = solve(problem_of(document), method, Limits())
    assert isinstance(solution, ScalingSolution)
    return solution


def over_series(document: Document, method: str | None = None) -> SeriesSolution:
    """The solution of a series document."""
    solution, _ = solve(problem_of(document), method, Limits())
    assert isinstance(solution, SeriesSolution)
    return solution


def random_document(seed: int) -> Document:
    """A small problem of any kind of costs, with prices, devices and launcher rules at times; half have a plan."""
    draw = random.Random(seed)
    E, C = draw.randint(2, 40), draw.randint(1, 12)
    K = draw.randint(1, min(E, 6))

    def around(low: float, high: float) -> float:
        return float(10 ** draw.uniform(low, high))

    def way() -> Document:
        return {
            "alpha_s": draw.choice([0, around(-6, -4)]),
            "beta_s_per_byte": draw.choice([0, around(-12, -9)]),
        }

    def experts() -> Document:
        return {"per_expert_s": around(-6, -3), "base_s": draw.choice([0, around(-5, -3)])}

    grid = sorted({1, 2 + int(around(0, 3)), *(1 + int(around(0, 3)) for _ in range(draw.randint(0, 6)))})
    sizes = sorted({draw.randint(1, -(-E // C)), *(draw.randint(1, 20) for _ in range(draw.randint(0, 4)))})
    steps = draw.choice([1.0, 1.0, 0.1])
    document: Document = {
        "task": "scaling",
        "num_layers": draw.randint(1, 20),
        "num_experts": E,
        "top_k": K,
        "slots_per_instance": C,
        "slo_tpot_s": around(-3, 0.3),
        "demand_tokens_per_s": around(0, 4.5),
        "context_tokens": draw.choice([0, 100, 3000]),
        "attention": {
            "floor_s": draw.choice([0, around(-5, -3)]),
            "per_request_s": around(-6, -4),
            "per_cached_token_s": draw.choice([0, around(-9, -7)]),
        },
        "moe": experts(),
        "comm": draw.choice(
            [
                {"kind": "constant", "time_s": around(-5, -3)},
                {
                    "kind": "two_phase",
                    "gpus_per_node": draw.randint(1, 8),
                    "bytes_per_request": around(2, 5),
                    **{name: way() for name in ("gather", "network", "multicast", "reduce")},
                },
            ]
        ),
        "a_max": draw.choice(
            [
                {"kind": "balanced_bound", "batch_grid": grid},
                {"kind": "printed_bound", "batch_grid": grid},
                {
                    "kind": "table",
                    "batch_grid": grid,
                    "expert_instances": sizes,
                    "values": [sorted(draw.uniform(0, C) * steps for _ in grid) for _ in sizes],
                },
            ]
        ),
        "memory": draw.choice(
            [
                None,
                {
                    "capacity_bytes": 8e10,
                    "attention_fixed_bytes": draw.choice([1e9, 7e10]),
                    "kv_bytes_per_token": draw.choice([0, 1e5, 1e6]),
                    "activation_bytes_per_request": draw.choice([0, 1e8]),
                },
            ]
        ),
        "limits": {
            "max_attention_instances": draw.randint(1, 30),
            "max_expert_instances": draw.randint(1, 20),
            "max_total_instances": draw.randint(2, 45),
        },
        "launcher_rules": draw.choice(["none", "none", "vllm_afd"]),
    }
    if draw.random() < 0.4:
        # The first price is so low that many attention instances are a tie.
        prices = {"attention_per_hour": draw.choice([1e-12, 1, 2, 3.5]), "expert_per_hour": draw.choice([1, 1.5, 2])}
        document["prices"] = prices
        if draw.random() < 0.6:
            cheaper = {"attention_per_hour": 1.0, "expert_per_hour": draw.choice([0.5, 1])}
            document["devices"] = [{"id": "own"}, {"id": "cheaper", "prices": cheaper, "moe": experts()}]
    return document


__all__ = ["Document", "const", "j", "merged", "over_series", "problem_of", "random_document", "scaled", "series"]
