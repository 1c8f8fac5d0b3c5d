"""What every price of a forward over layers depends on, apart from how many samples pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.derivation.moe.model import MoeModel
from profiles.geometry.attention import LatentAttention
from profiles.pricing import Extrapolate
from profiles.profile import Profile

Phase = Literal["prefill", "decode"]


@dataclass(frozen=True)
class Forward:
    """A model on one device: a sample is a prompt of ``tokens_per_sample``, or (decode) one new token.

    ``context`` is the tokens of a sample in the cache, new ones included. ``dtype`` is that of the products,
    ``activation_dtype`` of all that is not multiplied narrower, ``cache_dtype`` of the cache.
    """

    model: MoeModel
    profile: Profile
    phase: Phase
    tokens_per_sample: int
    context: int
    dtype: str
    activation_dtype: str
    cache_dtype: str
    extrapolate: Extrapolate

    @property
    def latent(self) -> bool:
        """Whether its attention is over latents."""
        return isinstance(self.model.kinds[0][0].attention, LatentAttention)


def activation_dtype(dtype: str) -> str:
    """Of activations, norms, the router, embedding and head: 16 bits unless the products are wider."""
    return dtype if dtype in ("bf16", "fp16", "fp32", "tf32") else "bf16"
