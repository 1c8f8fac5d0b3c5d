"""What a job has to keep for the bytes of a rank to be defined (page, section 9); each rule is an error's code."""

from __future__ import annotations

from collections.abc import Iterator

from planner.papers.memory.job import Job
from profiles.geometry import DiTGeometry, ModelGeometry
from profiles.geometry.attention import Attention, GroupedAttention
from profiles.geometry.feed_forward import Experts

Broken = tuple[str, str, str]
"""A rule, what was expected and what was got, and the field."""


def experts_of(model: ModelGeometry | DiTGeometry) -> Experts | None:
    """The experts of a model's layers, those with the most where they differ; None without any."""
    found = [run.kind.feed_forward for run in model.runs]
    return max((each for each in found if isinstance(each, Experts)), key=lambda each: each.count, default=None)


def broken(job: Job, model: ModelGeometry | DiTGeometry) -> Iterator[Broken]:
    """Every rule that a job breaks by itself, whatever cluster it runs on."""
    layout = job.layout
    experts = experts_of(model)
    if experts is None and layout.ep * layout.etp > 1:
        yield "no_experts", f"{model.name} has no experts: expected ep = etp = 1", "layout.ep"
    if experts is not None and experts.count % layout.ep:
        yield "expert_split", f"expected ep to divide {experts.count} experts, got {layout.ep}", "layout.ep"
    for attention in {run.kind.attention: None for run in model.runs}:
        yield from _heads(attention, layout.tp)
    yield from _tokens(job)
    chunks, layers = layout.pp * layout.vpp, sum(run.count for run in model.runs)
    if layers % chunks:
        message = f"expected pp * vpp to divide {layers} layers, got {chunks}"
        yield "partition", message, "layout.pp"


def _heads(attention: Attention, tp: int) -> Iterator[Broken]:
    if attention.heads % tp:
        yield "heads", f"expected tp to divide {attention.heads} heads, got {tp}", "layout.tp"
    shared = attention.kv_heads if isinstance(attention, GroupedAttention) else attention.heads
    if shared % tp and tp % shared:
        message = f"expected tp to divide {shared} heads of keys and values or be a multiple, got {tp}"
        yield "heads", message, "layout.tp"


def _tokens(job: Job) -> Iterator[Broken]:
    layout, length = job.layout, job.batch.sequence_length
    if layout.cp > 1 and length % (2 * layout.cp):
        message = f"expected 2 * cp to divide the {length:,} tokens of a sequence, got cp = {layout.cp}"
        yield "cp_sequence", message, "layout.cp"
    elif layout.sequence_parallel and length // layout.cp % layout.tp:
        message = (
            f"sequence_parallel cuts the {length // layout.cp:,} tokens of a sequence on a rank by tp: expected tp to "
            f"divide them, got {layout.tp}"
        )
        yield "sp_sequence", message, "layout.tp"
