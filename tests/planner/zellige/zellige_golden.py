"""Problems and solutions of the page's golden cases (sections 6, 7 and 10), as plain documents."""

from __future__ import annotations

import copy
import json
from typing import Any

from planner.papers.zellige.problem import ZelligeProblem
from planner.papers.zellige.solution import ZelligeSolution
from planner.validation import validate

Z1_PROBLEM = json.loads("""
{"paper": "zellige", "format_version": "1.0",
 "cluster": {"num_ranks": 4, "gpus_per_node": 4, "memory_cap_bytes": 100},
 "rank_sets": {"policy": "aligned"},
 "configs": [{"id": "whole", "q": 1, "h": 1, "k": 1}, {"id": "q2", "q": 2, "h": 1, "k": 1}, {"id": "q4", "q": 4, "h": 1, "k": 1}],
 "groups": [
  {"id": "img", "sequence_ids": ["i0", "i1", "i2", "i3"], "options": [{"config": "whole", "time_s": 1.0, "memory_bytes": 8}]},
  {"id": "long", "sequence_ids": ["x"], "tokens": 1001, "options": [{"config": "whole", "time_s": 8.0, "memory_bytes": 60},
    {"config": "q2", "time_s": 4.5, "memory_bytes": 35}, {"config": "q4", "time_s": 2.5, "memory_bytes": 20}]},
  {"id": "mid", "sequence_ids": ["m0", "m1"], "options": [{"config": "whole", "time_s": 4.0, "memory_bytes": 30}, {"config": "q2", "time_s": 2.25, "memory_bytes": 18}]}],
 "search": {"split_epsilon": 0.0}}
""")  # noqa: E501

Z1_SOLUTION = json.loads("""
{
 "placements": [{"sequence_id": "i0", "config": "whole", "ranks": [0]}, {"sequence_id": "i1", "config": "whole", "ranks": [1]},
  {"sequence_id": "i2", "config": "whole", "ranks": [2]}, {"sequence_id": "i3", "config": "whole", "ranks": [3]},
  {"sequence_id": "m0", "config": "whole", "ranks": [2]}, {"sequence_id": "m1", "config": "whole", "ranks": [3]}, {"sequence_id": "x", "config": "q2", "ranks": [0, 1]}],
 "rank_segments": [
  {"rank": 0, "segments": [{"index": 0, "config": "q2", "ranks": [0, 1], "position": 0, "sequence_ids": ["x"], "token_ranges": [[0, 501]]},
                           {"index": 1, "config": "whole", "ranks": [0], "position": 0, "sequence_ids": ["i0"]}]},
  {"rank": 1, "segments": [{"index": 0, "config": "q2", "ranks": [0, 1], "position": 1, "sequence_ids": ["x"], "token_ranges": [[501, 1001]]},
                           {"index": 2, "config": "whole", "ranks": [1], "position": 0, "sequence_ids": ["i1"]}]},
  {"rank": 2, "segments": [{"index": 3, "config": "whole", "ranks": [2], "position": 0, "sequence_ids": ["i2", "m0"]}]},
  {"rank": 3, "segments": [{"index": 4, "config": "whole", "ranks": [3], "position": 0, "sequence_ids": ["i3", "m1"]}]}],
 "metrics": {"makespan_s": 5.5, "replay_makespan_s": 5.5, "split_sequences": 1, "rank_time_s": [5.5, 5.5, 5.0, 5.0], "rank_memory_bytes": [43, 43, 38, 38]}}
""")  # noqa: E501

Group = tuple[int, dict[str, tuple[float, float]]]
"""Sequences, and for each config id its (time_s, memory_bytes)."""


def problem(
    num_ranks: int,
    configs: dict[str, tuple[int, int, int]],
    groups: dict[str, Group],
    cap: float = 1e9,
    node: int | None = None,
    **rank_sets: Any,
) -> ZelligeProblem:
    """A problem from tables; sequences of group "a" are a0, a1, ..."""
    document = {
        "cluster": {"num_ranks": num_ranks, "gpus_per_node": node or num_ranks, "memory_cap_bytes": cap},
        "configs": [{"id": name, "q": q, "h": h, "k": k} for name, (q, h, k) in configs.items()],
        "groups": [
            {
                "id": name,
                "sequence_ids": [f"{name}{i}" for i in range(count)],
                "options": [{"config": c, "time_s": t, "memory_bytes": m} for c, (t, m) in options.items()],
            }
            for name, (count, options) in groups.items()
        ],
    }
    return validate(ZelligeProblem, document | ({"rank_sets": rank_sets} if rank_sets else {}))


def z1_problem(**changes: Any) -> ZelligeProblem:
    return validate(ZelligeProblem, copy.deepcopy(Z1_PROBLEM) | changes)


def z1_document() -> Any:
    return copy.deepcopy(Z1_SOLUTION)


def solution(document: Any) -> ZelligeSolution:
    return validate(ZelligeSolution, document)


SPLITS = {"whole": (1, 1, 1), "q2": (2, 1, 1), "q4": (4, 1, 1)}


def z2_problem() -> ZelligeProblem:
    """Theorem 2: u = 7, δ = 1, p = 2 on four ranks."""
    return problem(
        4,
        SPLITS,
        {
            "big": (1, {"whole": (28.0, 0), "q2": (14.0, 0), "q4": (7.0, 0)}),
            "fill": (8, {"whole": (1.0, 0), "q2": (0.5, 0), "q4": (0.25, 0)}),
        },
    )


def z3_problem() -> ZelligeProblem:
    """Theorem 1: works 8, 2, 2, 2, 2, ideal."""
    ideal = {w: {"whole": (w, 0.0), "q2": (w / 2, 0.0), "q4": (w / 4, 0.0)} for w in (8.0, 2.0)}
    return problem(4, SPLITS, {"big": (1, ideal[8.0]), "fill": (4, ideal[2.0])})
