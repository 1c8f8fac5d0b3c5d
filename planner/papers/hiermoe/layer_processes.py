"""Layers are independent: one after another here, or several at once in processes, with the same answers."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from planner.errors import LimitError
from planner.papers.hiermoe.instance import Case, LayerCase
from solvers.report import Progress

Task = TypeVar("Task")
Result = TypeVar("Result")

Work = Callable[[Case, LayerCase, Task], Result]
"""What to do with one layer: a function of a module, so that another process finds it."""


def each_layer(
    work: Work[Task, Result], case: Case, jobs: Sequence[Task], workers: int, progress: Progress | None
) -> list[Result]:
    """``work(case, layer, job)`` of every layer with its job, in order, by at most ``workers`` processes.

    Raises LimitError as the work does.
    """
    answers = []
    for answer in _answers(work, case, jobs, min(workers, len(jobs))):
        answers.append(answer)
        if progress is not None:
            progress(len(answers) / len(jobs), f"{len(answers)} of {len(jobs)} layers")
    return answers


def _answers(work: Work[Task, Result], case: Case, jobs: Sequence[Task], workers: int) -> Iterator[Result]:
    pairs = list(zip(case.layers, jobs, strict=True))
    if workers <= 1:
        yield from (work(case, layer, job) for layer, job in pairs)
        return
    # What a worker needs of the problem is everything but the layers, which it gets one by one.
    bare = replace(case, problem=case.problem.model_copy(update={"layers": ()}), layers=())
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for answer in pool.imap(partial(_caught, work, bare), pairs):
            if isinstance(answer, _Ended):
                raise LimitError(answer.message, code=answer.code, where=answer.where)
            yield answer


class _Ended:
    """A limit that ran out in another process: the error itself does not survive the way back."""

    def __init__(self, error: LimitError) -> None:
        self.message, self.code, self.where = error.message, error.code, error.where


def _caught(work: Work[Task, Result], case: Case, pair: tuple[LayerCase, Task]) -> Result | _Ended:
    try:
        return work(case, *pair)
    except LimitError as error:
        return _Ended(error)
