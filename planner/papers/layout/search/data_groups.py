"""The ranks that share dense and expert parameters (page, section 2), for many combinations at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.memory.collectives import gather_s
from planner.papers.layout.ports import least_shared
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.search.combinations import Floats, Inner, Ints
from planner.papers.layout.search.exclusions import data_ranks


@dataclass(frozen=True)
class Group:
    """How many ranks share a parameter, and the link of their collectives: one an element."""

    ranks: Ints
    alpha_s: Floats
    beta_s_per_byte: Floats

    def gather_s(self, message: Floats) -> Floats:
        """An all-gather or a reduce-scatter [s]; what has no bytes is not sent."""
        sent = gather_s(self.ranks, message, self.alpha_s, self.beta_s_per_byte)
        return np.asarray(np.where(message > 0, sent, 0.0))


@dataclass(frozen=True)
class DataGroups:
    """Of dense and of expert parameters."""

    dense: Group
    experts: Group

    def gather_s(self, params: Floats, expert_params: Floats, bytes_per_param: float) -> Floats:
        """Both gathers, one after the other [s]."""
        return self.dense.gather_s(params * bytes_per_param) + self.experts.gather_s(expert_params * bytes_per_param)

    def sharded(self, params: Floats, expert_params: Floats) -> Floats:
        """Parameters of a rank's share."""
        return params / self.dense.ranks + expert_params / self.experts.ranks


def data_groups(problem: LayoutProblem, inner: Inner, pp: int) -> DataGroups:
    """Those of combinations that keep the rules."""
    tiers, node = problem.costs.collectives, problem.cluster.gpus_per_node
    dense = data_ranks(problem, inner, pp) * inner.cp
    experts = problem.cluster.num_gpus // (pp * inner.ep * inner.etp)

    shared = least_shared(problem.cluster.num_gpus, node, pp)
    inside = tiers.intra.beta_s_per_byte

    def group(ranks: Ints, within: Ints) -> Group:
        crosses, between = within * ranks > node, np.full(within.shape, tiers.inter.beta_s_per_byte)
        if tiers.inter.beta_of == "gpu":
            between = np.maximum(between / np.maximum(1, shared // within), inside)
        return Group(
            ranks,
            np.where(crosses, tiers.inter.alpha_s, tiers.intra.alpha_s),
            np.where(crosses, between, inside),
        )

    return DataGroups(group(dense, inner.tp), group(experts, inner.ep * inner.etp))
