"""An explicit problem that somebody wrote or edited: bytes that its job no longer gives are stated, and it has none."""

from __future__ import annotations

from planner.derivation.models import geometry_of
from planner.errors import BadInputError
from planner.papers.memory.checks.differences import differing
from planner.papers.memory.job_rules import broken
from planner.papers.memory.problem import MemoryProblem

MAX_MESSAGE = 300


def as_stated(problem: MemoryProblem) -> MemoryProblem:
    """The problem as it is, or without a job that gives other bytes and with a caution that says which.

    Of a plan nothing is dropped: there the check refutes what differs. Raises BadInputError for a job that gives no
    bytes at all: a model that is none, or a layout that breaks a rule, by its name.
    """
    job = problem.job
    if job is None:
        return problem
    try:
        model = geometry_of(job.model)
    except BadInputError as error:
        raise BadInputError(error.message, code=error.code, where="job.model") from None
    for rule, message, field in broken(job, model):
        raise BadInputError(message, code=rule, where=f"job.{field}")
    messages = [message for message, _ in differing(problem)]
    if not messages:
        return problem
    more = f", and {len(messages) - 1} more" if len(messages) > 1 else ""
    said = f"{messages[0][:MAX_MESSAGE]}{more}: bytes are taken as stated, and the check has no job to count them from"
    cautions = {**(problem.cautions or {}), "job_dropped": said}
    return problem.model_copy(update={"job": None, "cautions": cautions})
