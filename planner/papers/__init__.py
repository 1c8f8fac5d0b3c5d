"""The papers, found by folder. Listing names imports none of them."""

from __future__ import annotations

import importlib
import json
import pkgutil
from importlib import resources
from typing import Any, cast

from planner.errors import BadInputError
from planner.fields import nearest
from planner.json_text import Json
from planner.paper import Paper

AnyPaper = Paper[Any, Any, Any]


def names() -> list[str]:
    """The names of all papers, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


def get(name: str) -> AnyPaper:
    """One paper. Raises BadInputError naming the nearest known one."""
    known = names()
    if name not in known:
        raise BadInputError(
            f'unknown paper "{name[:80]}"{nearest(name, known)}; known: {", ".join(known)}',
            code="out_of_range",
            where="paper",
        )
    return cast(AnyPaper, importlib.import_module(f"{__name__}.{name}").PAPER)


def examples(name: str) -> list[str]:
    """Names of a paper's examples, ``default`` first."""
    folder = resources.files(f"{__name__}.{name}") / "examples"
    found = sorted(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))
    return sorted(found, key=lambda example: example != "default")


def example(name: str, example_name: str = "default") -> Json:
    """One runnable problem document. Raises BadInputError naming the nearest known example."""
    known = examples(get(name).name)
    if example_name not in known:
        raise BadInputError(
            f'{name} has no example "{example_name[:80]}"{nearest(example_name, known)}; known: {", ".join(known)}',
            code="out_of_range",
        )
    path = resources.files(f"{__name__}.{name}") / "examples" / f"{example_name}.json"
    return json.loads(path.read_text("utf-8"))
