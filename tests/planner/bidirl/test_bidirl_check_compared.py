"""Planner and check, written apart from each other, agree on random problems: splits, thresholds and every replay."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from bidirl_cases import layout, linear, problem, small
from bidirl_runs import random_run

from planner.errors import InfeasibleError
from planner.papers.bidirl.baselines import baselines
from planner.papers.bidirl.check import check
from planner.papers.bidirl.checks.event_run import Replay
from planner.papers.bidirl.checks.policies import WAYS
from planner.papers.bidirl.checks.run import Lending, Run
from planner.papers.bidirl.checks.splits import first_split
from planner.papers.bidirl.checks.stage_time import Fluid
from planner.papers.bidirl.engines import solve
from planner.papers.bidirl.policies import replayed
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.replay.setting import Setting, Stage, Switch
from planner.papers.bidirl.solution import Policy
from solvers.report import Limits

TWO_POOLS: tuple[Policy, ...] = (
    "no_borrow",
    "rollout_on_train",
    "train_on_rollout",
    "bidirectional",
    "opportunistic",
    "separated_async",
)


def run_of(setting: Setting) -> Run:
    """The same run as the check takes it."""
    s, rollout, train = setting.staleness, setting.rollout, setting.train
    to_rollout, to_train = setting.rollout_on_train, setting.train_on_rollout
    return Run(
        rollout=Fluid(rollout.fixed_s, rollout.bulk_replica_s, rollout.tail_s_per_token),
        train=Fluid(train.fixed_s, train.bulk_replica_s, train.tail_s_per_token),
        rollout_replicas=rollout.replicas,
        train_replicas=train.replicas,
        rollout_on_train=Lending(to_rollout.in_s, to_rollout.out_s, 0.0, rollout.helpers),
        train_on_rollout=Lending(to_train.in_s, to_train.out_s, to_train.grad_s, train.helpers),
        sync_s=setting.weight_sync_s,
        lead=1 if 0 < s < 1 else math.floor(s),
        stale=s if 0 < s < 1 else 1.0,
        work=[setting.work_factor[k % len(setting.work_factor)] for k in range(setting.steps)],
        longest_tokens=[
            setting.max_response_tokens[k % len(setting.max_response_tokens)] for k in range(setting.steps)
        ],
    )


def round_run(seed: int) -> Setting:
    """A run of round numbers, in which much happens at once; fractions of replicas do not add up in floats."""
    pick = random.Random(seed)
    some = pick.choice
    rollout = Stage(
        some([1, 2, 3, 6, 7]), some([0.0, 1.0, 4.0, 0.1]), some([0.0, 10.0, 20.0, 60.0]), some([0.0, 0.005, 0.01])
    )
    train = Stage(some([1, 2, 3, 6, 7]), some([0.0, 1.0, 6.0, 0.1]), some([10.0, 16.0, 20.0, 60.0]))
    helpers = some([0, 1, 2, 7])
    return Setting(
        rollout=Stage(rollout.replicas, rollout.fixed_s, rollout.bulk_replica_s, rollout.tail_s_per_token, helpers),
        train=Stage(train.replicas, train.fixed_s, train.bulk_replica_s, helpers=helpers),
        rollout_on_train=Switch(some([0.0, 1.0, 0.1, 8.0]), some([0.0, 1.0, 20.0])),
        train_on_rollout=Switch(some([0.0, 1.0, 0.1, 8.0]), some([0.0, 1.0, 20.0]), some([0.0, 0.5])),
        colocated_rollout=rollout,
        colocated_train=train,
        colocated_switch_s=0.0,
        weight_sync_s=some([0.0, 2.0, 0.1, 5.0]),
        staleness=some([0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 2.0, 3.0, 7.0]),
        steps=some([1, 2, 6, 12, 20]),
        work_factor=tuple(some([1.0, 1.0, 2.0, 0.5]) for _ in range(some([1, 1, 2, 3]))),
        max_response_tokens=tuple(some([100.0, 1000.0, 4000.0]) for _ in range(some([1, 2]))),
    )


def assert_alike(setting: Setting, policy: Policy) -> tuple[int, int]:
    """Both replays of a policy; how often pools were lent."""
    ours, theirs = Replay(run_of(setting), WAYS[policy]).play(), replayed(setting, policy)
    assert ours.completions_s == pytest.approx(list(theirs.completions_s), rel=1e-9), (policy, setting)
    idle_s = [theirs.rollout_idle_s, theirs.train_idle_s]
    assert [ours.rollout_idle_s, ours.train_idle_s] == pytest.approx(idle_s, rel=1e-9, abs=1e-9), (policy, setting)
    lent = ours.train_lent, ours.rollout_lent
    assert lent == (theirs.train_pool_lent, theirs.rollout_pool_lent), (policy, setting)
    return lent


def test_both_replays_agree_on_random_runs() -> None:
    lent = [assert_alike(random_run(seed), policy) for seed in range(120) for policy in TWO_POOLS]
    assert sum(train for train, _ in lent) > 250
    assert sum(rollout for _, rollout in lent) > 150


def test_both_replays_agree_where_much_happens_at_once() -> None:
    # In the last four a streamed bulk ends just as a sync begins, and which is first is up to rounding.
    seeds = [*range(170), 370, 700, 4164, 7783]
    lent = [assert_alike(round_run(seed), policy) for seed in seeds for policy in TWO_POOLS]
    assert sum(train for train, _ in lent) > 500
    assert sum(rollout for _, rollout in lent) > 250


def test_both_replays_agree_where_a_batch_is_nothing_but_its_tail_and_training_takes_no_time() -> None:
    """A batch then begins, and is streamed, at the very instant at which a sync ends and the next one begins."""
    base = round_run(0)
    setting = replace(
        base,
        rollout=Stage(2, 0.0, 0.0, 0.01, 1),
        train=Stage(2, 0.0, 0.0, 0.0, 1),
        staleness=2.0,
        weight_sync_s=5.0,
        steps=6,
        max_response_tokens=(1000.0, 100.0, 3000.0),
    )
    assert [assert_alike(setting, policy) for policy in TWO_POOLS] == [(0, 0)] * len(TWO_POOLS)


def with_run(seed: int) -> BidirlProblem:
    """A small problem with switch costs, a staleness and a run that vary."""
    pick = random.Random(seed)

    def costs(*names: str) -> dict[str, float]:
        return {name: pick.choice([0.0, 0.0, 0.5, 2.0, pick.uniform(0, 8)]) for name in names}

    changes: dict[str, Any] = {
        "staleness": pick.choice([0.0, 0.1, 0.5, 0.9, 1.0, 1.5, 4.0]),
        "costs__switch": {
            "rollout_on_train": costs("in_s", "out_s"),
            "train_on_rollout": costs("in_s", "out_s", "grad_s"),
        },
        "simulation": {
            "steps": pick.choice([1, 2, 5, 9]),
            "work_factor": [pick.choice([1.0, 0.5, pick.uniform(0.2, 3)]) for _ in range(pick.randint(1, 4))],
            "max_response_tokens": [pick.choice([10.0, 100.0, 4000.0]) for _ in range(pick.randint(1, 3))],
        },
    }
    return problem(small(seed).model_dump(mode="json"), **changes)


def test_every_plan_of_a_random_problem_passes_and_so_do_the_baselines() -> None:
    found, policies = 0, set()
    for seed in range(220):
        given = with_run(seed)
        try:
            solution = solve(given, None, Limits())[0]
        except InfeasibleError:
            assert first_split(given) is None, seed
            continue
        found += 1
        policies.add(solution.policy)
        assert check(given, solution) == [], seed
        if found % 5 == 0:
            for baseline in baselines(given, Limits()):
                if baseline.solution is not None:
                    assert check(given, baseline.solution) == [], (seed, baseline.name)
    assert found > 55
    assert policies == {"no_borrow", "rollout_on_train", "train_on_rollout", "bidirectional"}


@pytest.mark.parametrize("allow_idle_gpus", [False, True])
def test_the_best_of_many_splits_is_confirmed(allow_idle_gpus: bool) -> None:
    """5 x 5 layouts on 512 GPUs, a staleness of a half."""
    sizes = [1, 2, 4, 8, 16]
    given = problem(
        cluster__gpus=512,
        allow_idle_gpus=allow_idle_gpus,
        objective="period",
        staleness=0.5,
        costs__rollout_layouts=[layout(f"r{n}", n, linear(5 + n, 4000 / n**1.1, 0.001)) for n in sizes],
        costs__train_layouts=[layout(f"t{n}", n, linear(9 - n / 4, 5000 / n**0.9)) for n in sizes],
    )
    assert check(given, solve(given, None, Limits())[0]) == []


def test_a_drawn_run_is_replayed_as_drawn() -> None:
    responses = {"distribution": "lognormal", "median": 800.0, "sigma": 1.0, "cap": 8000.0}
    costs = {"costs__rollout_layouts": [layout("tp2", 2, linear(10, 400, 0.01))]}
    given = problem(simulation={"steps": 6, "responses": responses, "seed": 7}, **costs).sorted()
    solution = solve(given, None, Limits())[0]
    assert check(given, solution) == []
    other = problem(simulation={"steps": 6, "responses": responses, "seed": 8}, **costs)
    assert {violation.code for violation in check(other, solution)} == {"simulation"}
