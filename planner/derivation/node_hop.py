"""Seconds of passing a block to the next rank of a ring inside a node."""

from __future__ import annotations

from planner.derivation.account import Floats
from profiles.priced import Priced
from profiles.pricing import Extrapolate
from profiles.profile import Profile


def node_hop(profile: Profile, block_bytes: Floats, ranks: Floats, extrapolate: Extrapolate) -> Priced:
    """The all-gather of a block from each of n > 1 ranks is n - 1 such hops. Raises ProfileError outside the tables."""
    whole = profile.collective("all_gather", block_bytes * ranks, ranks, extrapolate=extrapolate)
    return Priced(whole.seconds / (ranks - 1), whole.source)
