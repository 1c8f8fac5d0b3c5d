"""What a chunk of every pair costs at every degree, from one lookup per family.

t_g(d) is a GEMM of M/d rows, or, where a launcher cuts output features, of N/d of them. t_c(d) is the collective of V/d
bytes. Over a ring (page, section 3.6) a shard's hop takes 1/(p-1) of the all-gather whose shards are as large: with two
shards a step that is the all-gather of 2 V. Experts take their rank's share of what all of them take on one device,
beyond what a launch costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from planner.derivation.expert_share import expert_share
from planner.errors import BadInputError
from planner.papers.compass.costs.pairs import COLLECTIVE, Pair
from planner.papers.compass.costs.setting import Floats, Ints, Setting
from profiles.errors import ProfileError
from profiles.families import COLLECTIVES
from profiles.priced import MODELLED, Priced, Sources


@dataclass(frozen=True)
class Chunks:
    """One pair at degree 1 and its legal degrees, ascending: seconds of a chunk of either stage, and their sources.

    Over a ring ``comm`` is the hop of the shards that one step moves, and at degree 1 the whole all-gather.
    """

    pair: Pair
    degrees: Ints
    comm: Floats
    gemm: Floats
    comm_source: Sources
    gemm_source: Sources

    @property
    def covered(self) -> bool:
        """Whether rows of the profile reach all of it."""
        return not ((self.comm_source == MODELLED).any() or (self.gemm_source == MODELLED).any())


def chunks_of(setting: Setting, degrees: list[Ints]) -> list[Chunks]:
    """Price all pairs at degree 1 and at ``degrees``, one array each. Raises BadInputError outside the tables."""
    every = [np.append(np.array([1], dtype=np.int64), found) for found in degrees]
    which = np.repeat(np.arange(len(every)), [len(found) for found in every])
    flat = np.concatenate(every).astype(np.float64)
    comm, gemm = _comm_seconds(setting, which, flat), _gemm_seconds(setting, which, flat)
    cuts = np.cumsum([len(found) for found in every])[:-1]
    parts = (comm.seconds, gemm.seconds, comm.source, gemm.source)
    split = [np.split(part, cuts) for part in parts]
    return [Chunks(pair, found, *values) for pair, found, *values in zip(setting.pairs, every, *split, strict=True)]


def _gemm_seconds(setting: Setting, which: Ints, degrees: Floats) -> Priced:
    pairs = setting.pairs
    m, n, k = (np.array([getattr(pair, axis) for pair in pairs], dtype=np.float64)[which] for axis in "mnk")
    cutting = np.array([pair.cutting for pair in pairs])[which]
    m = np.where(cutting == "features", m, m / degrees)
    n = np.where(cutting == "features", n / degrees, n)
    seconds, source = np.empty_like(m), np.empty(len(m), dtype=np.int8)
    experts = cutting == "experts"
    given = setting.given
    if not experts.all():
        plain = ~experts
        with _rows_of(setting, "gemm"):
            priced = setting.profile.gemm(
                m[plain], n[plain], k[plain], dtype=given.dtype, extrapolate=given.extrapolate
            )
        seconds[plain], source[plain] = priced.seconds, priced.source
    if experts.any():
        with _rows_of(setting, "moe_gemm"):
            priced = expert_share(setting.expert_rows, m[experts], given.expert_parallel_size or 1, given.extrapolate)
        seconds[experts], source[experts] = priced.seconds, priced.source
    return Priced(seconds, source)


def _comm_seconds(setting: Setting, which: Ints, degrees: Floats) -> Priced:
    pairs, given = setting.pairs, setting.given
    ranks = np.array([pair.ranks for pair in pairs], dtype=np.float64)[which]
    message = np.array([pair.message_bytes for pair in pairs])[which]
    hop = (np.array([pair.cutting == "shards" for pair in pairs])[which]) & (degrees > 1)
    message = np.where(hop, message * ranks / degrees, message / degrees)
    family = np.array([COLLECTIVE[pair.op] for pair in pairs])[which]
    outside = ranks > given.ranks.gpus_per_node
    seconds, source = np.empty_like(message), np.empty(len(message), dtype=np.int8)
    for name in sorted(set(family.tolist())):
        for across in (False, True):
            mine = (family == name) & (outside == across)
            if not mine.any():
                continue
            with _rows_of(setting, name):
                if across:
                    priced = setting.cluster.network_collective(name, message[mine], ranks[mine])
                else:
                    priced = setting.profile.collective(name, message[mine], ranks[mine], extrapolate=given.extrapolate)
            seconds[mine], source[mine] = priced.seconds, priced.source
    return Priced(np.where(hop, seconds / np.maximum(ranks - 1.0, 1.0), seconds), source)


_BETWEEN = "Describe the link between nodes in the cluster, or import a log"
_WITHIN = "Import a log of this node's collectives, or choose a tp_size that was measured: import one"


@contextmanager
def _rows_of(setting: Setting, family: str) -> Iterator[None]:
    """A profile's complaint becomes the planner's, with the field that can change it."""
    try:
        yield
    except ProfileError as error:
        message = error.message
        if family in COLLECTIVES and setting.cluster.num_ranks <= setting.given.ranks.gpus_per_node:
            # There is one node: no link between nodes can price its collectives.
            message = message.replace(_BETWEEN, _WITHIN)
        raise BadInputError(message, code=error.code, where=_place(setting, family, error)) from None


def _place(setting: Setting, family: str, error: ProfileError) -> str:
    given, profile = setting.given, setting.profile
    if error.code == "missing_field":
        return "derive.cluster.inter_node"
    if family == "gemm" and not profile.has("gemm", given.dtype):
        return "derive.dtype"
    if family == "moe_gemm" and not profile.has("moe_gemm", given.dtype, workload=given.workload):
        routed = any((table.family, table.dtype) == (family, given.dtype) for table in profile.document.tables)
        return "derive.workload" if routed else "derive.dtype"
    if family in COLLECTIVES:
        size, ranks = (
            ("expert_parallel_size", given.expert_parallel_size)
            if family == "all_to_all"
            else ("tp_size", given.tp_size)
        )
        tables = [table.cost_table() for table in profile.document.tables if table.family == family]
        if tables and (ranks or 0) > max(table.measured_range("ranks")[1] for table in tables):
            return f"derive.{size}"
    return "derive.extrapolate" if given.extrapolate == "refuse" else "derive.profile"
