"""A derived problem of FinDEP for tests, and what it becomes."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from planner.derivation.clusters import placed
from planner.derivation.moe.model import moe_model
from planner.errors import BadInputError
from planner.paper import Derivation, DeriveOptions
from planner.papers.findep.cost import derive
from planner.papers.findep.derived import FindepDerivedProblem
from planner.papers.findep.pools import pools_of
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.setting import Setting
from planner.validation import validate
from profiles.library import load
from profiles.profile import Profile

DOCUMENT: dict[str, Any] = {
    "paper": "findep",
    "format_version": "1.0",
    "derive": {
        "profile": "h200-sxm",
        "model": "qwen3-235b-a22b",
        "extrapolate": "roofline",
        "phase": "prefill",
        "prompt_tokens": 2048,
        "cluster": {"num_ranks": 8, "gpus_per_node": 8},
    },
    "search": {"max_m_a": 4, "max_r1": 2, "max_r2": 8},
}


def document(**changes: Any) -> dict[str, Any]:
    """The document above with fields replaced: those that ``derive`` does not have are outside it; None removes one."""
    made = copy.deepcopy(DOCUMENT)
    for name, value in changes.items():
        outside = name in FindepDerivedProblem.model_fields
        holder = made if outside else made["derive"]
        holder[name] = value
        if value is None and name != "memory":
            del holder[name]
    return made


def derived(options: DeriveOptions | None = None, **changes: Any) -> Derivation[FindepProblem]:
    return derive(validate(FindepDerivedProblem, document(**changes)), options or DeriveOptions())


def refused(options: DeriveOptions | None = None, **changes: Any) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        derived(options, **changes)
    return caught.value


def setting(profile: Profile | None = None, **changes: Any) -> Setting:
    """What prices depend on, for tests of single prices."""
    problem, cluster = placed(made := validate(FindepDerivedProblem, document(**changes)), made.derive.cluster, Path())
    given = problem.derive
    model = moe_model(given.model, Path())
    found = profile or load(given.profile or "h200-sxm")
    return Setting(given, problem.search, model, found, cluster, pools_of(given, model))
