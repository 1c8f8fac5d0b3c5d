"""Collectives of torch.distributed over gloo, on one machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from profiles.measure.group import part_rows
from profiles.measure.kernels import Array

# torch 2.13 renamed both.
_ALL_GATHER = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_REDUCE_SCATTER = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


def join(rendezvous: str, rank: int, ranks: int, timeout_s: float) -> GlooGroup:
    """The group of all ranks; `rendezvous` is a path that does not exist yet, the same at every rank."""
    # The loopback device: a host name that does not resolve must not keep processes of one machine apart.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    dist.init_process_group(
        "gloo",
        init_method=f"file://{rendezvous}",
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=timeout_s),
    )
    return GlooGroup(dist.group.WORLD, range(ranks), rank)


class GlooGroup:
    """See `profiles.measure.group.Group`. `members` are ranks of the world."""

    transport = "gloo"

    def __init__(self, group: Any, members: Sequence[int], own: int) -> None:
        self._group, self._members, self._own = group, tuple(members), own
        self.rank, self.ranks = self._members.index(own), len(self._members)
        self._subgroups: dict[tuple[int, ...], GlooGroup] = {}

    def barrier(self) -> None:
        """Return once every member is here."""
        dist.barrier(group=self._group)

    def all_reduce(self, x: Array) -> Array:
        """The sum over the members."""
        given, back = _as_tensor(x)
        out = given.clone()
        dist.all_reduce(out, group=self._group)
        return back(out)

    def all_gather(self, x: Array) -> Array:
        """Everyone's array, in the order of the ranks."""
        given, back = _as_tensor(x)
        out = given.new_empty((self.ranks * given.shape[0], *given.shape[1:]))
        _ALL_GATHER(out, given, group=self._group)
        return back(out)

    def reduce_scatter(self, x: Array) -> Array:
        """This rank's part of the sum."""
        given, back = _as_tensor(x)
        out = given.new_empty((part_rows(given, self.ranks), *given.shape[1:]))
        _REDUCE_SCATTER(out, given, group=self._group)
        return back(out)

    def all_to_all(self, x: Array) -> Array:
        """The parts that the ranks sent here."""
        given, back = _as_tensor(x)
        part_rows(given, self.ranks)
        out = torch.empty_like(given)
        dist.all_to_all_single(out, given, group=self._group)
        return back(out)

    def send_recv(self, x: Array | None, to: int | None, source: int | None, like: Array | None = None) -> Array | None:
        """Both directions at once; gloo has no line from a rank to itself."""
        if to == source == self.rank:
            return x.clone() if isinstance(x, torch.Tensor) else np.array(x)
        works = []
        if to is not None:
            works.append(dist.isend(_as_tensor(x)[0], self._members[to], group=self._group))
        found = None
        if source is not None:
            shape, back = _as_tensor(x if like is None else like)
            out = torch.empty_like(shape)
            works.append(dist.irecv(out, self._members[source], group=self._group))
            found = back(out)  # the same memory: filled once the wait is over
        for work in works:
            work.wait()
        return found

    def subgroup(self, members: Sequence[int]) -> GlooGroup:
        """The group of some ranks of this one; made once, then kept."""
        if self.rank not in members:
            raise ValueError(f"rank {self.rank} is not one of {list(members)}")
        world = tuple(self._members[member] for member in members)
        if world not in self._subgroups:
            # Older versions of torch know no other order than ascending.
            order = {} if list(world) == sorted(world) else {"sort_ranks": False}
            group = dist.new_group(list(world), backend="gloo", use_local_synchronization=True, **order)
            self._subgroups[world] = GlooGroup(group, world, self._own)
        return self._subgroups[world]


def _as_tensor(x: Array) -> tuple[torch.Tensor, Callable[[torch.Tensor], Array]]:
    """The array for torch, and the way back to its own kind; without a copy."""
    if isinstance(x, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(x)), lambda out: out.numpy()
    return x.detach().contiguous(), lambda out: out
