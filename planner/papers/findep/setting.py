"""What every price of a derived problem depends on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from planner.derivation.moe.forward import Forward
from planner.derivation.moe.model import MoeModel
from planner.papers.findep.derived import Derive, Pools
from planner.papers.findep.problem import Search
from profiles.cluster import Cluster
from profiles.profile import Profile

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """A derived problem after everything it names was looked up; ``given`` has its ranks written out."""

    given: Derive
    search: Search
    model: MoeModel
    profile: Profile
    cluster: Cluster
    splits: tuple[Pools, ...]

    @cached_property
    def forward(self) -> Forward:
        """What an attention GPU does for a micro-batch."""
        given = self.given
        return Forward(
            model=self.model,
            profile=self.profile,
            phase=given.phase,
            tokens_per_sample=given.tokens_per_sample,
            context=given.context,
            dtype=given.dtype,
            activation_dtype=given.activation_dtype,
            cache_dtype=given.cache_dtype,
            extrapolate=given.extrapolate,
        )

    @property
    def attention_gpus(self) -> Floats:
        """ag of every split (splits, 1)."""
        return np.array([split.attention_gpus for split in self.splits], dtype=np.float64)[:, None]

    @property
    def expert_gpus(self) -> Floats:
        """eg of every split (splits, 1)."""
        return np.array([split.expert_gpus for split in self.splits], dtype=np.float64)[:, None]

    @property
    def hosted(self) -> Floats:
        """h of every split: experts of the busiest expert GPU (splits, 1)."""
        return np.asarray(np.ceil(self.model.experts.count / self.expert_gpus))

    @property
    def crosses(self) -> npt.NDArray[np.bool_]:
        """Which splits leave a node (splits,)."""
        return (self.attention_gpus + self.expert_gpus)[:, 0] > self.given.ranks.gpus_per_node
