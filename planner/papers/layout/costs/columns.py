"""The columns of a cost table: seconds by the profile, bytes and parameters by the memory model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from planner.derivation.account import Floats
from planner.derivation.training.cuts import Cuts
from planner.derivation.training.ends import end_times
from planner.derivation.training.layer import layer_times
from planner.derivation.training.parts import LayerTimes, Part
from planner.memory import parameters
from planner.memory.activations import Cut, Stored, embedding_bytes, head_bytes, layer_bytes
from planner.memory.workspace import head_workspace_bytes, layer_workspace_bytes
from planner.papers.layout.costs.setting import Mixed, Setting
from planner.papers.layout.table import Kind


@dataclass(frozen=True)
class Held:
    """Parameters of a layer on a rank, and bytes of one micro-batch, over the layouts."""

    dense: Floats
    experts: Floats
    stored: Stored
    workspace: Floats


def times_of(setting: Setting, kind: Kind, cuts: Cuts) -> LayerTimes:
    """Of one layer of a kind; the mean over layers that slide and that do not."""
    if kind == "embedding" or kind == "head":
        return end_times(setting.device, setting.geometry, kind, cuts)
    mixed = setting.kinds[kind]
    return _mean(
        [(layer_times(setting.device, each, cuts, setting.recomputed(each)), count) for each, count in mixed], mixed
    )


def held_by(setting: Setting, kind: Kind, cuts: Cuts) -> Held:
    """Of one layer of a kind. Raises ProfileError where ranks do not divide what they cut."""
    cut = Cut(
        cuts.tokens,
        cuts.sequence_length,
        cuts.tp,
        cuts.norm_ranks,
        cuts.etp,
        setting.given.load_factor,
    )
    geometry, kernels = setting.geometry, setting.kernels()
    none = np.zeros(len(cuts))
    if kind == "embedding":
        kept = none + embedding_bytes(geometry.hidden, cut, dropout=kernels.dropout)
        return Held(none + parameters.embedding(geometry, cuts.tp), none, Stored(kept, kept, kept), none)
    if kind == "head":
        kept = none + head_bytes(geometry.hidden, geometry.vocab, cut, kernels)
        workspace = none + head_workspace_bytes(geometry.vocab, cut, kernels)
        return Held(none + parameters.head(geometry, cuts.tp), none, Stored(kept, kept, kept), workspace)
    layer = setting.kinds[kind][0][0]
    kernels = setting.kernels(layer)
    held = parameters.layer(layer, cuts.tp, cuts.ep, cuts.etp)
    stored = Stored(*(none + each for each in layer_bytes(layer, cut, kernels)))
    return Held(none + held.dense, none + held.experts, stored, none + layer_workspace_bytes(layer, cut, kernels))


def _mean(found: list[tuple[LayerTimes, int]], mixed: Mixed) -> LayerTimes:
    if len(mixed) == 1:
        return found[0][0]
    total = sum(count for _, count in found)

    def shares(pick: Iterable[tuple[tuple[Part, ...], int]]) -> tuple[Part, ...]:
        return tuple(replace(part, seconds=part.seconds * (count / total)) for parts, count in pick for part in parts)

    times = [each for each, _ in found]
    return LayerTimes(
        shares((each.forward, count) for each, count in found),
        shares((each.backward, count) for each, count in found),
        shares((each.selective, count) for each, count in found),
        times[0].cp,
        np.logical_or.reduce([each.missing for each in times]),
        {family: message for each in times for family, message in each.reasons.items()},
    )
