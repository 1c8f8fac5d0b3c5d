"""How a layer and its micro-batch are cut over ranks: the axes of every price of a training step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.derivation.account import Floats

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Cuts:
    """Layouts as arrays of one length (rows,): degrees, sequences of a micro-batch, sequence parallelism.

    ``ep`` and ``etp`` are 1 where a layer has no experts. ``sequence_length`` is in tokens.
    """

    sequence_length: int
    micro_batch: Ints
    tp: Ints
    cp: Ints
    sequence_parallel: Bools
    ep: Ints
    etp: Ints

    @property
    def tokens(self) -> Floats:
        """T: tokens of a micro-batch on one tensor group."""
        return np.asarray(self.sequence_length * self.micro_batch / self.cp)

    @property
    def norm_ranks(self) -> Ints:
        """q: ranks that share the tokens outside products, tp with sequence parallelism, else 1."""
        return np.where(self.sequence_parallel, self.tp, 1)

    @property
    def own_tokens(self) -> Floats:
        """T / q: tokens that a rank norms, routes and sends to experts."""
        return np.asarray(self.tokens / self.norm_ranks)

    def __len__(self) -> int:
        return len(self.micro_batch)

    def at(self, rows: Ints | Bools) -> Cuts:
        """Some of the layouts."""
        return Cuts(
            self.sequence_length,
            self.micro_batch[rows],
            self.tp[rows],
            self.cp[rows],
            self.sequence_parallel[rows],
            self.ep[rows],
            self.etp[rows],
        )


def one_cut(
    sequence_length: int,
    micro_batch: int = 1,
    *,
    tp: int = 1,
    cp: int = 1,
    sequence_parallel: bool = False,
    ep: int = 1,
    etp: int = 1,
) -> Cuts:
    """Arrays of length 1."""
    sizes = (np.array([size], dtype=np.int64) for size in (micro_batch, tp, cp, ep, etp))
    micro_batches, tps, cps, eps, etps = sizes
    return Cuts(sequence_length, micro_batches, tps, cps, np.array([sequence_parallel]), eps, etps)
