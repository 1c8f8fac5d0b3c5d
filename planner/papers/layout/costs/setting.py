"""What every price of a derived problem depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from planner.derivation.models import PLACE, language_model
from planner.derivation.training.device import Device
from planner.errors import BadInputError
from planner.memory.activations import Kernels, Module
from planner.papers.layout.costs.selective import modules_of, union
from planner.papers.layout.derived import Derive
from planner.papers.layout.problem import LayerKind as Layers
from planner.papers.layout.problem import LayerRun, Model, Rules
from planner.papers.layout.table import Kind
from profiles.cluster import Cluster
from profiles.experts import ExpertRows
from profiles.geometry import ModelGeometry
from profiles.geometry.attention import LatentAttention
from profiles.geometry.feed_forward import Experts
from profiles.geometry.model import LayerKind
from profiles.profile import Profile

Mixed = tuple[tuple[LayerKind, int], ...]
"""Kinds of layer that differ in attention alone (whether it slides), each with how many there are."""


@dataclass(frozen=True)
class Setting:
    """A derived problem after everything it names was looked up; ``given`` has its ranks written out.

    ``rules``: of the launcher, which decide what selective recomputation can run again.
    """

    given: Derive
    sequence_length: int
    geometry: ModelGeometry
    kinds: Mapping[Kind, Mixed]
    device: Device
    profile: Profile
    cluster: Cluster
    rules: Rules = "none"

    @property
    def selective(self) -> tuple[Module, ...]:
        """What selective recomputation runs again, in any kind of layer."""
        return union(self.recomputed(kind) for mixed in self.kinds.values() for kind, _ in mixed)

    def recomputed(self, kind: LayerKind) -> tuple[Module, ...]:
        """What selective recomputation runs again of a layer."""
        return modules_of(self.given.training_code, self.rules, kind)

    @property
    def experts(self) -> Experts | None:
        """Of its layers with any."""
        network = self.kinds["moe"][0][0].feed_forward if "moe" in self.kinds else None
        return network if isinstance(network, Experts) else None

    def expert_rows(self, dtype: str) -> ExpertRows:
        """The rows of the profile that price its experts in a dtype."""
        experts = self.experts
        if experts is None:
            raise TypeError("the model has no experts")
        sizes = (self.geometry.hidden, experts.ffn, experts.count, experts.top_k)
        return ExpertRows(self.profile, *sizes, self.device.workload, dtype)

    def kernels(self, kind: LayerKind | None = None) -> Kernels:
        """What the training code keeps, of a kind of layer or of the model's ends."""
        found = self.given.training_code.kernels(self.device.element_bytes)
        return found if kind is None else replace(found, selective=self.recomputed(kind))

    @property
    def model(self) -> Model:
        """What the rules need to know of the model."""
        attention = self.geometry.runs[0].kind.attention
        kv_heads = attention.heads if isinstance(attention, LatentAttention) else attention.kv_heads
        runs: list[LayerRun] = []
        for run in self.geometry.runs:
            kind = _name(run.kind)
            if runs and runs[-1].kind == kind:
                runs[-1] = LayerRun(kind=kind, count=runs[-1].count + run.count)
            else:
                runs.append(LayerRun(kind=kind, count=run.count))
        return Model(
            layers=tuple(runs),
            num_heads=attention.heads,
            num_kv_heads=kv_heads,
            num_experts=self.experts.count if self.experts else 0,
            tied_embeddings=self.geometry.tied,
        )


def setting_of(
    given: Derive, sequence_length: int, profile: Profile, cluster: Cluster, folder: Path, rules: Rules = "none"
) -> Setting:
    """Look up the model. Raises BadInputError: an unknown one, or layers of one kind with unlike feed-forward parts."""
    geometry = language_model(given.model, folder)
    device = Device(
        profile,
        cluster,
        given.dtype,
        given.experts_dtype,
        given.activation_dtype,
        given.extrapolate,
        given.workload,
        given.load_factor,
    )
    return Setting(given, sequence_length, geometry, _kinds(geometry), device, profile, cluster, rules)


def _kinds(geometry: ModelGeometry) -> dict[Kind, Mixed]:
    found: dict[Kind, Mixed] = {}
    for kind, count in geometry.kinds():
        found[_name(kind)] = (*found.get(_name(kind), ()), (kind, count))
    for name, mixed in found.items():
        if len({kind.feed_forward for kind, _ in mixed}) > 1:
            raise BadInputError(
                f"{geometry.name} has {name} layers with different feed-forward parts: a table has one row for all",
                code="out_of_range",
                where=PLACE,
            )
    return found


def _name(kind: LayerKind) -> Layers:
    return "moe" if isinstance(kind.feed_forward, Experts) else "dense"
