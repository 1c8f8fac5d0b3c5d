"""What a problem states otherwise than its job gives: micro-batches, groups, ranks, and the byte fields of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from planner.derivation.models import geometry_of
from planner.errors import BadInputError
from planner.papers.memory.checks.coefficients import Model, figures
from planner.papers.memory.checks.recount import agree
from planner.papers.memory.job import Job
from planner.papers.memory.job_rules import broken, experts_of
from planner.papers.memory.problem import MemoryProblem


def differing(problem: MemoryProblem) -> Iterator[tuple[str, str]]:
    """What the problem states otherwise than its job gives, with its place; nothing where it has no job."""
    job = problem.job
    if job is None:
        return
    try:
        model = geometry_of(job.model)
    except BadInputError as error:
        yield f"job.model: {error.message}", "job.model"
        return
    rules = [(f"job.{field}: {message}", f"job.{field}") for _, message, field in broken(job, model)]
    if rules:
        yield from rules
        return
    yield from _of_the_whole(problem, job, model)
    yield from _of_ranks(problem, job, model)


def _of_the_whole(problem: MemoryProblem, job: Job, model: Model) -> Iterator[tuple[str, str]]:
    """Micro-batches, groups, and ranks that the dimensions hold."""
    m, named = job.batch.num_micro_batches, ["dense", "experts"] if experts_of(model) else ["dense"]
    if problem.num_micro_batches != m:
        yield f"num_micro_batches: stated {problem.num_micro_batches}, {m} in the job", "num_micro_batches"
    ids = [group.id for group in problem.groups]
    if ids != named:
        yield f"groups: stated {', '.join(ids)[:120]}, {', '.join(named)} in the model", "groups"
        return
    layout = job.layout
    ranks = [math.prod(dim.size for dim in group.dims) for group in problem.groups]
    if ranks[0] % layout.cp:
        yield f"groups.dense.dims: expected a multiple of cp = {layout.cp} ranks, got {ranks[0]}", "groups.dense.dims"
    for experts in ranks[1:]:
        width, wanted = layout.ep * layout.etp * experts, layout.tp * ranks[0]
        if width != wanted:
            yield (
                f"groups.experts.dims: expected ranks of ep * etp * sizes = {wanted}, got {width}",
                "groups.experts.dims",
            )


def _of_ranks(problem: MemoryProblem, job: Job, model: Model) -> Iterator[tuple[str, str]]:
    """Bytes of each rank that is stated, and ranks that would have to be."""
    asked, first = job.layout.rank, problem.rank
    own = first if first is not None else asked or 0
    if asked is not None and (own != asked or problem.ranks):
        yield f"rank: expected the one that the job asks for, {asked}, alone", "rank"
        return
    stated = {own: "", **{each.rank: f"ranks.{place}." for place, each in enumerate(problem.ranks)}}
    if max(stated) >= job.layout.pp:
        yield f"rank: expected ranks of 0 to pp - 1 = {job.layout.pp - 1}, got {max(stated)}", "rank"
        return
    counted = dict[int, list[float]]()
    for each, (rank, place) in zip(problem.each_rank(), stated.items(), strict=True):
        counted[rank] = []
        for name, given, amount in figures(each, job, model, rank):
            counted[rank].append(amount)
            if given is not None and not agree(given, amount):
                yield f"{place}{name}: stated {given!r}, counted from the model {amount!r}", f"{place}{name}"
    if asked is None:
        for rank in sorted(set(range(job.layout.pp)) - set(stated)):
            needs = [amount for _, _, amount in figures(problem, job, model, rank)]
            if not any(_beats(other, needs) for other in counted.values()):
                yield f"ranks: rank {rank} of the job is left out, and none that is stated holds as much", "ranks"


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(mine >= its or agree(mine, its) for mine, its in zip(one, other, strict=True))
