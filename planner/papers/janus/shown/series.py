"""What there is to see of a series: GPUs over time, GPU-hours beside the baselines, which pools are used how long."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.papers.janus.problem import SeriesProblem
from planner.papers.janus.shown.maps import map_tables
from planner.papers.janus.shown.memory_table import memory_tables
from planner.papers.janus.shown.words import clock, gpus, pools
from planner.papers.janus.sizing import HOUR_S
from planner.papers.janus.solution import SeriesSolution
from planner.units import amount, seconds
from planner.view import Bar, Bars, Segment, Table, View

MOST_BARS = 32
MOST_POOLS = 24
ATTENTION, EXPERTS = "attention", "experts"


def series_view(problem: SeriesProblem, solution: SeriesSolution) -> View:
    """The day in bars, its GPU-hours beside the baselines, and the pools used."""
    return View(
        (
            _day(problem, solution),
            _beside(solution),
            _used(problem, solution),
            *memory_tables(problem, solution),
            *map_tables(solution.expert_maps),
        )
    )


def _day(problem: SeriesProblem, solution: SeriesSolution) -> Bars:
    count = len(problem.series)
    each = -(-count // MOST_BARS)
    bars = tuple(_bar(problem, solution, range(start, min(start + each, count))) for start in range(0, count, each))
    together = "" if each == 1 else f", means over {each} intervals"
    peak = max(pool.attention_instances + pool.expert_instances for pool in solution.intervals)
    return Bars(f"GPUs{together}, | the peak", bars, "GPUs", (ATTENTION, EXPERTS), limit=float(peak))


def _bar(problem: SeriesProblem, solution: SeriesSolution, places: Sequence[int]) -> Bar:
    durations = [problem.series[place].duration_s for place in places]
    whole = math.fsum(durations)

    def mean(values: Sequence[float]) -> float:
        return math.fsum(value * duration_s for value, duration_s in zip(values, durations, strict=True)) / whole

    chosen = [solution.intervals[place] for place in places]
    demand = mean([problem.series[place].demand_tokens_per_s for place in places])
    first = chosen[0]
    alike = all(
        (pool.attention_instances, pool.expert_instances, pool.device)
        == (first.attention_instances, first.expert_instances, first.device)
        for pool in chosen
    )
    totals = [pool.attention_instances + pool.expert_instances for pool in chosen]
    named = pools(first.attention_instances, first.expert_instances, first.device)
    said = named if alike else gpus(min(totals), max(totals))
    segments = (
        Segment(ATTENTION, mean([pool.attention_instances for pool in chosen])),
        Segment(EXPERTS, mean([pool.expert_instances for pool in chosen])),
    )
    return Bar(clock(problem.series[places[0]].start_s), segments, f"{said}, {amount(demand, 'tokens/s')}")


def _beside(solution: SeriesSolution) -> Bars:
    named = (
        ("plan", solution.gpu_hours),
        ("peak all day", solution.gpu_hours_peak),
        ("one pool", solution.gpu_hours_monolithic),
    )
    bars = tuple(
        Bar(name, (Segment("GPU-hours", hours),), f"{hours:,.4g}{_more(hours, solution.gpu_hours)}")
        for name, hours in named
        if hours is not None
    )
    return Bars("GPU-hours", bars, "GPU-hours", ("GPU-hours",))


def _more(hours: float, plan: float) -> str:
    return "" if hours == plan or not plan else f" ({hours / plan - 1:+.1%})"


def _used(problem: SeriesProblem, solution: SeriesSolution) -> Table:
    places: dict[tuple[int, int, str], list[int]] = {}
    for place, pool in enumerate(solution.intervals):
        key = (pool.attention_instances, pool.expert_instances, pool.device or "")
        places.setdefault(key, []).append(place)
    ordered = sorted(places.items(), key=lambda item: (item[0][0] + item[0][1], item[0]))
    rows = tuple(_pool_row(problem, solution, key, held) for key, held in ordered[:MOST_POOLS])
    more = len(ordered) - MOST_POOLS
    title = "pools used" if more <= 0 else f"pools used, the first {MOST_POOLS} of {len(ordered)}"
    return Table(title, ("pools", "GPUs", "hours", "demand up to", "longest token"), rows)


def _pool_row(
    problem: SeriesProblem, solution: SeriesSolution, key: tuple[int, int, str], places: Sequence[int]
) -> tuple[str, ...]:
    attention, experts, device = key
    return (
        pools(attention, experts, device or None),
        str(attention + experts),
        f"{math.fsum(problem.series[place].duration_s for place in places) / HOUR_S:.4g}",
        amount(max(problem.series[place].demand_tokens_per_s for place in places), "tokens/s"),
        seconds(max(solution.intervals[place].tpot_s for place in places)),
    )
