"""The golden cases Z1 to Z7 (page section 10) and small random problems."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from planner.papers.zellige.instance import Instance, compile_instance
from planner.papers.zellige.problem import ZelligeProblem
from planner.validation import validate

DEGREES = {"whole": (1, 1, 1), "q2": (2, 1, 1), "q3": (3, 1, 1), "q4": (4, 1, 1), "k2": (1, 1, 2), "k4": (1, 1, 4)}

Options = dict[str, tuple[float, float]]


def problem(
    num_ranks: int,
    cap: float,
    groups: dict[str, tuple[int, Options]],
    *,
    node: int | None = None,
    configs: tuple[str, ...] = (),
    scale: float = 1.0,
) -> ZelligeProblem:
    """A problem from {group: (members, {config: (seconds, bytes)})}; ``scale`` multiplies all seconds."""
    used = configs or sorted({config for _, options in groups.values() for config in options})
    document: dict[str, Any] = {
        "paper": "zellige",
        "cluster": {"num_ranks": num_ranks, "gpus_per_node": node or num_ranks, "memory_cap_bytes": cap},
        "configs": [dict(zip("qhk", DEGREES[c], strict=True)) | {"id": c} for c in used],
        "groups": [
            {
                "id": name,
                "sequence_ids": [f"{name}{i}" for i in range(members)],
                "options": [
                    {"config": c, "time_s": time * scale, "memory_bytes": memory}
                    for c, (time, memory) in options.items()
                ],
            }
            for name, (members, options) in groups.items()
        ],
    }
    return validate(ZelligeProblem, document)


def golden(name: str, scale: float = 1.0) -> ZelligeProblem:
    """One of Z1 to Z7."""
    ranks, cap, node, groups = _GOLDEN[name]
    return problem(ranks, cap, groups, node=node, scale=scale)


def golden_instance(name: str, scale: float = 1.0) -> Instance:
    """One of Z1 to Z7, compiled."""
    return compile_instance(golden(name, scale))


_GOLDEN: dict[str, tuple[int, float, int, dict[str, tuple[int, Options]]]] = {
    "Z1": (
        4,
        100,
        4,
        {
            "img": (4, {"whole": (1.0, 8)}),
            "long": (1, {"whole": (8.0, 60), "q2": (4.5, 35), "q4": (2.5, 20)}),
            "mid": (2, {"whole": (4.0, 30), "q2": (2.25, 18)}),
        },
    ),
    "Z2": (
        4,
        100,
        4,
        {
            "long": (1, {"whole": (28, 1), "q2": (14, 1), "q4": (7, 1)}),
            "fill": (8, {"whole": (1, 1), "q2": (0.5, 1), "q4": (0.25, 1)}),
        },
    ),
    "Z3": (
        4,
        100,
        4,
        {
            "long": (1, {"whole": (8, 1), "q2": (4, 1), "q4": (2, 1)}),
            "rest": (4, {"whole": (2, 1), "q2": (1, 1), "q4": (0.5, 1)}),
        },
    ),
    "Z4": (
        4,
        24,
        4,
        {
            "v": (2, {"whole": (8.0, 28), "q2": (4.16, 18), "k2": (4.8, 12), "q4": (2.24, 11), "k4": (2.72, 6)}),
            "fill": (4, {"whole": (1.0, 7)}),
        },
    ),
    "Z5": (2, 10, 2, {"v": (3, {"whole": (4.0, 8), "q2": (2.5, 5)})}),
    "Z6": (
        4,
        100,
        2,
        {"v": (1, {"whole": (12, 90), "q2": (6.25, 50), "q4": (4.0, 28)}), "fill": (6, {"whole": (1.5, 8)})},
    ),
    "Z7": (4, 100, 4, {"v": (5, {"whole": (6.0, 1), "q2": (5.5, 1)})}),
}

EXPECTED = {"Z1": (5.5, 1), "Z2": (9.0, 1), "Z3": (4.0, 1), "Z4": (5.8, 2), "Z6": (6.25, 1), "Z7": (11.5, 1)}
"""(T, K), by exhaustive search (page section 10)."""


@st.composite
def small_problems(draw: st.DrawFn, most_sequences: int = 5) -> ZelligeProblem:
    """Up to 4 ranks and a few sequences; prices are multiples of 1/4 s and bytes are whole, so sums are exact."""
    ranks, node = draw(st.sampled_from([(1, 1), (2, 2), (3, 3), (4, 4), (4, 2)]))
    usable = [c for c in DEGREES if _degree(c) <= ranks]
    groups: dict[str, tuple[int, Options]] = {}
    left = most_sequences
    for name in "abc":
        members = draw(st.integers(1, max(1, min(3, left))))
        offered = draw(st.lists(st.sampled_from(usable), min_size=1, unique=True))
        options = {c: (draw(st.integers(1, 40)) / 4, float(draw(st.integers(0, 10)))) for c in offered}
        groups[name] = (members, options)
        left -= members
        if left <= 0:
            break
    cap = float(draw(st.integers(8, 30)))
    return problem(ranks, cap, groups, node=node, configs=tuple(usable))


def _degree(config: str) -> int:
    q, h, k = DEGREES[config]
    return q * h * k
