"""Derived problems of Compass for tests."""

from __future__ import annotations

from typing import Any

import pytest

from planner.errors import BadInputError
from planner.paper import Derivation, DeriveOptions
from planner.papers.compass.cost import derive
from planner.papers.compass.derived import CompassDerivedProblem
from planner.papers.compass.problem import CompassProblem, Operator
from planner.validation import validate

LINK = {"bandwidth_bytes_per_s": 50e9, "latency_s": 5e-6}


def document(rules: str = "none", **changes: Any) -> dict[str, Any]:
    """Llama-3.1-70B over 8 H100, 8,192 tokens; changes are of the derive object, None takes a field away."""
    fields: dict[str, Any] = {
        "profile": "h100-sxm",
        "model": "llama-3.1-70b",
        "tp_size": 8,
        "sequence_tokens": 8192,
        "cluster": {"num_ranks": 8, "gpus_per_node": 8},
    }
    fields = {name: value for name, value in (fields | changes).items() if value is not None}
    return {"paper": "compass", "launcher_rules": rules, "derive": fields}


def derived(given: dict[str, Any], **options: Any) -> Derivation[CompassProblem]:
    """The explicit problem and its account."""
    return derive(validate(CompassDerivedProblem, given), DeriveOptions(**options))


def operators(given: dict[str, Any], **options: Any) -> dict[str, Operator]:
    """The operators of the explicit problem by id."""
    return {operator.id: operator for operator in derived(given, **options).problem.operators}


def accounts(given: dict[str, Any]) -> dict[str, Any]:
    """What was priced for each operator, by id."""
    found: dict[str, Any] = derived(given).derive["resolved"]["operators"]
    return found


def table(operator: Operator) -> dict[int, float]:
    """Seconds by degree; empty where there is no table."""
    return {point.degree: point.time_s for point in operator.inter_decom_table or ()}


def refused(given: dict[str, Any], **options: Any) -> BadInputError:
    """The complaint about a problem that must be refused."""
    with pytest.raises(BadInputError) as raised:
        derived(given, **options)
    return raised.value
