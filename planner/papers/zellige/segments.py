"""From a compact placement to the solution: names handed out, segments in one deadlock-free order, metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from planner.papers.zellige.instance import Instance, Piece, Placement, Ranks, loads, num_splits
from planner.papers.zellige.problem import Config
from planner.papers.zellige.solution import Metrics, PlacedSequence, RankSegment, RankSegments, ZelligeSolution
from planner.validation import trusted


class _Run(NamedTuple):
    """Sequences that one rank set runs as one segment."""

    config: Config
    ranks: Ranks
    sequence_ids: list[str]
    time_s: float


def build_solution(instance: Instance, placement: Placement) -> ZelligeSolution:
    """The solution document of a complete placement. Equal sequences take their places in order of id."""
    named = list(_hand_out_names(instance, placement))
    runs = _segment_runs(instance, named)
    placed: list[tuple[str, str, Ranks]] = []
    for piece, names in named:
        config = instance.problem.configs[instance.kinds[piece.kind].modes[piece.mode].config].id
        placed += [(name, config, piece.ranks) for name in names]
    placed.sort()
    rank_time_s, rank_memory_bytes = loads(instance, placement)
    metrics = {
        "makespan_s": max(rank_time_s),
        "replay_makespan_s": replay_makespan_s(instance.num_ranks, runs),
        "split_sequences": num_splits(instance, placement),
        "rank_time_s": tuple(rank_time_s),
        "rank_memory_bytes": tuple(rank_memory_bytes),
    }
    solution = {
        "placements": tuple(
            [
                trusted(PlacedSequence, {"sequence_id": name, "config": config, "ranks": ranks})
                for name, config, ranks in placed
            ]
        ),
        "rank_segments": _rank_segments(instance, runs),
        "metrics": trusted(Metrics, metrics),
    }
    return trusted(ZelligeSolution, solution)


def _hand_out_names(instance: Instance, placement: Placement) -> Iterator[tuple[Piece, Sequence[str]]]:
    given = [0] * len(instance.kinds)
    names = [config.id for config in instance.problem.configs]
    modes = [[names[mode.config] for mode in kind.modes] for kind in instance.kinds]
    order = sorted(placement, key=lambda p: (p.kind, -len(p.ranks), modes[p.kind][p.mode], p.ranks))
    for piece in order:
        first = given[piece.kind]
        given[piece.kind] = last = first + placement[piece]
        yield piece, instance.kinds[piece.kind].sequence_ids[first:last]


def _segment_runs(instance: Instance, named: list[tuple[Piece, Sequence[str]]]) -> list[_Run]:
    """Segments in global order: degree descending, then config id, ranks, first sequence id.

    Whole sequences of a rank are one segment, pure-Ulysses sequences of one set are packed, any other split
    sequence is a segment of its own (page section 7).
    """
    packed: dict[tuple[int, Ranks], tuple[list[str], list[float]]] = {}
    runs: list[_Run] = []
    for piece, names in named:
        mode = instance.kinds[piece.kind].modes[piece.mode]
        config = instance.problem.configs[mode.config]
        if config.q == config.k == 1:
            ids, times = packed.setdefault((mode.config, piece.ranks), ([], []))
            ids.extend(names)
            times.append(len(names) * mode.time_s)
        else:
            runs.extend(_Run(config, piece.ranks, [name], mode.time_s) for name in names)
    for (config_index, ranks), (ids, times) in packed.items():
        ids.sort()
        runs.append(_Run(instance.problem.configs[config_index], ranks, ids, sum(times)))
    runs.sort(key=lambda run: (-run.config.degree, run.config.id, run.ranks, run.sequence_ids[0]))
    return runs


def replay_makespan_s(num_ranks: int, runs: Sequence[_Run]) -> float:
    """Execute segments in global order: each starts when the last of its ranks is free."""
    free_s = [0.0] * num_ranks
    for run in runs:
        end_s = max(free_s[rank] for rank in run.ranks) + run.time_s
        for rank in run.ranks:
            free_s[rank] = end_s
    return max(free_s)


def _rank_segments(instance: Instance, runs: list[_Run]) -> tuple[RankSegments, ...]:
    tokens = _tokens_of(instance)
    per_rank: list[list[RankSegment]] = [[] for _ in range(instance.num_ranks)]
    ranges_of: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
    for index, run in enumerate(runs):
        degree = run.config.degree
        known = [tokens.get(name, 0) for name in run.sequence_ids] if tokens else [0]
        shards = None if 0 in known else [_shards(count, degree, ranges_of) for count in known]
        shared = {
            "index": index,
            "config": run.config.id,
            "ranks": run.ranks,
            "position": 0,
            "sequence_ids": tuple(run.sequence_ids),
            "token_ranges": None,
        }
        for position, rank in enumerate(run.ranks):
            ranges = None if shards is None else tuple([shard[position] for shard in shards])
            segment = shared | {"position": position, "token_ranges": ranges}
            per_rank[rank].append(trusted(RankSegment, segment))
    return tuple(
        trusted(RankSegments, {"rank": rank, "segments": tuple(segments)}) for rank, segments in enumerate(per_rank)
    )


def _shards(
    tokens: int, degree: int, known: dict[tuple[int, int], tuple[tuple[int, int], ...]]
) -> tuple[tuple[int, int], ...]:
    found = known.get((tokens, degree))
    if found is None:
        found = known[tokens, degree] = tuple(token_range(tokens, degree, position) for position in range(degree))
    return found


def _tokens_of(instance: Instance) -> dict[str, int]:
    return {
        name: group.tokens
        for group in instance.problem.groups
        if group.tokens is not None
        for name in group.sequence_ids
    }


def token_range(tokens: int, degree: int, position: int) -> tuple[int, int]:
    """Shard ``position`` of ``degree`` near-equal chunks, [start, end): the first ``tokens mod degree`` are longer."""
    size, longer = divmod(tokens, degree)
    start = position * size + min(position, longer)
    return start, start + size + (position < longer)
