"""Byte fields of a derived problem counted again from the model's geometry alone (page, sections 3.3 to 3.5).

Nothing that planned takes part: weights are cut, layers are placed and the rank's order is walked here once more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from planner.papers.memory.checks.entries import Layer, norm_entries, per_token
from planner.papers.memory.job import Job
from planner.papers.memory.problem import MemoryProblem
from profiles.geometry import DiTGeometry, ModelGeometry
from profiles.geometry.weights import Weight

Model = ModelGeometry | DiTGeometry
Figure = tuple[str, float | None, float]
"""A field, what is stated there, and what the model gives."""


def figures(problem: MemoryProblem, job: Job, model: Model, rank: int) -> Iterator[Figure]:
    """Every byte field of the problem's own groups and activations, as its job gives it on a pipeline rank."""
    yield from _states(problem, job, model, rank)
    yield from _activations(problem, job, model, rank)


def _states(problem: MemoryProblem, job: Job, model: Model, rank: int) -> Iterator[Figure]:
    pieces = _pieces(job, model, rank)
    bytes_of = job.dtypes
    for place, group in enumerate(problem.groups[:2]):
        each = [piece[place] for piece in pieces]
        for field, width, amount in (
            ("parameters_bytes", bytes_of.param, sum(each)),
            ("gradients_bytes", bytes_of.grad, sum(each)),
            ("optimizer_bytes", bytes_of.optimizer, sum(each)),
            ("parameters_unit_bytes", bytes_of.param, max(each)),
            ("gradients_unit_bytes", bytes_of.grad, max(each)),
        ):
            yield f"groups.{group.id}.{field}", getattr(group, field), float(width * amount)


def _pieces(job: Job, model: Model, rank: int) -> list[tuple[float, float]]:
    """Parameters of each layer and end of the rank, all but the experts and the experts."""
    last = _last(job)
    pieces = [_of(layer.weights, job) for chunk in _chunks(job, model, rank) for layer in chunk]
    first = [weight for weight in model.ends if weight.part == "embeddings"]
    end = [weight for weight in model.ends if weight.part != "embeddings"]
    if last and not any(weight.part == "head" for weight in end):
        end += [weight for weight in first if weight.name == "embedding"]
    if rank == 0:
        pieces.append(_of(first, job))
    if rank == last:
        pieces.append(_of(end, job))
    return pieces


