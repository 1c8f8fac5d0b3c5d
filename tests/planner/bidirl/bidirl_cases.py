"""Problems of the page, and random small ones of every kind of stage time."""

from __future__ import annotations

import random
from typing import Any

from planner.papers.bidirl.problem import BidirlProblem
from planner.validation import validate

FOUR_B = {
    "rollout_on_train": {"in_s": 7.7, "out_s": 5.59},
    "train_on_rollout": {"in_s": 6.16, "out_s": 5.62, "grad_s": 1.21},
}
"""Published switch costs of the 4B model (page, section 11)."""
TWO_B = {
    "rollout_on_train": {"in_s": 5.54, "out_s": 4.2},
    "train_on_rollout": {"in_s": 3.58, "out_s": 3.4, "grad_s": 0.66},
}


def linear(alpha_s: float, beta_s: float, gamma_s_per_token: float = 0.0) -> dict[str, Any]:
    """A linear stage time."""
    return {"kind": "linear", "alpha_s": alpha_s, "beta_s": beta_s, "gamma_s_per_token": gamma_s_per_token}


def layout(name: str, gpus: int, time: dict[str, Any], memory_bytes: float = 40e9) -> dict[str, Any]:
    """A replica layout."""
    return {"id": name, "gpus": gpus, "memory_bytes": memory_bytes, "time": time}


def document() -> dict[str, Any]:
    """The problem file of the page (section 6)."""
    return {
        "paper": "bidirl",
        "format_version": "1.0",
        "cluster": {
            "gpus": 8,
            "gpus_per_node": 8,
            "gpu_memory_bytes": 80_000_000_000,
            "memory_reserve_fraction": 0.1,
        },
        "batch": {"prompt_groups": 64, "responses_per_group": 8, "max_response_tokens": 2048, "train_chunks": 64},
        "staleness": 1.0,
        "objective": "lambda_pipe",
        "layout_policy": "all",
        "allow_idle_gpus": False,
        "split_granularity_gpus": 1,
        "hot_switch": {"rollout_on_train": True, "train_on_rollout": True},
        "costs": {
            "kind": "explicit",
            "weight_sync_s": 2.0,
            "colocated_switch_s": 6.0,
            "rollout_layouts": [layout("tp2", 2, linear(10, 400))],
            "train_layouts": [layout("fsdp2", 2, linear(10, 300), 60e9)],
            "switch": FOUR_B,
        },
        "simulation": {"steps": 20, "work_factor": [1.0], "max_response_tokens": [2048]},
    }


def changed(base: dict[str, Any] | None = None, /, **changes: Any) -> dict[str, Any]:
    """A document with other values; ``cluster__gpus`` is the field gpus of cluster."""
    made = document() if base is None else base
    for path, value in changes.items():
        *parts, last = path.split("__")
        inner = made
        for part in parts:
            inner = inner[part]
        inner[last] = value
    return made


def problem(base: dict[str, Any] | None = None, /, **changes: Any) -> BidirlProblem:
    """A validated problem with other values."""
    return validate(BidirlProblem, changed(base, **changes))


def eight_and_eight(switch: dict[str, Any]) -> BidirlProblem:
    """Golden case 3: beta_r 2400, beta_t 1600, alpha 5, one-GPU replicas on 16 GPUs."""
    return problem(
        cluster__gpus=16,
        costs__rollout_layouts=[layout("tp1", 1, linear(5, 2400))],
        costs__train_layouts=[layout("fsdp1", 1, linear(5, 1600))],
        costs__switch=switch,
    )


def small(seed: int) -> BidirlProblem:
    """A random problem that the reference tries in no time; some have no split."""
    pick = random.Random(seed)
    longest = pick.choice([64, 2048])
    document_ = changed(
        cluster__gpus=pick.randint(2, 16),
        cluster__gpus_per_node=pick.choice([1, 2, 3, 4, 8]),
        batch={
            "prompt_groups": pick.randint(1, 40),
            "responses_per_group": pick.randint(1, 4),
            "max_response_tokens": longest,
            "train_chunks": pick.randint(1, 40),
        },
        staleness=pick.choice([0, 0.25, 0.5, 1, 3]),
        objective=pick.choice(["lambda_pipe", "period"]),
        layout_policy=pick.choice(["all", "all", "minimal"]),
        allow_idle_gpus=pick.random() < 0.4,
        split_granularity_gpus=pick.choice([1, 1, 1, 2]),
        hot_switch={"rollout_on_train": pick.random() < 0.6, "train_on_rollout": pick.random() < 0.6},
        simulation={"steps": 2},
    )
    costs = document_["costs"]
    costs["weight_sync_s"] = pick.choice([0, 3.5])
    for role, last in (("rollout", "lengths"), ("train", "stages")):
        costs[f"{role}_layouts"] = [
            layout(
                f"l{index}",
                pick.choice([1, 1, 2, 3, 4, 6, 8]),
                _time(pick, last, longest),
                pick.choice([1e9, 1e9, 1e9, 9e10]),
            )
            for index in pick.sample(range(9), pick.randint(1, 3))
        ]
    return validate(BidirlProblem, document_)


def _time(pick: random.Random, last: str, longest: int) -> dict[str, Any]:
    kind = pick.choice(["linear", "table", last, last])
    if kind == "linear":
        return linear(pick.choice([1, 5]), pick.choice([0, 60, 100]), pick.choice([0, 0.001]))
    if kind == "table":
        replicas = sorted(pick.sample(range(1, 10), pick.randint(2, 9)))
        return {"kind": kind, "replicas": replicas, "time_s": [pick.choice([10, 20, 30.5]) for _ in replicas]}
    if kind == "lengths":
        return {
            "kind": kind,
            "alpha_s": pick.choice([0, 2]),
            "prompt_tokens": 100,
            "prefill_s_per_token": pick.choice([0, 1e-4]),
            "mean_response_tokens": pick.choice([1, longest / 2, longest]),
            "concurrency": pick.choice([1, 4, 64]),
            "step_base_s": 0.01,
            "step_per_sequence_s": pick.choice([0, 0.001]),
        }
    stages = [
        {
            "name": str(k),
            "fixed_s": pick.choice([0, 1]),
            "chunks": pick.randint(1, 30),
            "chunk_s": pick.choice([0.5, 2]),
        }
        for k in range(pick.randint(1, 3))
    ]
    return {"kind": "stages", "stages": stages}
