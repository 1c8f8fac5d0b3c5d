"""What the tests of training prices share: a profile, clusters, layers small enough to add up by hand."""

from __future__ import annotations

from itertools import product

import numpy as np

from planner.derivation.training.cuts import Cuts
from planner.derivation.training.device import Device
from profiles import Cluster, Link, load
from profiles.geometry.attention import GroupedAttention, LatentAttention
from profiles.geometry.feed_forward import Dense, Experts
from profiles.geometry.model import LayerKind
from profiles.pricing import Extrapolate

H100 = load("h100-sxm")
LINK = Link(50e9, 1e-5)
NODES = Cluster(64, 8, LINK)

GROUPED = GroupedAttention(heads=32, kv_heads=8, head_dim=128)
LATENT = LatentAttention(heads=16, kv_lora=512, nope=128, rope=64, v=128, q_lora=1536)
DENSE = LayerKind(4096, GROUPED, Dense(14336))
MOE = LayerKind(4096, GROUPED, Experts(count=8, top_k=2, ffn=14336))
"""The sizes of Mixtral-8x7B, whose experts the profile has rows of."""


def device(extrapolate: Extrapolate = "roofline", cluster: Cluster = NODES, **fields: object) -> Device:
    """H100 on eight nodes of eight."""
    return Device(H100, cluster, extrapolate=extrapolate, **fields)  # type: ignore[arg-type]


def grid(length: int = 4096, *, experts: bool = True) -> Cuts:
    """Every combination of a few degrees."""
    some = (1, 2, 8) if experts else (1,)
    columns = np.array(list(product((1, 2), (1, 2, 8), (1, 4), (0, 1), some, some[:2])), dtype=np.int64).T
    return Cuts(length, columns[0], columns[1], columns[2], columns[3] == 1, columns[4], columns[5])
