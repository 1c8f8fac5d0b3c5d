"""What other policies and simpler planners give on the same problem (page, section 5), by the same replay.

A policy, and RLinf's choice, is judged by its step, replayed where it is a policy, which lending may bring below any
split's objective: no answer of the problem, so that no bound holds for it. It stands beside the replayed step of the
policy that the plan recommends. A planner that picks a split is judged by the objective of that split, and its run
lends nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from planner.paper import Baseline
from planner.papers.bidirl.infeasibility import no_split
from planner.papers.bidirl.policies import RULES, recommended, replayed
from planner.papers.bidirl.problem import BidirlProblem, RolloutLayout, TrainLayout
from planner.papers.bidirl.replay.of_split import setting_of
from planner.papers.bidirl.replay.outcome import Outcome
from planner.papers.bidirl.replay.rules import Rules
from planner.papers.bidirl.search import Space, best_of, best_split, space_of
from planner.papers.bidirl.simulation import row_of
from planner.papers.bidirl.solution import POLICIES, BidirlSolution, Policy
from planner.papers.bidirl.split_figures import figures_of
from planner.papers.bidirl.splits import Split
from planner.papers.bidirl.stage_times.work import Floats
from planner.papers.bidirl.sweep import even_split, worst_split
from planner.papers.bidirl.thresholds import thresholds
from planner.units import percent, seconds
from solvers.report import Limits

Found = Baseline[BidirlSolution]


def baselines(problem: BidirlProblem, limits: Limits) -> list[Found]:
    """All baselines in the order of the page, beside the split and the policy that a plan would have.

    Raises InfeasibleError where no split is allowed.
    """
    del limits
    space = space_of(problem)
    planned = best_of(problem, space)
    if planned is None:
        raise no_split(problem)
    setting = setting_of(problem, planned)
    runs: dict[Policy, Outcome] = {policy: replayed(setting, policy) for policy in POLICIES if policy != "half_split"}
    chosen = recommended(runs, thresholds(problem, planned))
    plan_s, step_s = runs[chosen].makespan_s, runs[chosen].step_period_s
    simplest = problem.model_copy(update={"layout_policy": "minimal", "objective": "lambda_pipe"})
    return [
        *(
            Baseline(policy, run.step_period_s, _told(run, plan_s) + _off(problem, policy), outside=True, beside=step_s)
            for policy, run in runs.items()
        ),
        _of_split(problem, "half_split", even_split(problem, space), plan_s),
        _of_split(problem, "paper_planner", best_split(simplest), plan_s),
        replace(_colocated_or_split(problem, space, planned), beside=step_s),
        _of_split(problem, "worst_split", worst_split(problem, space), plan_s),
    ]


def _off(problem: BidirlProblem, policy: Policy) -> str:
    """Which loans of a policy the problem rules out."""
    rules, allowed = RULES.get(policy, Rules()), problem.hot_switch
    off = [
        f"hot_switch.{direction} is false"
        for direction, wanted, may in (
            ("rollout_on_train", rules.lend_train, allowed.rollout_on_train),
            ("train_on_rollout", rules.lend_rollout, allowed.train_on_rollout),
        )
        if wanted and not may
    ]
    return "".join(f"; {one}" for one in off)


def _of_split(problem: BidirlProblem, name: str, split: Split | None, plan_s: float) -> Found:
    """A split that a simpler rule picks, and its run without lending."""
    if split is None:
        return Baseline(name, None, "no allowed split of the smallest layouts", feasible=False)
    run = replayed(setting_of(problem, split), "no_borrow")
    solution = BidirlSolution(
        rollout_gpus=split.rollout_gpus,
        train_gpus=split.train_gpus,
        rollout_layout=split.rollout.id,
        train_layout=split.train.id,
        objective_s=figures_of(problem, split).objective_s,
        simulation={"no_borrow": row_of(run)},
        rule=name,
    )
    return Baseline(name, solution.objective_s, f"{_named(split)}; {_told(run, plan_s)}", solution)


def _colocated_or_split(problem: BidirlProblem, space: Space, planned: Split) -> Found:
    """RLinf's choice: the better of all GPUs in turn and of two pools, each by its step period."""
    split = best_of(problem.model_copy(update={"objective": "period"}), space) or planned
    split_s, pools = figures_of(problem, split).period_s, f"two pools, {_named(split)}"
    rollout_s, rollout = _on_all(problem, space.rollout, space.rollout_s)
    train_s, train = _on_all(problem, space.train, space.train_s)
    in_turn_s = rollout_s + train_s + 2 * problem.costs.colocated_switch_s
    if in_turn_s == inf:
        return Baseline("rlinf_style", split_s, f"{pools}; no times of all GPUs in turn", outside=True)
    in_turn = f"all GPUs in turn, {rollout} and {train}"
    if split_s <= in_turn_s:
        return Baseline("rlinf_style", split_s, f"{pools}; {in_turn}: {seconds(in_turn_s)}", outside=True)
    return Baseline("rlinf_style", in_turn_s, f"{in_turn}; {pools}: {seconds(split_s)}", outside=True)


def _on_all(
    problem: BidirlProblem, layouts: Sequence[RolloutLayout | TrainLayout], times_s: Floats
) -> tuple[float, str]:
    """The least time of a role on as many replicas as there is room for, and the layout."""
    gpus = problem.cluster.gpus
    return min(
        (float(times_s[row, gpus - gpus % layout.gpus]), layout.id)
        for row, layout in enumerate(layouts)
        if layout.gpus <= gpus
    )


def _named(split: Split) -> str:
    return f"{split.rollout_gpus}+{split.train_gpus} GPUs, {split.rollout.id} and {split.train.id}"


def _told(run: Outcome, plan_s: float) -> str:
    """The makespan beside that of the plan, the replayed step and what each pool idles."""
    return (
        f"run of {seconds(run.makespan_s)}, {run.makespan_s / plan_s:.3f} of the plan's; "
        f"step {seconds(run.step_period_s)}; idle {percent(run.rollout_idle_share)} of rollout, "
        f"{percent(run.train_idle_share)} of train"
    )
