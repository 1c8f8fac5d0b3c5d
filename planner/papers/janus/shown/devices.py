"""What each pair of devices can do, and why those that the plan does not use lose."""

from __future__ import annotations

from planner.papers.janus.corners import Corners
from planner.papers.janus.frontier import ROUNDING, family, slots_fit
from planner.papers.janus.model import Option
from planner.papers.janus.options import options
from planner.papers.janus.presentation import unit
from planner.papers.janus.problem import ScalingProblem
from planner.papers.janus.search import cheapest
from planner.papers.janus.shown.words import pools
from planner.papers.janus.solution import ScalingSolution
from planner.units import amount, in_bytes, percent, seconds
from planner.view import Table


def device_tables(problem: ScalingProblem, solution: ScalingSolution) -> tuple[Table, ...]:
    """One row for each pair of devices, in the order of cost; none where there is no choice."""
    if len(problem.devices) < 2:
        return ()
    rows = [_row(problem, solution, option) for option in options(problem)]
    ordered = tuple(row for _, row in sorted(rows, key=lambda each: each[0]))
    return (Table("the best of each pair of devices", ("device", "pools", "cost", "a token", ""), ordered),)


def _row(problem: ScalingProblem, solution: ScalingSolution, option: Option) -> tuple[float, tuple[str, ...]]:
    name = option.device or ""
    best = cheapest([option], [problem.demand_tokens_per_s])[0]
    if not best:
        return float("inf"), (name, *_missed(option, problem.demand_tokens_per_s))
    cost = best[0].objective
    more = cost / solution.objective - 1
    said = "the plan" if name == solution.device else "as cheap" if more <= ROUNDING else f"{percent(more)} dearer"
    named = pools(best[0].n_a, best[0].n_e)
    return cost, (name, named, amount(cost, unit(problem)), seconds(best[0].tpot_s), said)


def _missed(option: Option, demand: float) -> tuple[str, ...]:
    """Pools, cost, time and what they miss, of those that miss one thing least."""
    if not slots_fit(option):
        return "-", "-", "-", "its slots do not fit the memory of an expert instance"
    if not len(family(option).n_e):
        return "-", "-", "-", "no pools within limits hold all experts"
    nearest = min(Corners.of(option, demand).nearest(), key=lambda broken: broken.ratio, default=None)
    if nearest is None:
        return "-", "-", "-", "no pools within limits reach a steady batch, in time or in memory"
    named = pools(nearest.n_a, nearest.n_e)
    if nearest.code == "tpot_slo":
        return named, "-", seconds(nearest.required), f"the fastest, over the SLO of {seconds(option.slo_s)}"
    needed, held = in_bytes(nearest.required), in_bytes(nearest.available)
    return named, "-", "-", f"in time, but an attention instance takes {needed} of {held}"
