"""Which of two layouts comes first (page, section 4): less time, then less memory, then the order of ties."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from planner.papers.layout.evaluate import Evaluated

EQUAL = 1e-9
"""Figures within this ratio of the least tie."""


def ranked(found: Iterable[Evaluated]) -> list[Evaluated]:
    """Best first. Among those left, all whose time is within ``EQUAL`` of the least tie, and likewise by peak."""
    order: list[Evaluated] = []
    for equally_fast in _tied(found, lambda one: one.step_time_s):
        for equal in _tied(equally_fast, lambda one: one.peak_memory_bytes):
            order += sorted(equal, key=lambda one: one.layout.tie_key)
    return order


def front(best_first: Sequence[Evaluated]) -> list[Evaluated]:
    """Of ranked layouts those that hold less than every one before them, by more than ``EQUAL``; fastest first."""
    kept: list[Evaluated] = []
    for one in best_first:
        if not kept or one.peak_memory_bytes * (1 + EQUAL) < kept[-1].peak_memory_bytes:
            kept.append(one)
    return kept


def _tied(found: Iterable[Evaluated], figure: Callable[[Evaluated], float]) -> Iterator[list[Evaluated]]:
    """Ascending groups, each of those within ``EQUAL`` of its least."""
    group: list[Evaluated] = []
    for one in sorted(found, key=figure):
        if group and figure(one) > figure(group[0]) * (1 + EQUAL):
            yield group
            group = []
        group.append(one)
    if group:
        yield group
