"""What ranks that work together say to each other, whatever carries it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from profiles.measure.kernels import Array

TRANSPORTS = ("gloo", "shared_memory")


class Group(Protocol):
    """Some ranks of one machine, as one of them sees it; every member calls the same collectives in the same order.

    Arrays are numpy's, or torch's on the CPU, and what comes back is of the kind that was given. Parts lie along axis
    0, in the order of the ranks; shapes are the same at every member. Results are new arrays.
    """

    rank: int
    ranks: int
    transport: str

    def barrier(self) -> None:
        """Return once every member is here."""

    def all_reduce(self, x: Array) -> Array:
        """The sum over the members; the shape of `x`."""

    def all_gather(self, x: Array) -> Array:
        """Everyone's `x` one after the other: (ranks * x.shape[0], ...)."""

    def reduce_scatter(self, x: Array) -> Array:
        """This rank's part of the sum over the members: (x.shape[0] / ranks, ...)."""

    def all_to_all(self, x: Array) -> Array:
        """Part j of `x` goes to rank j; what each rank sent here, one after the other: the shape of `x`."""

    def send_recv(self, x: Array | None, to: int | None, source: int | None, like: Array | None = None) -> Array | None:
        """Send `x` to rank `to` while rank `source` sends here; what came, or None without a source.

        `like` has the shape and dtype of what comes, where that is not those of `x`. Without `to` nothing is sent.
        """

    def subgroup(self, members: Sequence[int]) -> Group:
        """The group of some ranks of this one, in the order given; only its members call this.

        Raises ValueError at a rank that is not a member.
        """


def part_rows(x: Array, ranks: int) -> int:
    """Rows of one part. Raises ValueError if axis 0 is not a multiple of `ranks`."""
    rows = int(x.shape[0])
    if rows % ranks:
        raise ValueError(f"axis 0 has {rows} rows, not a multiple of {ranks} ranks")
    return rows // ranks
