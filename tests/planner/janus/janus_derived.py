"""A derived problem of Janus, as a document, derived, and refused."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from planner.errors import BadInputError
from planner.paper import Derivation, DeriveOptions
from planner.papers.janus.cost import derive
from planner.papers.janus.derived import JanusDerivedProblem
from planner.papers.janus.problem import JanusProblem, SizingProblem
from planner.validation import validate

DOCUMENT: dict[str, Any] = {
    "paper": "janus",
    "task": "scaling",
    "derive": {
        "profile": "h200-sxm",
        "model": "qwen3-235b-a22b",
        "extrapolate": "roofline",
        "cluster": {
            "num_ranks": 32,
            "gpus_per_node": 8,
            "inter_node": {"bandwidth_bytes_per_s": 50e9, "latency_s": 5e-6},
        },
    },
    "slo_tpot_s": 0.05,
    "demand_tokens_per_s": 2000.0,
    "context_tokens": 1000,
}
"""Qwen3-235B on four nodes of H200."""


def document(**changes: Any) -> dict[str, Any]:
    """The document with fields changed: those of ``derive`` by name, others as ``top``; None drops a field."""
    made = copy.deepcopy(DOCUMENT)
    for holder, fields in ((made, changes.pop("top", {})), (made["derive"], changes)):
        for name, value in fields.items():
            holder.pop(name, None)
            if value is not None:
                holder[name] = value
    return made


def derivation(folder: Path = Path(), **changes: Any) -> Derivation[JanusProblem]:
    """What the changed document is derived to."""
    return derive(validate(JanusDerivedProblem, document(**changes)), DeriveOptions(base_folder=str(folder)))


def derived(**changes: Any) -> SizingProblem:
    """The explicit problem of the changed document."""
    made = derivation(**changes).problem
    assert isinstance(made, SizingProblem)
    return made


def refused(**changes: Any) -> BadInputError:
    """The complaint about the changed document."""
    with pytest.raises(BadInputError) as raised:
        derivation(**changes)
    return raised.value