def _of(weights: Sequence[Weight], job: Job) -> tuple[float, float]:
    """Each t rank has a part of what is split, no thinner than a head; vocabularies are padded to whole rows."""
    layout, dense, experts = job.layout, 0, 0
    for weight in weights:
        rows, columns = weight.out_features, weight.in_features
        ways = layout.etp if weight.part == "experts" else layout.tp
        if weight.name in ("embedding", "head"):
            rows = math.ceil(rows / ways) * ways
        if weight.split != "copied":
            ways = min(ways, weight.pieces or ways)
            rows, columns = (rows // ways, columns) if weight.split == "out" else (rows, columns // ways)
        if weight.part == "experts":
            experts += weight.count // layout.ep * rows * columns
        else:
            dense += weight.count * rows * columns
    return float(dense), float(experts)


def _chunks(job: Job, model: Model, rank: int) -> list[list[Layer]]:
    """The layers of the rank's chunks: every p-th of p·v equal pieces; of a V one on the way out and one back."""
    layers = [run.kind for run in model.runs for _ in range(run.count)]
    p, v = job.layout.pp, job.layout.vpp
    each = len(layers) // (p * v)
    pieces = [rank, 2 * p - 1 - rank] if _is_v(job) else range(rank, p * v, p)
    return [layers[piece * each :][:each] for piece in pieces]


def _is_v(job: Job) -> bool:
    return job.layout.order in ("zbv", "v_half", "v_min")


def _last(job: Job) -> int:
    """The rank with the last piece of the model."""
    return 0 if _is_v(job) else job.layout.pp - 1


def _activations(problem: MemoryProblem, job: Job, model: Model, rank: int) -> Iterator[Figure]:
    given, length = problem.activations, job.batch.sequence_length
    tokens = job.batch.micro_batch * (length / job.layout.cp + _text(model))
    chunks = [[per_token(layer, job, length + _text(model)) for layer in chunk] for chunk in _chunks(job, model, rank)]
    whole = [[tokens * sum(each.values()) for each in chunk] for chunk in chunks]
    saved = _saved(job) if job.recompute == "selective" else set()
    kept = [
        [tokens * sum(n for module, n in each.items() if module not in saved) for each in chunk] for chunk in chunks
    ]
    entry = tokens * 2 * model.hidden / job.layout.norm_ranks
    ends = _ends(job, model, tokens, rank)
    layers = [n for chunk in kept for n in chunk]
    transient = max(n for chunk in whole for n in chunk) - entry
    inputs = [entry * len(chunk) for chunk in chunks]
    yield "activations.kept_bytes", given.kept_bytes, _resident(job, [sum(chunk) for chunk in kept], rank) + ends
    yield "activations.materialised_bytes", given.materialised_bytes, _resident(job, inputs, rank) + ends + transient
    yield "activations.unit_bytes", given.unit_bytes, 2 * max(layers) + ends
    yield "activations.micro_batch_bytes", given.micro_batch_bytes, sum(layers)


def _saved(job: Job) -> set[str]:
    """Modules that are run again; of all norms, and of all activations, each part."""
    stated = set[str](job.training_code.modules)
    stated |= {"attention_norm", "ffn_norm"} if "norms" in stated else set()
    return stated | ({"expert_activation"} if "ffn_activation" in stated else set())


def _text(model: Model) -> int:
    """Tokens of the text that join those of every rank."""
    return model.text_tokens if isinstance(model, DiTGeometry) and model.joint else 0


def _ends(job: Job, model: Model, tokens: float, rank: int) -> float:
    """Of the embedding for as many micro-batches as are ahead of the last stage, of norm, logits and loss once."""
    layout, found = job.layout, 0.0
    if isinstance(model, DiTGeometry):
        return found
    if rank == 0:
        mask = model.hidden / layout.norm_ranks if job.training_code.dropout else 0.0
        found += min(job.batch.num_micro_batches, layout.pp) * tokens * (8 + mask)
    if rank == _last(job):
        rows = math.ceil(model.vocab / layout.tp) if job.training_code.parallel_loss else model.vocab
        found += tokens * (sum(norm_entries(model.hidden, job)) + 4 * rows)
    return found


def _resident(job: Job, amounts: Sequence[float], rank: int) -> float:
    """The most that the rank holds of its chunks' ``amounts`` at any time of a step."""
    layout, m = job.layout, job.batch.num_micro_batches
    p, v, whole = layout.pp, layout.vpp, sum(amounts)
    if layout.order == "interleaved" and v > 1:
        return _walked(amounts, rank, p, m if m <= 6 * p else 5 * p + m % p)
    at_once = {
        "gpipe": m,
        "1f1b": p - rank,
        "interleaved": p - rank,
        "zb1p": p,
        "zb2p": 2 * p - 1,
        "zbv": p,
        "v_half": (p + 2) // 2,
        "v_min": (p + 4) // 3,
    }
    return min(m, at_once[layout.order]) * whole


def _walked(amounts: Sequence[float], rank: int, p: int, m: int) -> float:
    """Forwards run ahead until the first backward may start, then both take turns; chunk by chunk in groups of p."""
    v = len(amounts)
    order = [chunk for first in range(0, m, p) for chunk in range(v) for _ in range(first, min(first + p, m))]
    ahead = min(m * v, 2 * (p - rank - 1) + (v - 1) * p)
    held = most = 0.0
    for place, chunk in enumerate(order):
        held += amounts[chunk]
        most = max(most, held)
        if place >= ahead:
            held -= amounts[v - 1 - order[place - ahead]]
    return most
