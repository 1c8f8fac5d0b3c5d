"""The part of the check that reads the run lists: order, participants, and packing."""

from __future__ import annotations

from typing import TypeAlias

from planner.findings import Findings
from planner.papers.zellige.check_facts import Facts, shown
from planner.papers.zellige.check_runs import check_replay, check_tokens, place
from planner.papers.zellige.solution import PlacedSequence, RankSegment, RankSegments, ZelligeSolution

Unique: TypeAlias = dict[int, RankSegment]
"""The first copy met of every segment index."""


def check_segments(facts: Facts, solution: ZelligeSolution, placed: dict[str, PlacedSequence], found: Findings) -> None:
    """Note everything wrong with ``rank_segments``, and a replayed makespan that differs from the stated one."""
    lists = solution.rank_segments
    _check_ranks(facts, lists, found)
    unique: Unique = {}
    runners: dict[int, list[int]] = {}
    for entry, ranked in enumerate(lists):
        _check_list(facts, entry, ranked, unique, runners, found)
    _check_participants(unique, runners, found)
    _check_global_order(facts, unique, found)
    _check_contents(facts, unique, placed, found)
    check_tokens(facts, lists, found)
    check_replay(facts, solution, unique, found)


def _check_ranks(facts: Facts, lists: tuple[RankSegments, ...], found: Findings) -> None:
    stated = [ranked.rank for ranked in lists]
    if stated != list(range(facts.num_ranks)):
        message = f"expected ranks 0 to {facts.num_ranks - 1} in order, each once; found {shown(stated)}"
        found.add("rank_segments", message, "rank_segments")


def _check_list(
    facts: Facts,
    entry: int,
    ranked: RankSegments,
    unique: Unique,
    runners: dict[int, list[int]],
    found: Findings,
) -> None:
    """One rank's run list; adds to ``unique`` and ``runners``."""
    rank = ranked.rank
    previous: RankSegment | None = None
    wholes = 0
    for number, segment in enumerate(ranked.segments):
        degree = _degree(facts, segment)
        if previous is not None and segment.index <= previous.index:
            message = f"index {segment.index} follows {previous.index} on rank {rank}, expected increasing indices"
            found.add("segment_order", message, f"{place(entry, number)}.index")
        if previous is not None and degree > _degree(facts, previous):
            message = f"degree {degree} runs after degree {_degree(facts, previous)} on rank {rank}"
            found.add("degree_order", f"{message}, expected descending degrees", f"{place(entry, number)}.config")
        if segment.position >= len(segment.ranks) or segment.ranks[segment.position] != rank:
            message = f"position {segment.position} of {shown(segment.ranks)} is not rank {rank}"
            found.add("segment_position", message, f"{place(entry, number)}.position")
        wholes += degree == 1
        if degree == 1 and wholes > 1:
            message = f"rank {rank} runs {wholes} segments of whole sequences, expected one"
            found.add("whole_not_coalesced", message, place(entry, number))
        first = unique.setdefault(segment.index, segment)
        if first is not segment and not _same(first, segment):
            message = f"segment {segment.index} differs from its copy on rank {runners[segment.index][0]}"
            found.add("segment_mismatch", f"{message}, expected equal copies", place(entry, number))
        runners.setdefault(segment.index, []).append(rank)
        previous = segment


def _degree(facts: Facts, segment: RankSegment) -> int:
    return facts.degrees.get(segment.config, len(segment.ranks))


def _same(first: RankSegment, second: RankSegment) -> bool:
    return first.config == second.config and first.ranks == second.ranks and first.sequence_ids == second.sequence_ids


def _check_participants(unique: Unique, runners: dict[int, list[int]], found: Findings) -> None:
    for index, segment in unique.items():
        running = sorted(runners[index])
        if running != sorted(segment.ranks):
            message = f"segment {index} is run by {shown(running)}, expected by exactly {shown(segment.ranks)}"
            found.add("collective_mismatch", message, "rank_segments")


def _check_global_order(facts: Facts, unique: Unique, found: Findings) -> None:
    """Indices go by degree descending, then config id, ranks, first sequence id."""
    before: tuple[int, str, tuple[int, ...], tuple[str, ...]] | None = None
    for index in sorted(unique):
        segment = unique[index]
        key = (-_degree(facts, segment), segment.config, segment.ranks, segment.sequence_ids[:1])
        if before is not None and key[0] < before[0]:
            message = f"segment {index} of degree {-key[0]} comes after one of degree {-before[0]}"
            found.add("degree_order", f"{message}, expected descending degrees", "rank_segments")
        elif before is not None and key < before:
            message = f"segment {index} ({key[1]} on {shown(key[2])}) comes after {before[1]} on {shown(before[2])}"
            found.add("segment_order", f"{message}, expected order by config, ranks, first sequence", "rank_segments")
        before = key


def _check_contents(facts: Facts, unique: Unique, placed: dict[str, PlacedSequence], found: Findings) -> None:
    """Every placed sequence in exactly one segment, of its own configuration and ranks, packed only where allowed."""
    inside: set[str] = set()
    for index, segment in unique.items():
        config, ranks, names = segment.config, segment.ranks, segment.sequence_ids
        if len(names) > 1 and _degree(facts, segment) > 1 and config not in facts.packable:
            message = f'segment {index} packs {len(names)} sequences, but "{config}" is neither whole nor pure Ulysses'
            found.add("illegal_coalescing", message, "rank_segments")
        if not names:
            found.add("segment_placement", f"segment {index} holds no sequence, expected one", "rank_segments")
        for name in names:
            if name in inside:
                message = f'"{name}" occurs more than once, again in segment {index}; expected once'
                found.add("segment_duplicate", message, "rank_segments")
            inside.add(name)
            home = placed.get(name)
            if home is None:
                message = f'segment {index} runs "{name}", which has no placement'
                found.add("segment_placement", message, "rank_segments")
            elif home.config != config or home.ranks != ranks:
                message = f'segment {index} runs "{name}" as {config} on {shown(ranks)}'
                message += f", expected {home.config} on {shown(home.ranks)}"
                found.add("segment_placement", message, f"placements.{name}")
    if not placed.keys() <= inside:
        for name in placed:
            if name not in inside:
                found.add("segment_placement", f'no segment runs "{name}", expected one', f"placements.{name}")
