"""A chunk's way between the pools, by the token copies that one expert GPU receives or returns (eq. 4).

Ports are full duplex. An expert GPU moves its copies over its own port; they come from ag attention GPUs, each of which
moves E/ag times what one expert gets. The busier port sets the pace.

Inside a node the exchange is priced as the profile's all-to-all of ag + eg ranks in which every rank sends as much as
the busier port carries: modelled, because only one pool sends at a time. Across nodes all of it is priced as leaving
the node: one step of the link's latency, and the bytes of the busier port over a GPU's share of the bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.derivation.account import Account
from planner.papers.findep.setting import Floats, Setting
from profiles.clusters.tiers import STATED as SAID_BY_USER
from profiles.priced import MODELLED, STATED


@dataclass(frozen=True)
class Across:
    """Splits that leave a node: alpha + beta x copies, beta (rows,)."""

    alpha_s: float
    beta_s_per_copy: Floats
    source: int


@dataclass(frozen=True)
class LinkCosts:
    """One direction: the splits inside a node as seconds (rows, points), those across nodes as lines."""

    inside: Account | None
    across: Across | None


def port_bytes_per_copy(setting: Setting, element_bytes: float) -> Floats:
    """Bytes through the busier port for each copy that an expert GPU moves, (splits,)."""
    experts, given = setting.model.experts, setting.given
    busier = np.maximum(1.0, experts.count / (setting.attention_gpus * setting.hosted))
    return np.asarray(setting.model.hidden * element_bytes * busier * _copies_sent(setting, given.copies))[:, 0]


def _copies_sent(setting: Setting, copies: str) -> Floats:
    """Of the copies that a GPU's experts work on, how many travel: all, or one a token and GPU.

    A token chooses K of E experts, each set as likely as any other, so it has none of h on a GPU with probability
    C(E-h, K) / C(E, K); K h / E is how many it has there on average.
    """
    experts, hosted = setting.model.experts, setting.hosted
    if copies == "expert":
        return np.ones_like(hosted)
    none = np.ones_like(hosted)
    for chosen in range(experts.top_k):
        none *= np.maximum(experts.count - hosted - chosen, 0.0) / (experts.count - chosen)
    return np.asarray((1.0 - none) / (experts.top_k * hosted / experts.count))


def link_costs(setting: Setting, copies: Floats, element_bytes: float) -> LinkCosts:
    """Both kinds of split, in their order; ``copies`` (splits, points). Raises ProfileError."""
    a_copy, crosses = port_bytes_per_copy(setting, element_bytes), setting.crosses
    inside, across = None, None
    if not crosses.all():
        ranks = (setting.attention_gpus + setting.expert_gpus)[~crosses]
        message = copies[~crosses] * a_copy[~crosses, None] * ranks / (ranks - 1.0)
        priced = setting.profile.collective("all_to_all", message, ranks, extrapolate=setting.given.extrapolate)
        inside = Account(message.shape)
        inside.add("all_to_all", priced.seconds, MODELLED)
    if crosses.any():
        link = setting.cluster.link
        if link is None:
            raise TypeError("a split crosses nodes and the link was not looked up")
        source = STATED if link.source == SAID_BY_USER else MODELLED
        across = Across(link.latency_s, a_copy[crosses] / link.bandwidth_bytes_per_s, source)
    return LinkCosts(inside, across)
