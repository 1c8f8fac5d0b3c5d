"""Bytes on the fullest GPU of a replica that generates, by cause."""

from __future__ import annotations

from planner.memory.cache import cache_bytes
from planner.memory.parameters import of_rank
from planner.papers.bidirl.costs.candidates import Candidate
from planner.papers.bidirl.derived import Rollout
from profiles.geometry.model import ModelGeometry


def rollout_bytes(given: Rollout, model: ModelGeometry, candidate: Candidate, sequence_tokens: int) -> dict[str, float]:
    """Weights of the fullest stage, the cache of every running sequence at its longest, and the runtime.

    Experts are cut by the tensor ranks. Raises ProfileError where the degrees do not divide the model.
    """
    tp, pp = candidate.tp, candidate.pp
    stages = [of_rank(model, rank, num_stages=pp, tensor_ranks=tp, expert_tensor_ranks=tp) for rank in range(pp)]
    parameters = max(int(each.dense) + int(each.experts) for each in stages)
    cache = given.concurrency * float(cache_bytes(model, sequence_tokens, given.cache_bytes, tp, pp))
    found = {"weights": parameters * given.weight_bytes, "cache": cache, "runtime": given.runtime_bytes}
    return {cause: amount for cause, amount in found.items() if amount}
