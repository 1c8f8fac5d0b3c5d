"""What people and programs read off a Zellige plan: pictures, summary, memory by cause, shares by source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from planner.derivation.shares import by_source
from planner.json_text import Json
from planner.memory.near_capacity import NEAR_CAPACITY
from planner.paper import MemoryRow, Warned
from planner.papers.zellige.problem import Group, Option, ZelligeProblem
from planner.papers.zellige.solution import ZelligeSolution
from planner.units import in_bytes, seconds
from planner.view import Bar, Bars, Segment, Table, View

STEP = (
    "the layers' products, attention and collectives of one step, forward and backward, on the slowest rank; not "
    "norms and other elementwise work, text and image encoders, gradient reduction, optimizer and data loading"
)
"""What the objective is the time of."""
_SPLITS_SHOWN = 12


def _used(problem: ZelligeProblem, solution: ZelligeSolution) -> Counter[tuple[int, str, tuple[int, ...]]]:
    """How many sequences of each group run in each configuration on each rank set."""
    group_of = {name: index for index, group in enumerate(problem.groups) for name in group.sequence_ids}
    return Counter((group_of[placed.sequence_id], placed.config, placed.ranks) for placed in solution.placements)


def _options(problem: ZelligeProblem) -> dict[tuple[int, str], Option]:
    return {(index, option.config): option for index, group in enumerate(problem.groups) for option in group.options}


def shares(problem: ZelligeProblem, solution: ZelligeSolution) -> dict[str, float]:
    """Fraction of the planned rank-seconds by source."""
    options = _options(problem)
    return by_source(
        (count * len(ranks) * options[group, config].time_s, options[group, config].sources)
        for (group, config, ranks), count in sorted(_used(problem, solution).items())
    )


def memory(problem: ZelligeProblem, solution: ZelligeSolution) -> list[MemoryRow]:
    """Bytes of every rank by cause: what the cluster reserves, then what the sequences add."""
    options = _options(problem)
    reserved = problem.cluster.reserved_bytes or {}
    capacity = problem.cluster.memory_cap_bytes + sum(reserved.values())
    added: list[dict[str, float]] = [{} for _ in range(problem.cluster.num_ranks)]
    for (group, config, ranks), count in sorted(_used(problem, solution).items()):
        option = options[group, config]
        causes = option.memory_causes or {"sequences": option.memory_bytes}
        for cause, amount in causes.items():
            for rank in ranks:
                added[rank][cause] = added[rank].get(cause, 0.0) + count * amount
    return [
        MemoryRow(f"rank {rank}", cause, amount, capacity)
        for rank, causes in enumerate(added)
        for cause, amount in [*sorted(reserved.items()), *sorted(causes.items())]
    ]


def warnings(problem: ZelligeProblem, solution: ZelligeSolution) -> list[Warned]:
    """near_capacity, replay_waits, unusable_configs."""
    found = []
    metrics, cluster = solution.metrics, problem.cluster
    reserved = sum((cluster.reserved_bytes or {}).values())
    fullest = max(range(cluster.num_ranks), key=lambda rank: metrics.rank_memory_bytes[rank])
    share = (metrics.rank_memory_bytes[fullest] + reserved) / (cluster.memory_cap_bytes + reserved)
    if share > NEAR_CAPACITY:
        found.append(Warned("near_capacity", _near_capacity(problem, solution, fullest, share)))
    if metrics.replay_makespan_s > metrics.makespan_s * (1 + 1e-9):
        found.append(
            Warned(
                "replay_waits",
                f"rank sets are not nested: with waiting the step takes {metrics.replay_makespan_s:.6g} s, "
                f"not {metrics.makespan_s:.6g} s",
            )
        )
    unusable = _unusable(problem)
    if unusable:
        found.append(Warned("unusable_configs", f"no rank set for: {', '.join(unusable)}"))
    return found


def _near_capacity(problem: ZelligeProblem, solution: ZelligeSolution, fullest: int, share: float) -> str:
    reserved = sum((problem.cluster.reserved_bytes or {}).values())
    limit = NEAR_CAPACITY * (problem.cluster.memory_cap_bytes + reserved) - reserved
    others = sum(held > limit for held in solution.metrics.rank_memory_bytes) - 1
    more = f", and {_many(others, 'other rank')} above {NEAR_CAPACITY:.0%}" if others else ""
    return f"rank {fullest} is planned at {share:.1%} of its memory{more}"


def _unusable(problem: ZelligeProblem) -> list[str]:
    cluster = problem.cluster
    if problem.rank_sets.policy == "explicit":
        listed = problem.rank_sets.sets or {}
        return [c.id for c in problem.configs if not listed.get(c.id) and c.degree > 1]
    return [
        config.id
        for config in problem.configs
        if config.degree > cluster.node_size
        and (config.degree % cluster.node_size or config.degree > cluster.num_ranks)
    ]


def summary(problem: ZelligeProblem, solution: ZelligeSolution) -> list[str]:
    """Lines about the placement."""
    metrics, cluster = solution.metrics, problem.cluster
    mean = sum(metrics.rank_time_s) / cluster.num_ranks
    fullest = max(metrics.rank_memory_bytes)
    return [
        f"{_many(len(solution.placements), 'sequence')} on {_many(cluster.num_ranks, 'rank')} "
        f"({_many(cluster.num_ranks // cluster.node_size, 'node')} of {cluster.node_size}), "
        f"{metrics.split_sequences} split",
        f"ranks are busy {mean / metrics.makespan_s:.2%} of the step; the fullest holds "
        f"{in_bytes(fullest)} of {in_bytes(cluster.memory_cap_bytes)} for the step",
    ]


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def decisions(solution: ZelligeSolution) -> dict[str, Json]:
    """Where every sequence runs, and the run list of every rank."""
    return {
        "placements": {
            placed.sequence_id: f"{placed.config} on {_ranges(placed.ranks)}" for placed in solution.placements
        },
        "rank_segments": {
            str(entry.rank): [f"{s.index}:{s.config}" for s in entry.segments] for entry in solution.rank_segments
        },
    }


def metrics(solution: ZelligeSolution) -> dict[str, Json]:
    """The recomputable figures."""
    return solution.metrics.model_dump()


def view(problem: ZelligeProblem, solution: ZelligeSolution) -> View:
    """Load of every rank, who is split how, and memory of the fullest ranks by cause."""
    return View((_load_bars(problem, solution), *_split_table(problem, solution), _memory_table(problem, solution)))


def _load_bars(problem: ZelligeProblem, solution: ZelligeSolution) -> Bars:
    options = _options(problem)
    degrees = {config.id: config.degree for config in problem.configs}
    parts: list[dict[str, float]] = [{} for _ in range(problem.cluster.num_ranks)]
    carried: list[int] = [0] * problem.cluster.num_ranks
    for (group, config, ranks), count in sorted(_used(problem, solution).items()):
        degree = degrees[config]
        name = "whole" if degree == 1 else f"split {degree}"
        for rank in ranks:
            parts[rank][name] = parts[rank].get(name, 0.0) + count * options[group, config].time_s
            carried[rank] += count
    names = sorted({name for part in parts for name in part}, key=_split_degree, reverse=True)
    cap = problem.cluster.memory_cap_bytes
    bars = tuple(
        Bar(
            label=f"rank {rank}",
            segments=tuple(Segment(name, part[name]) for name in names if name in part),
            note=f"{carried[rank]:>4} seq {solution.metrics.rank_memory_bytes[rank] / cap:>4.0%} mem",
        )
        for rank, part in enumerate(parts)
    )
    return Bars("load per rank", bars, "s", tuple(names), solution.metrics.makespan_s)


def _split_degree(name: str) -> int:
    return 1 if name == "whole" else int(name.removeprefix("split "))


def _split_table(problem: ZelligeProblem, solution: ZelligeSolution) -> Iterable[Table]:
    degrees = {config.id: config.degree for config in problem.configs}
    split: dict[tuple[int, str], list[tuple[int, ...]]] = {}
    for (group, config, ranks), count in sorted(_used(problem, solution).items()):
        if degrees[config] > 1:
            split.setdefault((group, config), []).extend([ranks] * count)
    if not split:
        return
    options = _options(problem)
    rows = []
    for (group, config), sets in sorted(split.items(), key=lambda item: (-degrees[item[0][1]], item[0]))[
        :_SPLITS_SHOWN
    ]:
        where = " ".join(_ranges(ranks) for ranks in sorted(sets))
        rows.append(
            (
                _group_name(problem.groups[group]),
                str(len(sets)),
                config,
                seconds(options[group, config].time_s),
                where if len(where) <= 36 else where[:33] + "...",
            )
        )
    yield Table("split sequences", ("group", "count", "config", "time", "ranks"), tuple(rows))


def _memory_table(problem: ZelligeProblem, solution: ZelligeSolution) -> Table:
    fullest = max(range(problem.cluster.num_ranks), key=lambda rank: solution.metrics.rank_memory_bytes[rank])
    rows = [row for row in memory(problem, solution) if row.where == f"rank {fullest}"]
    cells = tuple((row.cause, in_bytes(row.bytes), f"{row.bytes / row.capacity_bytes:.1%}") for row in rows)
    return Table(f"memory of rank {fullest}, the fullest", ("cause", "bytes", "of capacity"), cells)


def _group_name(group: Group) -> str:
    return f"{group.id} ({group.tokens} tokens)" if group.tokens and str(group.tokens) not in group.id else group.id


def _ranges(ranks: tuple[int, ...]) -> str:
    """``0-3`` for consecutive ranks, else a list."""
    if len(ranks) > 1 and ranks[-1] - ranks[0] == len(ranks) - 1:
        return f"{ranks[0]}-{ranks[-1]}"
    return ",".join(map(str, ranks))
