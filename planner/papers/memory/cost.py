"""From the derived-cost form to the explicit one (page, "Problem file", its derived part)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from planner.attribution import Causes
from planner.derivation.clusters import hardware_files
from planner.derivation.references import digests, model_file
from planner.errors import BadInputError, RefutedError
from planner.paper import Derivation, DeriveOptions
from planner.papers.memory.byte_fields import MAX_BYTES, Activations, Group, GroupBytes, Rank
from planner.papers.memory.checks.differences import differing
from planner.papers.memory.costs.beside import beside_states
from planner.papers.memory.costs.dims import Dims, dims_of
from planner.papers.memory.costs.rank_bytes import RankBytes
from planner.papers.memory.costs.ranks import RankCosts, every_rank, judged
from planner.papers.memory.costs.recomputation import forwards_of
from planner.papers.memory.costs.resolved import resolved_of
from planner.papers.memory.costs.rules import refuse_broken
from planner.papers.memory.costs.said import cautions
from planner.papers.memory.costs.setting import Setting, setting_of
from planner.papers.memory.derived import MemoryDerivedProblem
from planner.papers.memory.job import Job
from planner.papers.memory.job_rules import experts_of
from planner.papers.memory.problem import MemoryProblem
from planner.validation import validate

LAYOUT = "derive.layout"


def derive(document: MemoryDerivedProblem, options: DeriveOptions) -> Derivation[MemoryProblem]:
    """The bytes of the rank that is asked for, or of all that a placement has to fit, and the links they move over.

    Raises BadInputError (unknown_model, unknown_profile, missing_field, outside_measured_range, a rule's name, ...).
    """
    setting = setting_of(document, options)
    refuse_broken(setting)
    dims = dims_of(setting, experts_of(setting.model) is not None)
    ranks = every_rank(setting, LAYOUT)
    _refuse_large(setting, ranks)
    beside = beside_states(setting.job, dims[0])
    modelled = document.other_bytes in (None, math.fsum(beside.values())) and not document.other_measured
    forwards = None if document.derive.recompute_s is not None else forwards_of(setting)
    costs = judged(setting, ranks, dims, forwards, workspace=modelled)
    problem = _explicit(document, setting, costs, dims, beside if modelled else {})
    _refuse_miscounted(problem)
    folder = Path(options.base_folder)
    files = [] if setting.hardware is None else hardware_files(setting.hardware, folder)
    profile, first = setting.profile, costs[0]
    return Derivation(
        problem=problem,
        derive=resolved_of(setting, ranks, first.of.rank),
        profile=None if profile is None else profile.name,
        profile_sha256=None if profile is None else profile.sha256,
        cost_error=None if first.recomputation is None else first.recomputation.error,
        arrays=digests([*files, *model_file(document.derive.model, folder)]),
    )


def _refuse_miscounted(problem: MemoryProblem) -> None:
    """Raise RefutedError where the check counts other bytes: it would find no fault with a plan that lost its job."""
    for message, where in differing(problem):
        said = f"bytes were derived otherwise than the check counts them; this is a bug: {message}"
        raise RefutedError(said, code="derived_mismatch", where=where)


def _refuse_large(setting: Setting, ranks: Sequence[RankBytes]) -> None:
    """Raise BadInputError for bytes that are no longer whole numbers in a float."""
    most = max(setting.job.dtypes.model_dump().values())
    for field, amount in (
        ("model", max(most * sum(each.parameters) for each in ranks)),
        ("batch", max(math.fsum(each.kept.values()) for each in ranks)),
    ):
        if amount > MAX_BYTES:
            message = f"a rank would hold {amount:.3g} bytes: expected at most 2^53"
            raise BadInputError(message, code="too_large", where=f"derive.{field}")


def _explicit(
    document: MemoryDerivedProblem,
    setting: Setting,
    costs: Sequence[RankCosts],
    dims: tuple[Dims, Dims],
    beside: Mapping[str, float],
) -> MemoryProblem:
    """``beside`` is what no state explains, by cause, where it is modelled."""
    job, first = setting.job, costs[0]
    named = [(name, over) for name, over in zip(("dense", "experts"), dims, strict=True) if over]
    fields = {
        "num_micro_batches": job.batch.num_micro_batches,
        "capacity_bytes": document.capacity_bytes or setting.capacity_bytes,
        "other_bytes": math.fsum(beside.values()) if document.other_bytes is None else document.other_bytes,
        "other_causes": _causes(beside),
        "other_measured": document.other_measured,
        "rank": first.of.rank,
        "groups": [Group(**_group(job, first.of, name), dims=over) for name, over in named],
        "activations": _activations(document, first),
        "workspace_bytes": first.workspace_bytes,
        "ranks": [
            Rank(
                rank=each.of.rank,
                groups=tuple(GroupBytes(**_group(job, each.of, name)) for name, _ in named),
                activations=_activations(document, each),
                workspace_bytes=each.workspace_bytes,
            )
            for each in costs[1:]
        ],
        "host": document.host,
        "search": document.search,
        "job": job,
        "cautions": cautions(setting, first.recomputation) or None,
        "notes": document.notes,
    }
    return validate(MemoryProblem, fields)


class _GroupFields(TypedDict):
    id: str
    parameters_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    parameters_unit_bytes: float
    gradients_unit_bytes: float
    parameters_causes: Causes | None


def _group(job: Job, rank: RankBytes, name: str) -> _GroupFields:
    place = ("dense", "experts").index(name)
    count, unit, dtypes = rank.parameters[place], rank.units[place], job.dtypes
    parts = {} if place else rank.parts
    return {
        "id": name,
        "parameters_bytes": dtypes.param * count,
        "gradients_bytes": dtypes.grad * count,
        "optimizer_bytes": dtypes.optimizer * count,
        "parameters_unit_bytes": dtypes.param * unit,
        "gradients_unit_bytes": dtypes.grad * unit,
        "parameters_causes": _causes({part: dtypes.param * amount for part, amount in parts.items()}),
    }


def _activations(document: MemoryDerivedProblem, costs: RankCosts) -> Activations:
    rank, recomputation = costs.of, costs.recomputation
    stated = document.derive.recompute_s
    seconds = stated if recomputation is None else recomputation.seconds
    again = None if seconds is None else rank.materialised
    return Activations(
        kept_bytes=math.fsum(rank.kept.values()),
        kept_causes=_causes(rank.kept),
        materialised_bytes=None if again is None else math.fsum(again.values()),
        materialised_causes=None if again is None else _causes(again),
        recompute_s=seconds,
        recompute_sources=None if recomputation is None else recomputation.sources,
        unit_bytes=math.fsum(rank.offloaded.values()),
        unit_causes=_causes(rank.offloaded),
        micro_batch_bytes=rank.micro_batch_bytes,
    )


def _causes(bytes_by_cause: Mapping[str, float]) -> Causes | None:
    return dict(bytes_by_cause) or None
