"""What the prices of a derived problem depend on."""

from __future__ import annotations

from dataclasses import dataclass

from planner.derivation.moe.forward import Forward
from planner.derivation.moe.model import MoeModel
from planner.papers.janus.derived import Derive
from planner.papers.janus.prices.load import Load
from profiles.cluster import Cluster
from profiles.experts import ExpertRows
from profiles.profile import Profile


@dataclass(frozen=True)
class Setting:
    """A derived problem after everything it names was looked up, for one pair of devices.

    Bytes are of one device of each side, None where memory is unlimited.
    """

    given: Derive
    model: MoeModel
    load: Load
    cluster: Cluster
    attention: Profile
    experts: Profile
    attention_bytes: float | None
    expert_bytes: float | None

    @property
    def context(self) -> int:
        """Whole tokens in the cache at which attention is priced."""
        return max(1, round(self.load.context_tokens))

    @property
    def forward(self) -> Forward:
        """What an attention instance does for a batch."""
        given = self.given
        return Forward(
            model=self.model,
            profile=self.attention,
            phase="decode",
            tokens_per_sample=1,
            context=self.context,
            dtype=given.dtype,
            activation_dtype=given.activation_dtype,
            cache_dtype=given.cache_dtype,
            extrapolate=given.extrapolate,
        )

    def expert_rows(self, dtype: str) -> ExpertRows:
        """The rows of these experts in a dtype."""
        sizes = self.model.experts
        return ExpertRows(
            self.experts, self.model.hidden, sizes.ffn, sizes.count, sizes.top_k, self.given.workload, dtype
        )

    @property
    def node(self) -> int:
        """G: GPUs of a node."""
        return min(self.cluster.gpus_per_node, self.cluster.num_ranks)
