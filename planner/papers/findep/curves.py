"""Priced arrays as the cost documents of the explicit form: a table of points, or the line fitted to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.attribution import Sources
from planner.derivation.account import Account, nine_digits, rounded_shares, sources_of
from planner.derivation.lines import Line, line_through
from planner.papers.findep.amounts import SampleCost, SampleTable, TokenCost, TokenTable
from planner.papers.findep.link_cost import Across
from planner.papers.findep.setting import Floats
from profiles.priced import SOURCES

Fit = Literal["table", "line"]


@dataclass(frozen=True)
class Curve:
    """Seconds at ascending amounts that never fall, where they come from, and the paper's line through them."""

    amounts: list[float]
    seconds: list[float]
    sources: Sources
    line: Line

    def per_sample(self, fit: Fit) -> SampleCost | SampleTable:
        """The document of a cost by samples."""
        if fit == "line":
            return SampleCost(alpha_s=self.line.alpha, beta_s_per_sample=self.line.beta, sources=self.sources)
        return SampleTable(samples=tuple(self.amounts), times_s=tuple(self.seconds), sources=self.sources)

    def per_token(self, fit: Fit) -> TokenCost | TokenTable:
        """The document of a cost by tokens."""
        if fit == "line":
            return TokenCost(alpha_s=self.line.alpha, beta_s_per_token=self.line.beta, sources=self.sources)
        return TokenTable(tokens=tuple(self.amounts), times_s=tuple(self.seconds), sources=self.sources)


def curve_of(amounts: Floats, account: Account, row: int | None = None) -> Curve:
    """The curve of an account's ``row``, or of a flat account. Amounts that repeat the one before are left out.

    More work is never cheaper: where rows of a table say so, the dearer one before counts. Shares of sources are means
    over the points.
    """
    by_source = account.by_source if row is None else account.by_source[:, row]
    kept = np.append(True, amounts[1:] > amounts[:-1])
    by_source, amounts = by_source[:, kept], amounts[kept]
    seconds = np.maximum.accumulate(by_source.sum(axis=0))
    shares = rounded_shares((by_source / by_source.sum(axis=0)).mean(axis=1))
    return Curve(amounts.tolist(), nine_digits(seconds), sources_of(shares.tolist()), line_through(amounts, seconds))


def straight(across: Across, row: int) -> TokenCost:
    """The cost of a split that leaves a node: a line by itself."""
    alpha, beta = nine_digits(np.array([across.alpha_s, across.beta_s_per_copy[row]]))
    shares = [float(index == across.source) for index in range(len(SOURCES))]
    return TokenCost(alpha_s=alpha, beta_s_per_token=beta, sources=sources_of(shares))
