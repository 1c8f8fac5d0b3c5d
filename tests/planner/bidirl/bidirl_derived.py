"""A small derived problem, and what derives it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planner.paper import Derivation, DeriveOptions
from planner.papers.bidirl import cost
from planner.papers.bidirl.derived import BidirlDerivedProblem
from planner.papers.bidirl.problem import BidirlProblem
from planner.validation import validate

EXAMPLES = Path(cost.__file__).parent / "examples"


def document() -> dict[str, Any]:
    """The derived example, fresh: Llama-3.1-8B on four nodes of eight GPUs of 80 GB."""
    found: dict[str, Any] = json.loads((EXAMPLES / "derived.json").read_text())
    return found


def derivation(document: dict[str, Any], folder: Path | str = ".") -> Derivation[BidirlProblem]:
    """The explicit problem and its account."""
    return cost.derive(validate(BidirlDerivedProblem, document), DeriveOptions(base_folder=str(folder)))


def derived(document: dict[str, Any], folder: Path | str = ".") -> BidirlProblem:
    """The explicit problem."""
    return derivation(document, folder).problem
