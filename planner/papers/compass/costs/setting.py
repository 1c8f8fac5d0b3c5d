"""What every price of a derived problem depends on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.papers.compass.costs.pairs import Pair
from planner.papers.compass.costs.tensor_parallel import Cut
from planner.papers.compass.derived import Derive
from planner.papers.compass.problem import Rules
from profiles.cluster import Cluster
from profiles.experts import ExpertRows
from profiles.geometry import ModelGeometry
from profiles.geometry.feed_forward import Experts
from profiles.profile import Profile

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Setting:
    """A derived problem after everything it names was looked up; ``given`` has its ranks written out.

    ``experts`` are those of its layers where their dispatch is among the pairs or left out of them, else None. ``cuts``
    are all weights that tensor parallelism cuts, ``dropped`` the pairs that the launcher's rules leave out.
    """

    given: Derive
    rules: Rules
    geometry: ModelGeometry
    experts: Experts | None
    cuts: tuple[Cut, ...]
    pairs: tuple[Pair, ...]
    dropped: tuple[Pair, ...]
    profile: Profile
    cluster: Cluster

    @property
    def expert_rows(self) -> ExpertRows:
        """The rows that price the experts."""
        experts, given = self.experts, self.given
        if experts is None:
            raise TypeError("no experts are priced")
        return ExpertRows(
            self.profile,
            self.geometry.hidden,
            experts.ffn,
            experts.count,
            experts.top_k,
            given.workload,
            given.dtype,
        )
