"""alpha and beta of each step of the exchange (page, "Model" 4), over the bytes of a node's payload.

Between nodes a payload goes over as many links as the problem says, one of each GPU of the node unless it says less,
and never over more than there are instances at either end; ``network`` is one of these links.

Inside a node the steps are the profile's collectives of all its GPUs: all_gather to collect the payload, broadcast to
spread it (all_gather where that was not measured: every GPU receives as much, so it is tagged modelled), all_reduce to
add the results up. A cluster of one node has both pools in it: what goes between nodes elsewhere goes from one GPU to
one other, by send_recv, or where that was not measured by an all_gather of two ranks, of which each sends half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.attribution import Sources
from planner.derivation.account import rounded_shares, sources_of
from planner.derivation.collective_line import CollectiveLine, collective_line
from planner.derivation.lines import Line
from planner.errors import BadInputError
from planner.papers.janus.costs import TwoPhase, Way
from planner.papers.janus.prices.setting import Setting
from profiles.clusters.tiers import STATED as SAID_BY_USER
from profiles.errors import ProfileError
from profiles.priced import MODELLED, SOURCES, STATED
from profiles.profile import Profile


@dataclass(frozen=True)
class PricedWay:
    """A step's line, and the collective whose rows it goes through; None for a link."""

    line: Line
    sources: Sources
    operation: str | None

    def document(self) -> Way:
        """The document of the explicit form."""
        return Way(alpha_s=self.line.alpha, beta_s_per_byte=self.line.beta)


def priced_ways(setting: Setting) -> dict[str, PricedWay]:
    """gather, network, multicast and reduce. Raises BadInputError: no rows of so many ranks, no link between nodes."""
    node = setting.node
    if node == 1:
        nothing = PricedWay(Line(0.0, 0.0, 0.0, 0.0), sources_of(_only(STATED)), None)
        return {"gather": nothing, "network": _network(setting), "multicast": nothing, "reduce": nothing}
    return {
        "gather": _inside(setting, setting.attention, "all_gather", node),
        "network": _network(setting),
        "multicast": _multicast(setting, node),
        "reduce": _inside(setting, setting.experts, "all_reduce", node),
    }


def two_phase(setting: Setting, ways: dict[str, PricedWay]) -> TwoPhase:
    """The document; its shares of sources are means over the steps."""
    names = ("measured", "interpolated", "modelled", "stated")
    shares = np.array([[getattr(way.sources, name) for name in names] for way in ways.values()])
    return TwoPhase(
        gpus_per_node=setting.node,
        links_per_node=links_per_node(setting) if _has_nodes(setting) else 1,
        bytes_per_request=setting.model.hidden * setting.given.sent_bytes,
        gather=ways["gather"].document(),
        network=ways["network"].document(),
        multicast=ways["multicast"].document(),
        reduce=ways["reduce"].document(),
        priced_ranks=setting.cluster.num_ranks,
        sources=sources_of(rounded_shares(shares.mean(axis=0)).tolist()),
    )


def _has_nodes(setting: Setting) -> bool:
    return setting.cluster.num_ranks > setting.cluster.gpus_per_node


def links_per_node(setting: Setting) -> int:
    """Links between nodes that all GPUs of a node have together. Raises BadInputError: more than one a GPU."""
    links = setting.given.links_per_node or setting.node
    if links > setting.node:
        raise BadInputError(
            f"expected at most one link for each of a node's {setting.node} GPUs, got {links}",
            code="out_of_range",
            where="derive.links_per_node",
        )
    return links


def _multicast(setting: Setting, node: int) -> PricedWay:
    if _measured(setting.experts, "broadcast"):
        return _inside(setting, setting.experts, "broadcast", node)
    gathered = _inside(setting, setting.experts, "all_gather", node)
    return PricedWay(gathered.line, sources_of(_only(MODELLED)), gathered.operation)


def _network(setting: Setting) -> PricedWay:
    cluster = setting.cluster
    if _has_nodes(setting):
        link = cluster.link
        if link is None:
            message = (
                f"{cluster.num_ranks} GPUs are more than a node of {cluster.gpus_per_node}: state the link between "
                "nodes (bandwidth_bytes_per_s and latency_s, or an imported log)"
            )
            raise BadInputError(message, code="missing_field", where="derive.cluster.inter_node")
        links_per_node(setting)
        line = Line(float(f"{link.latency_s:.8e}"), float(f"{1.0 / link.bandwidth_bytes_per_s:.8e}"), 0.0, 0.0)
        return PricedWay(line, sources_of(_only(STATED if link.source == SAID_BY_USER else MODELLED)), None)
    if _measured(setting.attention, "send_recv"):
        return _inside(setting, setting.attention, "send_recv", 2)
    pair = _inside(setting, setting.attention, "all_gather", 2)
    line = Line(pair.line.alpha, float(f"{2.0 * pair.line.beta:.8e}"), pair.line.mape, pair.line.worst)
    return PricedWay(line, sources_of(_only(MODELLED)), pair.operation)


def _inside(setting: Setting, profile: Profile, operation: str, ranks: int) -> PricedWay:
    try:
        fitted: CollectiveLine = collective_line(profile, operation, ranks, setting.given.extrapolate)
    except ProfileError as error:
        message = f"{operation} of {ranks} ranks in a node: {error.message}"
        raise BadInputError(message, code=error.code, where="derive.profile") from None
    return PricedWay(fitted.line, fitted.sources, operation)


def _measured(profile: Profile, operation: str) -> bool:
    return any(table.family == operation for table in profile.document.tables)


def _only(source: int) -> list[float]:
    return [float(index == source) for index in range(len(SOURCES))]
