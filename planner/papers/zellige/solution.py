"""The solution document (page section 7): placements, per-rank segments in one global order, and metrics."""

from __future__ import annotations

from pydantic import Field

from planner.validation import Document, Many


class PlacedSequence(Document):
    """The decision for one sequence: its configuration and the ranks that share it, ascending."""

    sequence_id: str
    config: str
    ranks: Many[int]


class RankSegment(Document):
    """One entry of a rank's run list.

    ``index`` is the segment's global number, equal on all its ranks; ``position`` is this rank's index in ``ranks``;
    ``token_ranges`` are half-open [start, end) per sequence, present when every token count is known.
    """

    index: int = Field(ge=0)
    config: str
    ranks: Many[int]
    position: int = Field(ge=0)
    sequence_ids: Many[str]
    token_ranges: Many[Many[int]] | None = None


class RankSegments(Document):
    """What one rank runs, in order."""

    rank: int = Field(ge=0)
    segments: Many[RankSegment]


class Metrics(Document):
    """Recomputable figures: seconds and bytes per rank; ``replay_makespan_s`` includes waiting for partners."""

    makespan_s: float
    replay_makespan_s: float
    split_sequences: int
    rank_time_s: Many[float]
    rank_memory_bytes: Many[float]


class ZelligeSolution(Document):
    """A complete placement of one step."""

    placements: Many[PlacedSequence]
    rank_segments: Many[RankSegments]
    metrics: Metrics
