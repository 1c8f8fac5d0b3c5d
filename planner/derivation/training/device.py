"""What every price of a training step depends on, apart from how it is cut."""

from __future__ import annotations

from dataclasses import dataclass

from profiles.cluster import Cluster
from profiles.errors import ProfileError
from profiles.families import DTYPE_BYTES
from profiles.pricing import Extrapolate
from profiles.profile import Profile


@dataclass(frozen=True)
class Device:
    """A device and its surroundings, and the dtypes of products, of routed experts, and of all else.

    ``workload`` is how tokens were routed in the rows of experts, ``load_factor`` the copies of the fullest rank of
    experts over the mean. What is sent is as wide as activations.
    """

    profile: Profile
    cluster: Cluster
    dtype: str = "bf16"
    experts_dtype: str = "bf16"
    activation_dtype: str = "bf16"
    extrapolate: Extrapolate = "refuse"
    workload: str = "balanced"
    load_factor: float = 1.0

    @property
    def element_bytes(self) -> float:
        """Bytes of one number of an activation."""
        return float(DTYPE_BYTES[self.activation_dtype])

    @property
    def node(self) -> int:
        """GPUs that share a node."""
        return min(self.cluster.gpus_per_node, self.cluster.num_ranks)

    @property
    def memory_bytes_per_s(self) -> float:
        """What element-wise work reads and writes at. Raises `ProfileError` (missing_field) if nobody says."""
        stated = self.profile.device.memory_bandwidth_bytes_per_s
        if stated is not None:
            return float(stated)
        if self.profile.has("gemm", self.activation_dtype):
            return self.profile.formula("gemm", self.activation_dtype)["bytes_per_s"]
        message = f"profile {self.profile.name} does not state its device's memory bandwidth: norms and sums need it"
        raise ProfileError(message, code="missing_field", where="device.memory_bandwidth_bytes_per_s")
