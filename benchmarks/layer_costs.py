"""Random FinDEP problems: costs spread over two decades, one split, seeds fixed.

``random.Random(f"findep/{name}/{seed}")`` draws every cost log-uniform between 0.1 and 10 s, a task's constant part
(divided by 4) and its part at the middle of the box, so that any of the four resources may be the busiest.
"""

from __future__ import annotations

import random

from planner.papers.findep.problem import FindepProblem
from planner.validation import validate

Line = dict[str, float]


def random_problem(name: str, seed: int, num_layers: int, box: tuple[int, int, int], rounding: str) -> FindepProblem:
    """One problem without memory and limits; ``box`` is max_m_a, max_r1, max_r2."""
    draw = random.Random(f"findep/{name}/{seed}")
    max_m_a, max_r1, max_r2 = box
    experts = draw.choice([4, 6, 8])
    ag, eg = draw.choice([1, 2, 4]), draw.choice([1, 2, 4])
    top_k, tokens = draw.choice([1, 2]), draw.choice([8, 16])

    def cost(slope: str, usual: float) -> Line:
        return {"alpha_s": 10 ** draw.uniform(-1, 1) / 4, slope: 10 ** draw.uniform(-1, 1) / usual}

    samples = (1 + max_m_a) / 2
    # Of a micro-batch in a few chunks, the way it runs well.
    per_expert = samples * ag * top_k * tokens / experts / 2
    hosted = -(-experts // eg)
    return validate(
        FindepProblem,
        {
            "num_layers": num_layers,
            "num_experts": experts,
            "top_k": top_k,
            "tokens_per_sample": tokens,
            "attention": cost("beta_s_per_sample", samples),
            "shared_expert": cost("beta_s_per_sample", samples),
            "expert": {name: value / hosted for name, value in cost("beta_s_per_token", per_expert).items()},
            "splits": [
                {
                    "attention_gpus": ag,
                    "expert_gpus": eg,
                    "a2e": cost("beta_s_per_token", per_expert * hosted),
                    "e2a": cost("beta_s_per_token", per_expert * hosted),
                }
            ],
            "search": {"max_m_a": max_m_a, "max_r1": max_r1, "max_r2": max_r2, "token_rounding": rounding},
        },
    )
