"""The standard mixes of the Zellige page, section 12: seeded image and video lengths, priced for real models.

Drawing rule of M(N, load, V, seed). ``random.Random(f"M/{N}/{load}/{V}/{seed}")`` gives uniform numbers u in [0, 1);
a draw takes element int(u * size) of a list. First video lengths are drawn from VIDEO_TOKENS until their sum reaches
V * load * N, then image lengths from IMAGE_TOKENS until theirs reaches (1 - V) * load * N. The draw that reaches the
mark is kept, so a mix overshoots each mark by less than one sequence. N ranks, load in tokens a rank, V in percent.

Drawing rule of the synthetic class S(N, S, seed), S <= 4N: S lengths; each is a video with probability 0.3, of
lognormal(ln 60000, 0.8) tokens cut to 8192..497760 and rounded up to a multiple of 120, else an image length from
IMAGE_TOKENS as above; the first is always a video.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from planner.paper import DeriveOptions
from planner.papers.zellige.cost import derive
from planner.papers.zellige.derived import ZelligeDerivedProblem
from planner.papers.zellige.problem import ZelligeProblem
from planner.validation import validate

IMAGE_TOKENS = (1024, 2304, 4096, 9216)
VIDEO_TOKENS = (32760, 63960, 75600, 147600, 334560)
SEEDS = range(6)
VIDEO_SHARES_PERCENT = (35, 40, 45, 50, 55, 60)


def standard_mix(num_ranks: int, load_tokens: int, video_percent: int, seed: int) -> Counter[int]:
    """M(N, load, V, seed): how many sequences of each length."""
    draw = random.Random(f"M/{num_ranks}/{load_tokens}/{video_percent}/{seed}")
    video_mark = num_ranks * load_tokens * video_percent / 100
    lengths: Counter[int] = Counter()
    for choices, mark in ((VIDEO_TOKENS, video_mark), (IMAGE_TOKENS, num_ranks * load_tokens - video_mark)):
        reached = 0
        while reached < mark:
            tokens = choices[int(draw.random() * len(choices))]
            lengths[tokens] += 1
            reached += tokens
    return lengths


def synthetic_mix(num_ranks: int, num_sequences: int, seed: int) -> Counter[int]:
    """S(N, S, seed): few sequences a rank, lognormal video lengths (30 %)."""
    draw = random.Random(f"S/{num_ranks}/{num_sequences}/{seed}")
    lengths: Counter[int] = Counter()
    for index in range(num_sequences):
        if draw.random() < 0.3 or index == 0:
            tokens = min(max(math.exp(draw.gauss(math.log(60000), 0.8)), 8192), 497760)
            lengths[math.ceil(tokens / 120) * 120] += 1
        else:
            lengths[IMAGE_TOKENS[int(draw.random() * len(IMAGE_TOKENS))]] += 1
    return lengths


def mix_document(
    lengths: Mapping[int, int],
    num_ranks: int,
    model: str = "wan2.1-1.3b",
    *,
    profile: str = "h200-sxm",
    gpus_per_node: int = 8,
    capacity_bytes: float | None = None,
) -> dict[str, Any]:
    """The derived problem of a mix: full checkpointing, 400 Gb/s a GPU between nodes, default configs (degrees 1..64).

    ``capacity_bytes`` None is the device's own memory, but 1 TB for the 14B model: full checkpointing keeps 0.6 MB a
    token of it, 213 GB a rank at 350K tokens, and the page's classes are about time, with memory slack.
    """
    if capacity_bytes is None and model == "wan2.1-14b":
        capacity_bytes = 1e12
    records = [{"tokens": tokens, "count": lengths[tokens]} for tokens in sorted(lengths)]
    return {
        "paper": "zellige",
        "derive": {
            "profile": profile,
            "model": model,
            "extrapolate": "roofline",
            "cluster": {
                "num_ranks": num_ranks,
                "gpus_per_node": gpus_per_node,
                "inter_node": {"bandwidth_bytes_per_s": 50e9, "latency_s": 5e-6},
            },
            "memory": {"capacity_bytes": capacity_bytes},
            "batch": {"records": records},
        },
    }


def mix_problem(
    lengths: Mapping[int, int],
    num_ranks: int,
    model: str = "wan2.1-1.3b",
    *,
    profile: str = "h200-sxm",
    gpus_per_node: int = 8,
    capacity_bytes: float | None = None,
) -> ZelligeProblem:
    """The explicit problem of a mix, priced by the planner's own equations (16) to (22)."""
    document = mix_document(
        lengths, num_ranks, model, profile=profile, gpus_per_node=gpus_per_node, capacity_bytes=capacity_bytes
    )
    return derive(validate(ZelligeDerivedProblem, document), DeriveOptions()).problem
