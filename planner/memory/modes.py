"""How a state of a training step may be kept on a device (memory page, 3.1), in the order of the page's ties."""

from __future__ import annotations

from typing import Literal

ParametersMode = Literal["replicated", "gather", "gather_keep", "offloaded"]
"""Gathered when needed and dropped, or kept from the forward to the backward."""
GradientsMode = Literal["replicated", "sharded", "offloaded"]
OptimizerMode = Literal["replicated", "sharded", "offloaded"]
ActivationsMode = Literal["kept", "materialised", "offloaded"]
"""``materialised``: recomputed, layer by layer."""
