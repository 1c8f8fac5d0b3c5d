"""The documentation names what a problem may name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from planner.derivation.moe.dtypes import Multiplied, Stored
from profiles import model_names

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")


def words(paragraph: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+(?:[-._]+[a-z0-9]+)*", paragraph))


def test_models_and_dtypes_are_listed() -> None:
    _, models, dtypes = PAGE.partition("### Names")[2].split("\n\n")[:3]
    assert set(model_names()) <= words(models)
    assert {*get_args(Multiplied), *get_args(Stored)} <= words(dtypes)
