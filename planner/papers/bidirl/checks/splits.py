"""Every split of every pair of usable layouts, by the page's rules and order, apart from the search."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.papers.bidirl.checks.decided import Pools, usable_layouts
from planner.papers.bidirl.checks.stage_time import Floats, Ints, seconds, whole_of
from planner.papers.bidirl.problem import BidirlProblem, Linear, RolloutLayout, TrainLayout

TIE = 1 + 1e-9
"""Ratio within which times tie (page, section 4)."""
EDGE = 1e-12
"""What rounding may move a ratio by."""

Pair = tuple[RolloutLayout, TrainLayout]


class Judged(NamedTuple):
    """What the order of splits goes by, as far as it is seconds."""

    objective_s: float
    total_s: float


class _Rows(NamedTuple):
    """Splits of one pair, each with the pool T of all that may stand beside it that is fastest."""

    pair: int
    rollout_gpus: Ints
    rollout_s: Floats
    train_s: Floats
    objective_s: Floats

    def within(self, limit_s: float) -> _Rows:
        """Those whose objective is no more than that."""
        kept = self.objective_s <= limit_s
        return _Rows(
            self.pair, self.rollout_gpus[kept], self.rollout_s[kept], self.train_s[kept], self.objective_s[kept]
        )


def period_s(problem: BidirlProblem, layout: RolloutLayout, rollout_s: Floats, train_s: Floats) -> Floats:
    """Equation 2: seconds from step to step in steady state."""
    s, w = problem.staleness, problem.costs.weight_sync_s
    if s == 0:
        return w + rollout_s + train_s
    if s >= 1:
        return w + np.maximum(rollout_s, train_s)
    fixed_s = tail_s = 0.0
    if isinstance(layout.time, Linear):
        fixed_s = layout.time.alpha_s
        tail_s = layout.time.gamma_s_per_token * problem.batch.max_response_tokens
    bulk_s = rollout_s - fixed_s - tail_s
    return w + np.maximum(rollout_s, train_s + (1 - s) * bulk_s + tail_s)


def objective_s(problem: BidirlProblem, layout: RolloutLayout, rollout_s: Floats, train_s: Floats) -> Floats:
    """What is to be least."""
    if problem.objective == "period":
        return period_s(problem, layout, rollout_s, train_s)
    return np.maximum(rollout_s, train_s)


def first_split(problem: BidirlProblem, *, even: bool = False) -> tuple[Pools, Judged] | None:
    """The split that the page's order puts first; None where none is allowed and timed.

    ``even``: of those whose rollout pool is nearest to half of the GPUs, the smaller of two as near.
    """
    pairs = _pairs(problem)
    times = _Times(problem)
    at = _nearest_to_half(problem, times, pairs) if even else None
    rows = _least(problem, times, pairs, at)
    if not rows:
        return None
    least_s = min(float(row.objective_s.min()) for row in rows)
    least_total_s = min(float((row.rollout_s + row.train_s).min()) for row in rows)
    best: tuple[tuple[int, int, int, int, str, str], Pools, Judged] | None = None
    for row in rows:
        rollout, train = pairs[row.pair]
        tied = np.flatnonzero(row.rollout_s + row.train_s <= least_total_s * TIE)
        # Pools R of one time have one pool T beside them, so that of each time the smallest comes first.
        for place in tied[np.unique(row.rollout_s[tied], return_index=True)[1]].tolist():
            g_r, rollout_s, train_s = (column[place].item() for column in row[1:4])
            g_t = problem.cluster.gpus - g_r
            if problem.allow_idle_gpus:
                g_t = times.fewest(pairs[row.pair], g_t, rollout_s, least_s * TIE, least_total_s * TIE)
            key = (g_r + g_t, rollout.gpus, train.gpus, g_r, rollout.id, train.id)
            if best is None or key < best[0]:
                judged = Judged(float(row.objective_s[place]), rollout_s + train_s)
                best = key, Pools(g_r, g_t, rollout, train), judged
    return None if best is None else best[1:]


class _Times:
    """Seconds of a layout in pools of 0 to G GPUs, infinite where a pool is not allowed; each computed once."""

    def __init__(self, problem: BidirlProblem) -> None:
        self.problem = problem
        self.gpus = np.arange(problem.cluster.gpus + 1)
        self._own: dict[tuple[bool, str], Floats] = {}
        self._fewest: dict[tuple[str, str, float], int] = {}

    def own_s(self, layout: RolloutLayout | TrainLayout, *, trains: bool) -> Floats:
        """Of a whole batch, by GPUs of the pool."""
        key = (trains, layout.id)
        if key not in self._own:
            whole = (self.gpus > 0) & (self.gpus % layout.gpus == 0)
            batch = self.problem.batch
            parts = np.array(whole_of(batch, trains=trains))
            taken_s = seconds(layout.time, batch, parts, np.maximum(1, self.gpus // layout.gpus), trains=trains)
            self._own[key] = np.where(whole, taken_s, math.inf)
        return self._own[key]

    def rollout_s(self, pair: Pair) -> Floats:
        """By GPUs of pool R, where (3) and (4) allow them."""
        (rollout, train), n = pair, self.problem.cluster.gpus_per_node
        allowed = self.gpus % self.problem.split_granularity_gpus == 0
        allowed &= self.gpus % min(train.gpus, n) == 0
        if self.problem.hot_switch.train_on_rollout:
            allowed &= self.gpus % train.gpus == 0
        return np.where(allowed, self.own_s(rollout, trains=False), math.inf)

    def train_s(self, pair: Pair) -> Floats:
        """By GPUs of pool T; where some may stay idle, the least of any pool up to that."""
        rollout, train = pair
        own_s = self.own_s(train, trains=True)
        if self.problem.hot_switch.rollout_on_train:
            own_s = np.where(self.gpus % rollout.gpus == 0, own_s, math.inf)
        return np.minimum.accumulate(own_s) if self.problem.allow_idle_gpus else own_s

    def fewest(self, pair: Pair, most: int, rollout_s: float, objective_s_: float, total_s: float) -> int:
        """The fewest train GPUs up to ``most`` that keep the objective and the sum of times within limits."""
        key = (pair[0].id, pair[1].id, rollout_s)
        if key not in self._fewest:
            train_s = self.train_s(pair)
            keeps = (rollout_s + train_s <= total_s) & (
                objective_s(self.problem, pair[0], np.array(rollout_s), train_s) <= objective_s_
            )
            self._fewest[key] = int(keeps.argmax())
        return min(most, self._fewest[key])


def _pairs(problem: BidirlProblem) -> list[Pair]:
    """Pairs of usable layouts, both of which tile nodes."""
    n = problem.cluster.gpus_per_node

    def tile(layout: RolloutLayout | TrainLayout) -> bool:
        return n % layout.gpus == 0 or layout.gpus % n == 0

    rollout = [layout for layout in usable_layouts(problem, problem.costs.rollout_layouts) if tile(layout)]
    train = [layout for layout in usable_layouts(problem, problem.costs.train_layouts) if tile(layout)]
    return [
        (one, other)
        for one in rollout
        if isinstance(one, RolloutLayout)
        for other in train
        if isinstance(other, TrainLayout)
    ]


def _nearest_to_half(problem: BidirlProblem, times: _Times, pairs: list[Pair]) -> int:
    allowed = np.zeros(len(times.gpus), dtype=np.bool_)
    for pair in pairs:
        allowed |= np.isfinite(times.rollout_s(pair)) & np.isfinite(times.train_s(pair)[::-1])
    distance = np.where(allowed, np.abs(2 * times.gpus - problem.cluster.gpus), 3 * problem.cluster.gpus)
    return int(distance.argmin())


def _least(problem: BidirlProblem, times: _Times, pairs: list[Pair], at: int | None) -> list[_Rows]:
    """The splits of least objective, of one rollout pool alone where ``at`` says so."""
    rows: list[_Rows] = []
    least_s = math.inf
    for number, pair in enumerate(pairs):
        rollout_s, train_s = times.rollout_s(pair), times.train_s(pair)[::-1]
        both: npt.NDArray[np.bool_] = np.isfinite(rollout_s) & np.isfinite(train_s)
        g_r = np.flatnonzero(both) if at is None else np.array([at] if both[at] else [], dtype=np.int64)
        if not len(g_r):
            continue
        judged_s = objective_s(problem, pair[0], rollout_s[g_r], train_s[g_r])
        least_s = min(least_s, float(judged_s.min()))
        rows.append(_Rows(number, g_r, rollout_s[g_r], train_s[g_r], judged_s).within(least_s * TIE))
    limited = [row.within(least_s * TIE) for row in rows]
    return [row for row in limited if len(row.rollout_gpus)]
