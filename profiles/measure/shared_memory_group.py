"""Collectives through memory that all processes map: each rank writes its slot, all wait, each reads the others'.

Waiting is by semaphores, one for each ordered pair of ranks, so that any subset of ranks can wait for each other.
A slot is small and messages pass through it in chunks, so memory does not grow with the message.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.context import SpawnContext
from multiprocessing.synchronize import Semaphore
from typing import Any

import numpy as np
import numpy.typing as npt

from profiles.measure.group import part_rows
from profiles.measure.kernels import Array

Numbers = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

SLOT_BYTES = 1 << 22
"""Of one rank; a multiple of 64 bytes times any count of ranks up to `MOST_RANKS`."""
MOST_RANKS = 64


@dataclass(frozen=True)
class Board:
    """What the processes of one machine share: a slot of memory for each rank, and tokens[i][j] from rank i to j.

    The memory has no name in the file system, so nothing is left behind whatever ends the processes.
    """

    memory: Any
    tokens: tuple[tuple[Semaphore, ...], ...]


def make_board(context: SpawnContext, ranks: int) -> Board:
    """The shared part, made by the parent before the ranks start."""
    memory = context.RawArray(ctypes.c_uint8, SLOT_BYTES * ranks)
    return Board(memory, tuple(tuple(context.Semaphore(0) for _ in range(ranks)) for _ in range(ranks)))


class SharedMemoryGroup:
    """See `profiles.measure.group.Group`. `members` are ranks of the board, this one's among them."""

    transport = "shared_memory"

    def __init__(self, board: Board, members: Sequence[int], own: int, timeout_s: float) -> None:
        self._board, self._members, self._own, self._timeout_s = board, tuple(members), own, timeout_s
        self.rank, self.ranks = self._members.index(own), len(self._members)
        everything = np.frombuffer(board.memory, dtype=np.uint8)
        self._slots = [everything[m * SLOT_BYTES : (m + 1) * SLOT_BYTES] for m in self._members]

    def barrier(self) -> None:
        """Dissemination: in round k every rank hears from the one 2^k before it."""
        step = 1
        while step < self.ranks:
            self._tell((self.rank + step) % self.ranks)
            self._hear((self.rank - step) % self.ranks)
            step *= 2

    def all_reduce(self, x: Array) -> Array:
        """Each rank sums its share of a chunk over all slots, in its own slot, where the others read it."""
        given, back = _as_numpy(x)
        flat = given.reshape(-1)
        out = np.empty_like(flat)
        step = SLOT_BYTES // given.itemsize
        for start in range(0, len(flat), step):
            chunk = flat[start : start + step]
            slots = [self._view(rank, chunk) for rank in range(self.ranks)]
            shares = [len(chunk) * rank // self.ranks for rank in range(self.ranks + 1)]
            slots[self.rank][:] = chunk
            self.barrier()
            own = slice(shares[self.rank], shares[self.rank + 1])
            slots[self.rank][own] = _sum([slot[own] for slot in slots])
            self.barrier()
            for rank, slot in enumerate(slots):
                part = slice(shares[rank], shares[rank + 1])
                out[start : start + step][part] = slot[part]
            self.barrier()
        return back(out.reshape(given.shape))

    def all_gather(self, x: Array) -> Array:
        """Everyone's array, in the order of the ranks."""
        given, back = _as_numpy(x)
        flat = given.reshape(-1)
        out = np.empty((self.ranks, len(flat)), given.dtype)
        step = SLOT_BYTES // given.itemsize
        for start in range(0, len(flat), step):
            chunk = flat[start : start + step]
            self._view(self.rank, chunk)[:] = chunk
            self.barrier()
            for rank in range(self.ranks):
                out[rank, start : start + step] = self._view(rank, chunk)
            self.barrier()
        return back(out.reshape((self.ranks * given.shape[0], *given.shape[1:])))

    def reduce_scatter(self, x: Array) -> Array:
        """This rank's part of the sum."""
        given, back = _as_numpy(x)
        out = np.empty((part_rows(given, self.ranks), *given.shape[1:]), given.dtype)
        flat = out.reshape(-1)
        for place, parts in self._exchanged(given):
            flat[place] = _sum(parts)
        return back(out)

    def all_to_all(self, x: Array) -> Array:
        """The parts that the ranks sent here."""
        given, back = _as_numpy(x)
        part_rows(given, self.ranks)
        out = np.empty_like(given)
        rows = out.reshape(self.ranks, -1)
        for place, parts in self._exchanged(given):
            for rank, part in enumerate(parts):
                rows[rank, place] = part
        return back(out)

    def send_recv(self, x: Array | None, to: int | None, source: int | None, like: Array | None = None) -> Array | None:
        """Chunk by chunk: mine is ready, yours is read."""
        sent = None if to is None else _as_numpy(x)[0].reshape(-1)
        if source is None:
            out, back = np.empty(0), None
        else:
            shape, back = _as_numpy(x if like is None else like)
            out = np.empty_like(shape)
        flat = out.reshape(-1)
        going = 0 if sent is None else -(-sent.nbytes // SLOT_BYTES)
        coming = -(-flat.nbytes // SLOT_BYTES)
        for number in range(max(going, coming)):
            if sent is not None and to is not None and number < going:
                chunk = _chunk(sent, number)
                self._view(self.rank, chunk)[:] = chunk
                self._tell(to)
            if source is not None and number < coming:
                self._hear(source)
                chunk = _chunk(flat, number)
                chunk[:] = self._view(source, chunk)
                self._tell(source)
            if to is not None and number < going:
                self._hear(to)
        return None if back is None else back(out)

    def subgroup(self, members: Sequence[int]) -> SharedMemoryGroup:
        """The group of some ranks of this one."""
        if self.rank not in members:
            raise ValueError(f"rank {self.rank} is not one of {list(members)}")
        board_ranks = [self._members[member] for member in members]
        return SharedMemoryGroup(self._board, board_ranks, self._own, self._timeout_s)

    def _exchanged(self, given: Numbers) -> Iterator[tuple[slice, list[Numbers]]]:
        """For each chunk of a part: its place in a part, and the views of what each rank has for this one."""
        parts = given.reshape(self.ranks, -1)
        step = SLOT_BYTES // self.ranks // given.itemsize
        for start in range(0, parts.shape[1], step):
            chunk = parts[:, start : start + step]
            self._view(self.rank, chunk)[:] = chunk
            self.barrier()
            yield slice(start, start + step), [self._view(rank, chunk)[self.rank] for rank in range(self.ranks)]
            self.barrier()

    def _view(self, rank: int, like: Numbers) -> Numbers:
        """The start of a slot as an array like another."""
        return self._slots[rank][: like.nbytes].view(like.dtype).reshape(like.shape)

    def _tell(self, rank: int) -> None:
        self._board.tokens[self._own][self._members[rank]].release()

    def _hear(self, rank: int) -> None:
        if not self._board.tokens[self._members[rank]][self._own].acquire(timeout=self._timeout_s):
            raise TimeoutError(f"rank {self.rank} waited {self._timeout_s:g} s for rank {rank}")


def _chunk(flat: Numbers, number: int) -> Numbers:
    step = SLOT_BYTES // flat.itemsize
    return flat[number * step : (number + 1) * step]


def _sum(parts: Sequence[Numbers]) -> Numbers:
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def _as_numpy(x: Array) -> tuple[Numbers, Callable[[Numbers], Array]]:
    """The array for numpy, and the way back to its own kind."""
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x), lambda out: out
    import torch

    if not isinstance(x, torch.Tensor) or x.dtype == torch.bfloat16:
        raise TypeError("shared memory carries numpy arrays, and torch tensors of a dtype that numpy has")
    return x.detach().contiguous().numpy(), torch.from_numpy
