"""The part of the check that runs the segments: each rank's share of the tokens, and the replay with waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from planner.findings import Findings
from planner.papers.zellige.check_facts import Facts, agree, shown, total
from planner.papers.zellige.solution import RankSegment, RankSegments, ZelligeSolution


def place(entry: int, number: int) -> str:
    """The path of a segment in the solution."""
    return f"rank_segments.{entry}.segments.{number}"


def check_tokens(facts: Facts, lists: tuple[RankSegments, ...], found: Findings) -> None:
    """Token ranges of every segment on every rank; none where a count is unknown."""
    tokens = [group.tokens for group in facts.problem.groups]
    groups: dict[tuple[str, ...], list[int] | None] = {}
    ranges: dict[tuple[int, int], list[tuple[int, int] | None]] = {}
    for entry, ranked in enumerate(lists):
        for number, segment in enumerate(ranked.segments):
            names = segment.sequence_ids
            if names not in groups:
                known = [facts.group_of.get(name) for name in names]
                groups[names] = None if None in known else [group for group in known if group is not None]
            members = groups[names]
            if members is None or segment.position >= len(segment.ranks):
                continue
            shard = (len(segment.ranks), segment.position)
            if shard not in ranges:
                ranges[shard] = [None if count is None else _shard(count, *shard) for count in tokens]
            of_group = ranges[shard]
            wanted = tuple([of_group[group] for group in members])
            expected = None if None in wanted else wanted
            if segment.token_ranges != expected:
                message = f"stated {_ranges(segment.token_ranges)}, expected {_ranges(expected)}"
                found.add("token_ranges", message, f"{place(entry, number)}.token_ranges")


def _shard(tokens: int, shards: int, position: int) -> tuple[int, int]:
    """Chunk ``position`` of near-equal chunks [start, end): the first (tokens mod shards) are one token longer."""
    size, longer = divmod(tokens, shards)
    start = position * size + min(position, longer)
    return start, start + size + (position < longer)


def _ranges(ranges: tuple[tuple[int, ...] | None, ...] | None) -> str:
    return "none" if ranges is None else shown((list(pair or ()) for pair in ranges), 3)


def check_replay(facts: Facts, solution: ZelligeSolution, unique: Mapping[int, RankSegment], found: Findings) -> None:
    """The stated replay against a run of the lists in which a segment starts once all its ranks are free."""
    duration_s = {index: _duration_s(facts, segment) for index, segment in unique.items()}
    replayed, stuck = _replay([ranked.segments for ranked in solution.rank_segments], duration_s)
    stated = solution.metrics.replay_makespan_s
    if stuck is not None:
        message = "this segment never starts: its ranks do not all reach it, expected one order on all ranks"
        found.add("collective_mismatch", message, place(*stuck))
    elif not agree(stated, replayed):
        message = f"stated {stated!r} s, replayed {replayed!r} s"
        found.add("metric_replay", message, "metrics.replay_makespan_s")


def _duration_s(facts: Facts, segment: RankSegment) -> float:
    parts = []
    for group, count in Counter(map(facts.group_of.get, segment.sequence_ids)).items():
        option = None if group is None else facts.options[group].get(segment.config)
        parts.append(0.0 if option is None else count * option.time_s)
    return total(parts)


def _replay(
    lists: list[tuple[RankSegment, ...]], duration_s: Mapping[int, float]
) -> tuple[float, tuple[int, int] | None]:
    """The makespan [s], and the first (list, entry) left waiting for ever, if any."""
    free_s = [0.0] * len(lists)
    done = [0] * len(lists)
    waiting: dict[int, list[int]] = {}
    turn = list(range(len(lists)))
    while turn:
        entry = turn.pop()
        if done[entry] == len(lists[entry]):
            continue
        segment = lists[entry][done[entry]]
        arrived = waiting.setdefault(segment.index, [])
        arrived.append(entry)
        if len(arrived) == len(segment.ranks):
            end_s = max(free_s[other] for other in arrived) + duration_s[segment.index]
            for other in waiting.pop(segment.index):
                free_s[other] = end_s
                done[other] += 1
                turn.append(other)
    stuck = next((entry for entry, count in enumerate(done) if count < len(lists[entry])), None)
    return max(free_s, default=0.0), None if stuck is None else (stuck, done[stuck])
