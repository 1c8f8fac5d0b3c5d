"""The plan file around a paper's problem and solution."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, Field

from planner.certificate import Certificate
from planner.errors import BadInputError
from planner.json_text import Json
from planner.validation import Document, Many

FORMAT_VERSION = "1.0"
_VERSION = re.compile(r"\d{1,9}\.\d{1,9}", re.ASCII)

Share = Annotated[float, Field(ge=0, le=1)]


class Inputs(Document):
    """What the plan was made from, by digest."""

    problem_sha256: str
    derive: dict[str, Json] | None = None
    profile: str | None = None
    profile_sha256: str | None = None
    arrays: dict[str, str] = Field(default_factory=dict)


class MemoryEntry(Document):
    """Bytes of one cause in one place."""

    where: str
    cause: str
    bytes: float
    capacity_bytes: float


class WarningEntry(Document):
    """A stated caution."""

    code: str
    message: str


class Solver(Document):
    """What produced the plan, enough to produce it again."""

    engine: str
    version: str
    method: str
    seed: int = Field(ge=0)
    effort: float


class Envelope(Document):
    """The plan file. ``problem`` and ``solution`` are validated by the paper's own models."""

    format_version: str
    paper: str
    planner: str
    inputs: Inputs
    problem: dict[str, Json]
    solution: dict[str, Json]
    certificate: Certificate
    memory: Many[MemoryEntry]
    warnings: Many[WarningEntry]
    sources: dict[str, Share]
    cost_error: dict[str, float] | None
    solver: Solver


def dump_model(model: BaseModel) -> dict[str, Json]:
    """A model as a document, without absent optional fields."""
    return model.model_dump(exclude_none=True)


def check_version(document: dict[str, Json], what: str) -> None:
    """Accept any minor of our major. Raises BadInputError (unsupported_version) naming the version."""
    version = document.get("format_version", FORMAT_VERSION)
    major = version.split(".")[0] if isinstance(version, str) and _VERSION.fullmatch(version) else None
    if major != FORMAT_VERSION.split(".")[0]:
        bare = isinstance(version, int | float) and not isinstance(version, bool)
        quote = f', and a string: quote it, "{FORMAT_VERSION}"' if bare else ""
        raise BadInputError(
            f"this {what} has format_version {version!r}; this planner reads {FORMAT_VERSION.split('.')[0]}.x{quote}",
            code="unsupported_version",
            where="format_version",
        )
