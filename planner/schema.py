"""JSON Schema 2020-12 of the documents, from the models that validate them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from planner import papers
from planner.envelope import FORMAT_VERSION, Envelope
from planner.json_text import Json
from planner.validation import forms_of

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def problem_schema(paper_name: str) -> dict[str, Json]:
    """Schema of a paper's problem file: the explicit form or the derived one."""
    paper = papers.get(paper_name)
    models: list[tuple[type[BaseModel], Any]] = [
        (form, "validation") for model in (paper.problem_model, paper.derived_model) for form in forms_of(model)
    ]
    references, definitions = models_json_schema(models)
    forms = [references[model] for model in models]
    return _head(f"problem:{paper.name}", f"{paper.title}: problem") | {"anyOf": forms, **definitions}


def plan_schema() -> dict[str, Json]:
    """Schema of the plan file; problem and solution have the paper's own."""
    return Envelope.model_json_schema() | _head("plan", "Plan")


def profile_schema() -> dict[str, Json]:
    """Schema of a hardware profile."""
    from profiles.document import profile_schema as schema

    return schema()


def _head(name: str, title: str) -> dict[str, Json]:
    return {"$schema": DIALECT, "$id": f"urn:girih:schema:{name}:{FORMAT_VERSION}", "title": title}
