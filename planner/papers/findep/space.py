"""The candidates of a search: splits, micro-batches and chunks that the box, the launcher and the memory allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.papers.findep.problem import FindepProblem, Order, Split
from planner.papers.findep.residency import TOLERANCE, attention_bytes, expert_bytes
from planner.papers.findep.times import Times, task_times

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

STRETCH = 1_000_000
"""Candidates looked at together: what bounds the memory of a search."""
TIE = 1e-9
"""Objectives this close, relatively, are equal (page, "How it is solved and proved": ties)."""


class Decision(NamedTuple):
    """A schedule of the two-order family and what replay says of it. ``split`` is an index into the problem's."""

    split: int
    m_a: int
    r1: int
    r2: int
    order: Order
    makespan_s: float
    objective: float


@dataclass(frozen=True)
class Stretch:
    """Candidates of one split: ``m_a`` and ``r2`` flat [n] with their times, ``r1`` [k], and what ``fits`` [k, n]."""

    index: int
    split: Split
    m_a: Ints
    r2: Ints
    times: Times
    r1: Ints
    fits: Bools

    def pick(self, chosen: Bools | Ints) -> Stretch:
        """The candidates chosen among the n, by a mask or by their places."""
        times = Times(*(getattr(self.times, name)[chosen] for name in Times.__dataclass_fields__))
        return replace(self, m_a=self.m_a[chosen], r2=self.r2[chosen], times=times, fits=self.fits[:, chosen])


def obeys(problem: FindepProblem, split: Split) -> bool:
    """Whether a split is one that the launcher starts: vllm_afd wants ag >= eg and eg to divide ag."""
    ag, eg = split.attention_gpus, split.expert_gpus
    return problem.launcher_rules == "none" or (ag >= eg and ag % eg == 0)


def micro_batches(problem: FindepProblem) -> list[int]:
    """The r1 to choose from; vllm_afd runs two micro-batches."""
    most = problem.search.max_r1
    return list(range(1, most + 1)) if problem.launcher_rules == "none" else [2][: most - 1]


def most_chunks(problem: FindepProblem, m_a: ArrayLike) -> Ints:
    """The largest r2 of each micro-batch size; vllm_afd cuts nothing."""
    whole = np.asarray(m_a, dtype=np.int64)
    if problem.launcher_rules != "none":
        return np.ones_like(whole)
    return np.minimum(problem.search.max_r2, whole * problem.tokens_per_sample)


def stretches(problem: FindepProblem, micro_batch_numbers: Sequence[int] | None = None) -> Iterator[Stretch]:
    """All candidates, split by split, in stretches of bounded size; those without any that fits are left out.

    ``micro_batch_numbers`` stand in place of the box's own.
    """
    numbers = micro_batches(problem) if micro_batch_numbers is None else micro_batch_numbers
    r1 = np.array(numbers, dtype=np.int64)
    for index, split in enumerate(problem.splits):
        if not obeys(problem, split) or not len(r1):
            continue
        m_a = np.arange(1, problem.search.max_m_a + 1, dtype=np.int64)
        fits = fits_memory(problem, split, m_a, r1[:, None])
        m_a = m_a[fits.any(axis=0)]
        chunks = most_chunks(problem, m_a)
        before = np.cumsum(chunks) - chunks
        for part in np.split(m_a, np.flatnonzero(np.diff(before * len(r1) // STRETCH)) + 1) if len(m_a) else ():
            yield _stretch(problem, index, part, r1)


def _stretch(problem: FindepProblem, index: int, sizes: Ints, r1: Ints) -> Stretch:
    split, chunks = problem.splits[index], most_chunks(problem, sizes)
    m_a = np.repeat(sizes, chunks)
    r2 = np.arange(len(m_a)) - np.repeat(np.cumsum(chunks) - chunks, chunks) + 1
    fits = np.repeat(fits_memory(problem, split, sizes, r1[:, None]), chunks, axis=1)
    return Stretch(index, split, m_a, r2, task_times(problem, split, m_a, r2), r1, fits)


def fits_memory(problem: FindepProblem, split: Split, m_a: ArrayLike, r1: ArrayLike) -> Bools:
    """Whether both pools have the memory (eq. 10). Broadcasts."""
    memory = problem.memory
    if memory is None:
        return np.ones(np.broadcast_shapes(np.shape(m_a), np.shape(r1)), dtype=np.bool_)
    attention = attention_bytes(memory, split, m_a, r1) <= memory.attention_capacity_bytes * (1 + TOLERANCE)
    expert = expert_bytes(problem, memory, split, m_a, r1) <= memory.expert_capacity_bytes * (1 + TOLERANCE)
    return np.asarray(attention & expert)


def tokens(problem: FindepProblem, split: Split, m_a: ArrayLike, r1: ArrayLike) -> Floats:
    """What an objective counts of a whole pass (eq. 6): r1 m_a ag S tokens, per GPU where the problem says so."""
    whole = np.asarray(r1) * np.asarray(m_a) * float(split.attention_gpus * problem.tokens_per_sample)
    return np.asarray(whole if problem.objective == "tokens_per_s" else whole / split.gpus)


def longest_s(problem: FindepProblem) -> float:
    """The makespan allowed [s]: the limit, met exactly included, or infinity."""
    limit = problem.makespan_limit_s
    return np.inf if limit is None else limit * (1 + TIE)
