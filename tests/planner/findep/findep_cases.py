"""Problems of the golden cases, and random ones, as documents and typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from planner.papers.findep import problem as problem_file
from planner.papers.findep.problem import FindepProblem
from planner.validation import validate

Document = dict[str, Any]


def example() -> Document:
    """The problem of `plan example findep`, with its memory."""
    document: Document = json.loads((Path(problem_file.__file__).parent / "examples" / "default.json").read_text())
    return document


def b(**changes: Any) -> Document:
    """The page's B: that example without memory; ``search`` is merged, other fields are replaced."""
    document = example()
    del document["memory"]
    search = changes.pop("search", {})
    document["search"] |= search
    return document | changes


def fixed(
    attention: float, shared: float, transfer: float, expert: float, num_layers: int, max_r1: int, **changes: Any
) -> Document:
    """The page's fixed(t_a, t_s, t_x, t_e; T, R1): constant times, one sample, so r2 = 1. No shared experts: 0."""
    document = b(
        num_layers=num_layers,
        num_experts=2,
        top_k=1,
        attention=per_sample(attention),
        expert=per_token(expert),
        splits=[{"attention_gpus": 2, "expert_gpus": 2, "a2e": per_token(transfer)}],
        search={"max_m_a": 1, "max_r1": max_r1},
    )
    document["shared_expert"] = per_sample(shared) if shared else None
    return document | changes


def per_sample(alpha_s: float, beta: float = 0.0) -> Document:
    return {"alpha_s": alpha_s, "beta_s_per_sample": beta}


def per_token(alpha_s: float, beta: float = 0.0) -> Document:
    return {"alpha_s": alpha_s, "beta_s_per_token": beta}


def paper_constants(**search: int) -> Document:
    """G10: the constants printed in the paper, unit unstated, with DeepSeek-V2's geometry in the MHA form."""
    a_gm, b_gm, a_attn, b_attn, a_c, b_c = 0.17, 8.59e-11, 0.15, 1.54e-11, 0.37, 2.55e-6
    M, H, heads, d_k, d_v, shared, S = 5120, 1536, 128, 192, 128, 2, 2048
    weights = 2 * M * heads * d_k + 2 * M * heads * d_v
    return {
        "paper": "findep",
        "num_layers": 2,
        "num_experts": 160,
        "top_k": 6,
        "tokens_per_sample": S,
        "attention": per_sample(4 * a_gm + a_attn, b_gm * S * weights + b_attn * heads * S**2 * (d_k + d_v)),
        "shared_expert": per_sample(3 * shared * a_gm, 3 * shared * b_gm * S * M * H),
        "expert": per_token(3 * a_gm, 3 * b_gm * M * H),
        "splits": [{"attention_gpus": 4, "expert_gpus": 4, "a2e": per_token(a_c, b_c * M)}],
        "search": {"max_m_a": 4, "max_r1": 4, "max_r2": 64} | search,
    }


def problem_of(document: Document) -> FindepProblem:
    """Typed and in canonical order."""
    return validate(FindepProblem, json.loads(json.dumps(document))).sorted()


def random_document(source: Generator, *, layers: int = 12, box: tuple[int, int, int] = (4, 4, 6)) -> Document:
    """Costs over four decades, splits, rounding, memory and limits as they come."""

    def amount() -> float:
        return float(10 ** source.uniform(-2, 2))

    def line(per: Any) -> Document:
        parts = (amount(), amount() / 4)
        kept = source.integers(3)
        return dict(per(*(part if kept in (2, place) else 0.0 for place, part in enumerate(parts))))

    experts = int(source.integers(1, 9))
    splits = {(int(source.integers(1, 5)), int(source.integers(1, experts + 1))) for _ in range(source.integers(1, 4))}
    document: Document = {
        "paper": "findep",
        "num_layers": int(source.integers(1, layers + 1)),
        "num_experts": experts,
        "top_k": int(source.integers(1, experts + 1)),
        "tokens_per_sample": int(source.choice([1, 2, 5])),
        "attention": line(per_sample),
        "shared_expert": line(per_sample) if source.random() < 0.7 else None,
        "expert": line(per_token),
        "splits": [
            {
                "attention_gpus": ag,
                "expert_gpus": eg,
                "a2e": line(per_token),
                "e2a": line(per_token) if source.random() < 0.4 else None,
            }
            for ag, eg in sorted(splits)
        ],
        "search": {
            "max_m_a": int(source.integers(1, box[0] + 1)),
            "max_r1": int(source.integers(1, box[1] + 1)),
            "max_r2": int(source.integers(1, box[2] + 1)),
            "orders": [["AASS"], ["ASAS"], ["AASS", "ASAS"]][int(source.choice([0, 1, 2, 2, 2]))],
            "token_rounding": str(source.choice(["real", "ceil"])),
        },
        "objective": str(source.choice(["tokens_per_s", "tokens_per_s_per_gpu"])),
        "launcher_rules": "vllm_afd" if source.random() < 0.15 else "none",
    }
    if source.random() < 0.5:
        document["memory"] = {
            "attention_capacity_bytes": float(source.integers(8, 60)),
            "attention_fixed_bytes": {"weights": 3.0, "reserve": 1.0},
            "attention_bytes_per_sample": float(source.integers(1, 5)),
            "attention_workspace_bytes_per_sample": 1.0,
            "expert_capacity_bytes": float(source.integers(20, 120)),
            "expert_fixed_bytes": 4.0,
            "expert_bytes_per_expert": float(source.integers(1, 20)),
            "expert_buffer_bytes_per_token": 0.5,
        }
    return document


def seeded(seed: int) -> Generator:
    return np.random.default_rng(seed)
