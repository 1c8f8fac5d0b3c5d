"""Candidates of both roles with the bytes on their fullest GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from planner.derivation.references import input_errors
from planner.errors import BadInputError
from planner.papers.bidirl.costs.candidates import Candidate, rollout_candidates, train_candidates
from planner.papers.bidirl.costs.rollout_bytes import rollout_bytes
from planner.papers.bidirl.costs.setting import Setting
from planner.papers.bidirl.costs.train_bytes import train_bytes
from planner.papers.bidirl.problem import MAX_LAYOUTS


@dataclass(frozen=True)
class Held:
    """Candidates by id, fewest GPUs first, with their bytes by cause."""

    candidates: Mapping[str, Candidate]
    causes: Mapping[str, Mapping[str, float]]

    def total(self, name: str) -> float:
        """Bytes of a candidate."""
        return sum(self.causes[name].values())

    def smallest(self, usable_bytes: float) -> str | None:
        """The candidate of fewest GPUs that fits, ties by bytes then id; None where none does."""
        fitting = [name for name in self.candidates if self.total(name) <= usable_bytes]
        return min(fitting, key=lambda name: (self.candidates[name].gpus, self.total(name), name), default=None)


def held_by_rollout(setting: Setting) -> Held:
    """Of replicas that generate. Raises BadInputError where no candidate is left."""
    given, model, tokens = setting.given.rollout, setting.model, setting.sequence_tokens
    found = rollout_candidates(given, model, setting.node)
    return _held(found, lambda each: rollout_bytes(given, model, each, tokens), "derive.rollout")


def held_by_train(setting: Setting) -> Held:
    """Of replicas that train. Raises BadInputError where no candidate is left."""
    given, model, tokens = setting.given.train, setting.model, setting.sequence_tokens
    found = train_candidates(given, model, setting.node)
    return _held(found, lambda each: train_bytes(given, model, each, tokens), "derive.train")


def _held(found: Iterable[Candidate], count: Callable[[Candidate], dict[str, float]], where: str) -> Held:
    candidates = {each.id: each for each in found}
    if not candidates:
        message = "no candidate is left: degrees have to divide heads, widths of experts, layers and a shard"
        raise BadInputError(message, code="out_of_range", where=where)
    if len(candidates) > MAX_LAYOUTS:
        message = f"expected at most {MAX_LAYOUTS} candidates, got {len(candidates)}: state fewer degrees"
        raise BadInputError(message, code="too_large", where=where)
    with input_errors(where):
        return Held(candidates, {name: count(each) for name, each in candidates.items()})
