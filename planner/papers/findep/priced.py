"""All costs of a derived problem, priced once over the search box."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.attribution import Said
from planner.derivation.account import Account
from planner.derivation.moe.attention_cost import attention_seconds, dense_seconds, head_seconds, shared_seconds
from planner.derivation.moe.cautions import attention_cautions
from planner.derivation.moe.forward import Forward
from planner.derivation.references import input_errors
from planner.papers.findep.amounts import TokenCost, TokenTable
from planner.papers.findep.box import samples_of, tokens_of
from planner.papers.findep.cautions import expert_cautions
from planner.papers.findep.curves import Curve, Fit, curve_of, straight
from planner.papers.findep.expert_cost import expert_seconds
from planner.papers.findep.link_cost import LinkCosts, link_costs
from planner.papers.findep.missing_rows import rows_of_attention, rows_of_experts
from planner.papers.findep.setting import Floats, Setting
from profiles.errors import ProfileError


@dataclass(frozen=True)
class Way:
    """One direction of one split: a priced curve inside a node, a line of its own across nodes."""

    curve: Curve | None
    line: TokenCost | None

    def cost(self, fit: Fit) -> TokenCost | TokenTable:
        """The cost document."""
        if self.line is not None:
            return self.line
        if self.curve is None:
            raise TypeError("a way has a curve or a line")
        return self.curve.per_token(fit)


@dataclass(frozen=True)
class Prices:
    """Curves of every cost; those of splits in the order of the splits.

    ``e2a`` is ``a2e`` itself where both directions carry the same bytes. ``dense`` and ``head`` are no part of the
    problem, and None where the tables do not reach. ``by_family`` is the time of a layer's tasks at the largest
    micro-batch of the box, by family and dtype, the mean over splits; links across nodes are left out of it.
    """

    attention: Curve
    shared: Curve | None
    experts: list[Curve]
    a2e: list[Way]
    e2a: list[Way]
    dense: Curve | None
    head: Curve | None
    attention_cautions: Said | None
    expert_cautions: Said | None
    by_family: dict[str, float]


def prices_of(setting: Setting) -> Prices:
    """Look up everything. Raises BadInputError where the tables end and extrapolation is refused."""
    samples, tokens = samples_of(setting), tokens_of(setting)
    copies = tokens * setting.hosted
    with rows_of_attention(setting):
        attention, shared = attention_seconds(setting.forward, samples), shared_seconds(setting.forward, samples)
    with rows_of_experts(setting):
        experts = expert_seconds(setting, tokens)
    given = setting.given
    with input_errors("derive.cluster"):
        out = link_costs(setting, copies, given.dispatch_bytes)
        same = given.dispatch_bytes == given.combine_bytes
        back = out if same else link_costs(setting, copies, given.combine_bytes)
    a2e = _ways(setting, copies, out)
    return Prices(
        attention=curve_of(samples, attention),
        shared=None if shared is None else curve_of(samples, shared),
        experts=[curve_of(tokens[row], experts, row) for row in range(len(tokens))],
        a2e=a2e,
        e2a=a2e if same else _ways(setting, copies, back),
        dense=_beside(dense_seconds, setting, samples),
        head=_beside(head_seconds, setting, samples),
        attention_cautions=attention_cautions(setting.forward, samples, attention.seconds) or None,
        expert_cautions=expert_cautions(setting, tokens, experts.seconds),
        by_family=_by_family(setting, [attention] if shared is None else [attention, shared], experts, (out, back)),
    )


def _beside(price: Callable[[Forward, Floats], Account | None], setting: Setting, samples: Floats) -> Curve | None:
    """A time that is only told: nothing fails for want of it."""
    try:
        account = price(setting.forward, samples)
    except ProfileError:
        return None
    return None if account is None else curve_of(samples, account)


def _ways(setting: Setting, copies: Floats, costs: LinkCosts) -> list[Way]:
    ways, inside, across = [], 0, 0
    for row, crosses in enumerate(setting.crosses.tolist()):
        if crosses and costs.across is not None:
            ways.append(Way(None, straight(costs.across, across)))
            across += 1
        elif costs.inside is not None:
            ways.append(Way(curve_of(copies[row], costs.inside, inside), None))
            inside += 1
    return ways


def _by_family(
    setting: Setting, on_attention: list[Account], experts: Account, links: tuple[LinkCosts, LinkCosts]
) -> dict[str, float]:
    times: dict[str, float] = defaultdict(float)
    for account in on_attention:
        for family, seconds in account.by_family.items():
            times[family] += float(seconds[-1])
    for family, seconds in experts.by_family.items():
        times[family] += float((seconds[:, -1:] * setting.hosted).mean())
    for link in links:
        for family, seconds in link.inside.by_family.items() if link.inside else ():
            times[family] += float(np.sum(seconds[:, -1]) / len(setting.splits))
    return dict(times)
