"""What a placement moves in a step (page, section 3.2): collectives of every group, and bytes over the host's link."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.memory.collectives import gather_s
from planner.papers.memory.problem import MemoryProblem

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Traffic:
    """Collectives of one name over the dimensions ``first`` to ``end``; arrays have one entry a group.

    ``sent_bytes`` are what the device sends of all that is gathered or reduced, in all ``times``.
    """

    name: str
    first: int
    end: int
    times: int
    sent_bytes: Floats
    seconds: Floats


class Groups:
    """The groups of a problem as arrays, one entry a group."""

    def __init__(self, problem: MemoryProblem) -> None:
        self.problem = problem
        self.micro_batches = problem.num_micro_batches
        self.num_dims = problem.num_dims
        self.parameters = self._each("parameters_bytes")
        self.gradients = self._each("gradients_bytes")
        self.optimizer = self._each("optimizer_bytes")
        self.parameters_unit = self._each("parameters_unit_bytes")
        self.gradients_unit = self._each("gradients_unit_bytes")
        sizes = np.array([[1.0, *(dim.size for dim in group.dims)] for group in problem.groups])
        self.ranks: Floats = np.cumprod(sizes, axis=1).T
        """N(i), the product of the first i dimensions: [i, group]."""

        self._alpha_s = self._of_rings("alpha_s")
        self._beta = self._of_rings("beta_s_per_byte")
        self._of_gpu = np.array([[dim.beta_of == "gpu" for dim in group.dims] for group in problem.groups]).T

    def _of_rings(self, field: str) -> Floats:
        """Of every dimension and group; a single rank makes no ring: [dim, group]."""
        groups = self.problem.groups
        return np.array([[getattr(dim, field) if dim.size > 1 else 0.0 for dim in group.dims] for group in groups]).T

    def _each(self, field: str) -> Floats:
        return np.array([getattr(group, field) for group in self.problem.groups], dtype=np.float64)

    def traffic(self, name: str, first: int, end: int, whole_bytes: Floats, times: int) -> Traffic:
        """So many gathers to, or scatters of, ``whole_bytes`` sharded over the first dimensions already."""
        message = whole_bytes / self.ranks[first]
        ranks = self.ranks[end] / self.ranks[first]
        alpha_s, beta = self._slowest(first, end)
        sent: Floats = times * gather_s(ranks, message, 0.0, 1.0)
        return Traffic(name, first, end, times, sent, times * gather_s(ranks, message, alpha_s, beta))

    def _slowest(self, first: int, end: int) -> tuple[Floats, Floats]:
        """alpha and beta of the flat ring over some dimensions: the largest of those with more than one rank."""
        if first == end:
            return np.zeros_like(self.parameters), np.zeros_like(self.parameters)
        return self._alpha_s[first:end].max(axis=0), self.betas(first, end).max(axis=0)

    def betas(self, first: int, end: int) -> Floats:
        """Seconds of a byte over each of the dimensions that one ring runs over, 0 of a single rank: [dim, group].

        Over a dimension of GPUs' ports as many send at once as the ring has ranks inside it.
        """
        inside = self.ranks[first:end] / self.ranks[first]
        found: Floats = self._beta[first:end] / np.where(self._of_gpu[first:end], inside, 1.0)
        return found

    def parameters_gather(self, mode: str, i_p: int) -> Traffic:
        """Gathered for the forward, and again for the backward unless kept till then."""
        passes = 1 if mode == "gather_keep" else 2
        return self.traffic("parameters_gather", 0, i_p, self.parameters, passes * self.micro_batches)

    def gradients_scatter(self, i_g: int) -> Traffic:
        """Sharded gradients are reduced after every micro-batch."""
        return self.traffic("gradients_scatter", 0, i_g, self.gradients, self.micro_batches)

    def gradients_scatter_once(self, i_g: int, i_o: int) -> Traffic:
        """What is left to be reduced where the optimizer is sharded further than the gradients."""
        return self.traffic("gradients_scatter_once", i_g, i_o, self.gradients, 1)

    def gradients_reduce(self, i_o: int) -> Traffic:
        """All-reduced over what nothing is sharded over; a scatter and a gather."""
        return self.traffic("gradients_reduce", i_o, self.num_dims, self.gradients, 2)

    def parameters_update(self, i_p: int, i_o: int) -> Traffic:
        """Updated parameters come back to all that hold them."""
        return self.traffic("parameters_update", i_p, i_o, self.parameters, 1)


def parameters_link_bytes(groups: Groups, i_p: int) -> float:
    """Offloaded parameters come for the forward and for the backward of every micro-batch."""
    return 2 * groups.micro_batches * _sum(groups.parameters / groups.ranks[i_p])


def gradients_link_bytes(groups: Groups, i_g: int) -> float:
    """Offloaded gradients come and go in every micro-batch but one: the last goes to the optimizer's account."""
    return 2 * (groups.micro_batches - 1) * _sum(groups.gradients / groups.ranks[i_g])


def optimizer_link_bytes(groups: Groups, i_o: int) -> float:
    """Gradients go to an offloaded optimizer, updated parameters come back."""
    return _sum((groups.gradients + groups.parameters) / groups.ranks[i_o])


def activations_link_bytes(problem: MemoryProblem) -> float:
    """Offloaded activations go in the forward and come in the backward."""
    return 2 * problem.num_micro_batches * (problem.activations.micro_batch_bytes or 0.0)


def _sum(each: Floats) -> float:
    return math.fsum(each.tolist())
