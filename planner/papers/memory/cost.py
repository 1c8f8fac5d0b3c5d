"""From the derived-cost form to the explicit one (page, "Problem file", its derived part)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from planner.attribution import Causes
from planner.derivation.bytes_per_parameter import BytesPerParameter
from planner.derivation.clusters import hardware_files
from planner.derivation.references import digests, input_errors, model_file
from planner.errors import BadInputError, RefutedError
from planner.paper import Derivation, DeriveOptions
from planner.papers.memory.checks.coefficients import differing
from planner.papers.memory.costs.beside import beside_states
from planner.papers.memory.costs.dims import Dims, dims_of
from planner.papers.memory.costs.rank_bytes import RankBytes, rank_bytes
from planner.papers.memory.costs.recomputation import Recomputation, recomputation_of
from planner.papers.memory.costs.resolved import resolved_of
from planner.papers.memory.costs.rules import experts_of, refuse_broken
from planner.papers.memory.costs.said import cautions
from planner.papers.memory.costs.setting import Setting, setting_of
from planner.papers.memory.derived import MemoryDerivedProblem
from planner.papers.memory.problem import MAX_BYTES, Activations, Group, MemoryProblem
from planner.validation import validate

LAYOUT = "derive.layout"


def derive(document: MemoryDerivedProblem, options: DeriveOptions) -> Derivation[MemoryProblem]:
    """The bytes of the rank that is asked for, or of the fullest one, and the links they move over.

    Raises BadInputError (unknown_model, unknown_profile, missing_field, outside_measured_range, a rule's name, ...).
    """
    setting = setting_of(document, options)
    refuse_broken(setting)
    dense, experts = dims_of(setting, experts_of(setting.model) is not None)
    with input_errors(LAYOUT):
        ranks = [rank_bytes(setting.job, setting.model, rank) for rank in range(setting.job.layout.pp)]
    _refuse_large(setting, ranks)
    chosen = _chosen(setting, ranks, dense, experts)
    recomputation = None if document.derive.recompute_s is not None else recomputation_of(setting, chosen.rank)
    problem = _explicit(document, setting, chosen, (dense, experts), recomputation)
    _refuse_miscounted(problem)
    folder = Path(options.base_folder)
    files = [] if setting.hardware is None else hardware_files(setting.hardware, folder)
    profile = setting.profile
    return Derivation(
        problem=problem,
        derive=resolved_of(setting, ranks, chosen.rank),
        profile=None if profile is None else profile.name,
        profile_sha256=None if profile is None else profile.sha256,
        cost_error=None if recomputation is None else recomputation.error,
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


def _chosen(setting: Setting, ranks: Sequence[RankBytes], dense: Dims, experts: Dims) -> RankBytes:
    """The rank that was asked for, else the first of those that hold most with their optimizer sharded."""
    asked = setting.job.layout.rank
    if asked is not None:
        return ranks[asked]
    dtypes = setting.job.dtypes
    shards = [math.prod(dim.size for dim in dims) for dims in (dense, experts)]

    def held(each: RankBytes) -> float:
        states = sum(
            count * (dtypes.param + dtypes.grad + dtypes.optimizer / shared)
            for count, shared in zip(each.parameters, shards, strict=True)
        )
        return float(states) + math.fsum(each.kept.values())

    return max(ranks, key=held)


def _explicit(
    document: MemoryDerivedProblem,
    setting: Setting,
    rank: RankBytes,
    dims: tuple[Dims, Dims],
    recomputation: Recomputation | None,
) -> MemoryProblem:
    job = setting.job
    beside, stated = beside_states(job, setting.model, rank.rank, dims[0]), document.other_bytes
    modelled = math.fsum(beside.values())
    groups = [
        _group(name, rank.parameters[place], rank.units[place], parts, job.dtypes, dims[place])
        for place, (name, parts) in enumerate((("dense", rank.parts), ("experts", {})))
        if dims[place]
    ]
    fields = {
        "num_micro_batches": job.batch.num_micro_batches,
        "capacity_bytes": document.capacity_bytes or setting.capacity_bytes,
        "other_bytes": modelled if stated is None else stated,
        "other_causes": _causes(beside) if stated in (None, modelled) else None,
        "other_measured": document.other_measured,
        "groups": groups,
        "activations": _activations(document, rank, recomputation),
        "host": document.host,
        "search": document.search,
        "job": job.model_copy(update={"layout": job.layout.model_copy(update={"rank": rank.rank})}),
        "cautions": cautions(setting, recomputation) or None,
        "notes": document.notes,
    }
    return validate(MemoryProblem, fields)


def _group(name: str, count: int, unit: int, parts: Mapping[str, int], dtypes: BytesPerParameter, dims: Dims) -> Group:
    return Group(
        id=name,
        parameters_bytes=dtypes.param * count,
        parameters_causes=_causes({part: dtypes.param * amount for part, amount in parts.items()}),
        gradients_bytes=dtypes.grad * count,
        optimizer_bytes=dtypes.optimizer * count,
        parameters_unit_bytes=dtypes.param * unit,
        gradients_unit_bytes=dtypes.grad * unit,
        dims=dims,
    )


def _activations(document: MemoryDerivedProblem, rank: RankBytes, recomputation: Recomputation | None) -> Activations:
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
