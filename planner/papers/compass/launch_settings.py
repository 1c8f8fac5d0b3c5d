"""What Megatron-LM with TransformerEngine is told of a plan: an entry of the overlap YAML an operator, and flags.

Source: the code of both, read for the page's section "What a launcher can start".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from planner.papers.compass.calls import Call
from planner.papers.compass.problem import AG_NAMES, RS_NAMES

ON = "--tp-comm-overlap"
NO_AG = "--disable-tp-comm-overlap-ag"
NO_RS = "--disable-tp-comm-overlap-rs"
EXCEPTED = {"qkv_fprop": "tp_comm_overlap_disable_qkv", "fc1_fprop": "tp_comm_overlap_disable_fc1"}
"""Settings of Megatron's model configuration: it has no flags for these."""


class Entry(NamedTuple):
    """One operator under ``--tp-comm-overlap-cfg``; "" where a key does not belong there."""

    method: str
    aggregate: str
    num_splits: str


def entry(call: Call) -> Entry | None:
    """The operator's entry; None where it has none: a flag keeps it in sequence."""
    operator, degree = call.operator, call.choice.degree
    if not call.overlaps:
        return None
    if operator.op == "ag_gemm":
        return Entry("ring_exchange", "false" if degree == operator.tp_size else "true", "")
    return Entry("pipeline", "", str(degree))


def named(made: Sequence[Call]) -> list[Call]:
    """The operators that the launcher knows."""
    return [call for call in made if call.operator.gemm_name in AG_NAMES + RS_NAMES]


def off(call: Call, made: Sequence[Call]) -> str:
    """The flag that keeps an operator in sequence; empty where it overlaps."""
    name = call.operator.gemm_name or ""
    if call.overlaps:
        return ""
    if name in RS_NAMES:
        return NO_RS
    gathering = any(other.overlaps for other in made if other.operator.gemm_name in AG_NAMES)
    return EXCEPTED.get(name, NO_AG) if gathering else NO_AG


def flags(made: Sequence[Call]) -> list[str]:
    """What to start Megatron with, in order; empty where nothing overlaps and so no flag is needed."""
    known = named(made)
    if not any(call.overlaps for call in known):
        return []
    return [ON, *sorted({off(call, made) for call in known} - {""})]
