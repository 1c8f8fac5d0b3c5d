"""The first micro-batches of a pipeline as every rank runs them, drawn from the launcher's own order (page, 3.4)."""

from __future__ import annotations

from planner.memory.in_flight import rank_order
from planner.papers.layout.evaluate import Evaluated
from planner.units import seconds
from planner.view import Span, Timeline, Track

MOST_RANKS = 16
"""That are drawn; of more, some in even steps, the first and the last among them."""
_DRAWN = 3
"""Times p micro-batches are run to draw: the end of the p-th on rank 0 hangs on no later one."""
_WHOLE = 2
"""Up to so many times p, the whole pipeline is drawn."""

_MOST_TASKS = 50_000
"""Forwards that are run to draw some."""

_LABELS = {"forward": "0123456789", "backward": "abcdefghij"}

Task = tuple[bool, int, int]
"""Whether it is a forward, its virtual stage, its micro-batch."""


def drawable(found: Evaluated) -> bool:
    """Whether there is a pipeline, and one that is drawn in no time."""
    return found.layout.pp > 1 and len(found.layout.partition) * _num_run(found) <= _MOST_TASKS


def _num_run(found: Evaluated) -> int:
    """Micro-batches that are run to draw the first of them."""
    return min(found.sizes.num_micro_batches, _DRAWN * found.layout.pp)


def timeline(found: Evaluated) -> Timeline:
    """Forwards by digit and backwards by letter of their micro-batch; of one chunk or several a rank."""
    p, m = found.layout.pp, found.sizes.num_micro_batches
    run = _num_run(found)
    tasks = _run(found, run)
    whole = m <= _WHOLE * p
    last = m if whole else p
    end_s = max(end_s for _, task, _, end_s in tasks if whole or (task[1] == 0 and not task[0] and task[2] == p - 1))
    spans: dict[int, list[Span]] = {rank: [] for rank in shown(p, MOST_RANKS)}
    for rank, (forward, _, micro_batch), start_s, stop_s in tasks:
        if rank in spans and start_s < end_s:
            kind = "forward" if forward else "backward"
            spans[rank].append(Span(start_s, stop_s, kind, _LABELS[kind][micro_batch % 10]))
    tracks = tuple(Track(f"rank {rank}", tuple(drawn), _idle(drawn, end_s)) for rank, drawn in spans.items())
    part = f"all {m:,}" if whole else f"the first {last:,} of {m:,}"
    title = f"pipeline, {part} micro-batches: {seconds(end_s)} of {seconds(found.pipeline_s)}"
    return Timeline(title, tracks, "s", tuple(_LABELS), 0.0, end_s)


def shown(number: int, most: int) -> list[int]:
    """At most so many places of a row in even steps, the first and the last among them."""
    if number <= most:
        return list(range(number))
    return sorted({round(place * (number - 1) / (most - 1)) for place in range(most)})


def _idle(drawn: list[Span], end_s: float) -> str:
    busy_s = sum(min(span.end, end_s) - span.start for span in drawn)
    return f"idle {1 - busy_s / end_s:>5.1%}" if end_s > 0 else ""


def _run(found: Evaluated, run: int) -> list[tuple[int, Task, float, float]]:
    """Rank, task, start and end [s] of everything; each task starts when its rank and what it needs have ended."""
    p, v, stages = found.layout.pp, found.layout.vpp, found.stages
    last = p * v - 1
    orders: list[list[Task]] = []
    for rank in range(p):
        order = rank_order(
            "interleaved" if v > 1 else "1f1b", rank, num_stages=p, num_micro_batches=run, chunks_per_rank=v
        )
        each = zip(order.forward.tolist(), order.chunk.tolist(), order.micro_batch.tolist(), strict=True)
        orders.append([(forward, chunk * p + rank, micro_batch) for forward, chunk, micro_batch in each])
    ends: dict[Task, float] = {}
    free_s, at = [0.0] * p, [0] * p
    tasks: list[tuple[int, Task, float, float]] = []
    moved = True
    while moved:
        moved = False
        for rank, order_of in enumerate(orders):
            while at[rank] < len(order_of):
                task = order_of[at[rank]]
                forward, stage, micro_batch = task
                ready_s = 0.0
                if not (forward and stage == 0):
                    before = (True, stage - 1 if forward else stage, micro_batch)
                    needed = before if forward or stage == last else (False, stage + 1, micro_batch)
                    if needed not in ends:
                        break
                    ready_s = ends[needed]
                start_s = max(free_s[rank], ready_s)
                end_s = start_s + (stages.forward_s if forward else stages.backward_s)[stage]
                tasks.append((rank, task, start_s, end_s))
                ends[task] = free_s[rank] = end_s
                at[rank] += 1
                moved = True
    return tasks
