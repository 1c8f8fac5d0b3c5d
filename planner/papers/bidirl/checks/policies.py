"""The replay of every policy (page, section 3.5) and which a plan should recommend, for the check."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from planner.findings import Findings
from planner.papers.bidirl.checks.backlogs import missing_groups, remaining_chunks
from planner.papers.bidirl.checks.decided import Pools
from planner.papers.bidirl.checks.event_run import Replay
from planner.papers.bidirl.checks.run import Lending, Ran, Run, Way, period_s
from planner.papers.bidirl.checks.splits import first_split
from planner.papers.bidirl.checks.stage_time import batch_s, fluid_of
from planner.papers.bidirl.drawing import workload
from planner.papers.bidirl.problem import AnyTime, BidirlProblem, LendRollout, LendTrain
from planner.papers.bidirl.solution import BidirlSolution, Replayed

TOLERANCE = 1e-7
"""Relative difference within which a replay agrees (page, section 8); of shares and tiny seconds absolute."""
TIE = 1e-9
"""Relative difference within which makespans tie."""
EDGE = 1e-10
"""How far apart two replays of many events may come to lie."""

WAYS: Mapping[str, Way] = {
    "no_borrow": Way(),
    "rollout_on_train": Way(train=True),
    "train_on_rollout": Way(rollout=True),
    "bidirectional": Way(train=True, rollout=True),
    "opportunistic": Way(train=True, rollout=True, by_rule=False),
    "separated_async": Way(streams=True),
}
RECOMMENDED = ("no_borrow", "rollout_on_train", "train_on_rollout", "bidirectional")
"""What a plan may recommend, by ascending count of directions."""


class Policies:
    """The replays of one split, each made once, when it is asked for."""

    def __init__(self, problem: BidirlProblem, pools: Pools) -> None:
        self.problem = problem
        self.pools = pools
        self.work, self.longest_tokens = (column.tolist() for column in workload(problem.simulation, problem.batch))
        self._ran: dict[str, Ran] = {}

    def ran(self, policy: str) -> Ran:
        """The run under a policy."""
        if policy not in self._ran:
            self._ran[policy] = self._run(policy)
        return self._ran[policy]

    def recommended(self, never: frozenset[str]) -> list[str]:
        """What may be called the one that ends first with fewest directions: rounding can leave two.

        ``never``: policies that lend where no backlog repays it.
        """
        ends_s = {policy: self.ran(policy).completions_s[-1] for policy in RECOMMENDED if policy not in never}
        limit_s = min(ends_s.values()) * (1 + TIE)
        found = []
        for policy, end_s in ends_s.items():
            if end_s <= limit_s * (1 + EDGE):
                found.append(policy)
                if end_s <= limit_s * (1 - EDGE):
                    break
        return found

    def _run(self, policy: str) -> Ran:
        if policy == "colocated":
            return self._colocated()
        if policy == "half_split":
            even = first_split(self.problem, even=True)
            pools = self.pools if even is None else even[0]
            return self.ran("no_borrow") if pools == self.pools else Replay(self._on(pools), WAYS["no_borrow"]).play()
        return Replay(self._on(self.pools), WAYS[policy]).play()

    def _on(self, pools: Pools) -> Run:
        problem, s = self.problem, self.problem.staleness
        switch, hot = problem.costs.switch, problem.hot_switch
        return Run(
            rollout=fluid_of(pools.rollout.time, problem.batch, pools.rollout_replicas, trains=False),
            train=fluid_of(pools.train.time, problem.batch, pools.train_replicas, trains=True),
            rollout_replicas=pools.rollout_replicas,
            train_replicas=pools.train_replicas,
            rollout_on_train=_lending(
                switch.rollout_on_train, pools.train_gpus // pools.rollout.gpus if hot.rollout_on_train else 0
            ),
            train_on_rollout=_lending(
                switch.train_on_rollout, pools.rollout_gpus // pools.train.gpus if hot.train_on_rollout else 0
            ),
            sync_s=problem.costs.weight_sync_s,
            lead=1 if 0 < s < 1 else math.floor(s),
            stale=s if 0 < s < 1 else 1.0,
            work=self.work,
            longest_tokens=self.longest_tokens,
        )

    def _colocated(self) -> Ran:
        """All GPUs roll out, switch, train, switch."""
        problem, pools = self.problem, self.pools
        work, longest = np.array(self.work), np.array(self.longest_tokens)
        taken_s = np.full(len(work), 2 * problem.costs.colocated_switch_s)
        for layout, planned, trains in (
            (pools.rollout, pools.rollout_replicas, False),
            (pools.train, pools.train_replicas, True),
        ):
            replicas = problem.cluster.gpus // layout.gpus
            fluid = fluid_of(
                layout.time, problem.batch, self._known(layout.time, replicas, planned, trains), trains=trains
            )
            taken_s += fluid.fixed_s + fluid.tail_s_per_token * longest + fluid.bulk_replica_s / replicas * work
        return Ran(np.cumsum(taken_s).tolist(), 0.0, 0.0, 0, 0)

    def _known(self, time: AnyTime, replicas: int, planned: int, trains: bool) -> int:
        """The replicas whose time says how much work there is: all, or the planned ones where a table ends."""
        return replicas if batch_s(time, self.problem.batch, replicas, trains=trains) < math.inf else planned


def check_simulation(problem: BidirlProblem, solution: BidirlSolution, pools: Pools, found: Findings) -> None:
    """That every row is what its replay gives, and that the policy is the best of those that a plan may name."""
    policies = Policies(problem, pools)
    for name, row in (solution.simulation or {}).items():
        if name in WAYS or name in ("colocated", "half_split"):
            _check_row(name, row, policies.ran(name), problem.staleness, found)
        else:
            found.add("simulation", f'no policy is called "{name}"', "simulation")
    if solution.policy is not None and solution.rule is None:
        never = _never(problem, pools, solution)
        first = policies.recommended(never)
        if solution.policy in never:
            message = f"{solution.policy} lends in a direction whose threshold is none: no backlog repays it"
            found.add("policy_not_best", message, "policy")
        elif solution.policy not in first:
            stated_s, least_s = (policies.ran(name).completions_s[-1] for name in (solution.policy, first[-1]))
            message = f"{solution.policy} ends after {stated_s!r} s, {first[-1]} after {least_s!r} s"
            found.add("policy_not_best", message, "policy")


def _never(problem: BidirlProblem, pools: Pools, solution: BidirlSolution) -> frozenset[str]:
    """Policies that lend in a direction without a threshold; where rounding decides that, as stated."""
    stated = solution.thresholds
    off: set[str] = set()
    for policy, (low, high), given in (
        ("rollout_on_train", missing_groups(problem, pools), stated and stated.min_missing_groups),
        ("train_on_rollout", remaining_chunks(problem, pools), stated and stated.min_remaining_chunks),
    ):
        if low is None or (high is None and given is None):
            off |= {policy, "bidirectional"}
    return frozenset(off)


def _check_row(name: str, row: Replayed, ran: Ran, staleness: float, found: Findings) -> None:
    end_s = ran.completions_s[-1]
    whole_s = end_s or 1.0
    expected: dict[str, float] = {
        "makespan_s": end_s,
        "step_period_s": period_s(ran.completions_s, staleness),
        "rollout_idle_share": ran.rollout_idle_s / whole_s,
        "train_idle_share": ran.train_idle_s / whole_s,
        "train_pool_lent": ran.train_lent,
        "rollout_pool_lent": ran.rollout_lent,
    }
    for field, value in expected.items():
        stated = getattr(row, field)
        if stated is not None and not _agree(stated, value, 0.0 if field.endswith("_s") else TOLERANCE):
            found.add("simulation", f"stated {stated!r}, replayed {value!r}", f"simulation.{name}.{field}")


def _agree(stated: float, value: float, least: float) -> bool:
    return math.isclose(stated, value, rel_tol=TOLERANCE, abs_tol=least)


def _lending(costs: LendTrain | None, helpers: int) -> Lending:
    if costs is None:
        return Lending(0.0, 0.0, 0.0, 0)
    return Lending(costs.in_s, costs.out_s, costs.grad_s if isinstance(costs, LendRollout) else 0.0, helpers)
