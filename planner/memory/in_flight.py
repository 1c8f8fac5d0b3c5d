"""What a pipeline rank holds at its peak: closed forms by schedule, and the walk over the rank's own order (3.5).

Sources: 1F1B and its interleaved form, arXiv 2104.04473 and Megatron-LM d98e8a6 (core/pipeline_parallel/schedules.py);
ZB1P, ZB2P, ZBV, V-Half and V-Min, sail-sg/zero-bubble (arXiv 2401.10241, 2405.15362), equal F, B and W.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from planner.memory.amounts import Amount

OrderedSchedule = Literal["gpipe", "1f1b", "interleaved"]
Schedule = Literal["gpipe", "1f1b", "interleaved", "zb1p", "zb2p", "zbv", "v_half", "v_min"]
SCHEDULES: tuple[Schedule, ...] = ("gpipe", "1f1b", "interleaved", "zb1p", "zb2p", "zbv", "v_half", "v_min")
V_SHAPED: tuple[Schedule, ...] = ("zbv", "v_half", "v_min")
"""Schedules of two chunks a rank, of which the second runs back: the first rank has the first and the last stage."""
V_CHUNKS = 2

_WHOLE = {"gpipe": Fraction(1), "1f1b": Fraction(1), "zb1p": Fraction(1, 3), "zb2p": Fraction(0), "zbv": Fraction(0)}
_BUBBLES: dict[str, Fraction] = {**_WHOLE, "v_half": Fraction(1, 2), "v_min": Fraction(2, 3)}


class RankOrder(NamedTuple):
    """What one pipeline rank runs, in order: arrays of length 2·m·v. Virtual stage = ``chunk``·p + rank."""

    forward: npt.NDArray[np.bool_]
    chunk: npt.NDArray[np.int64]
    micro_batch: npt.NDArray[np.int64]


def in_flight_chunks(
    schedule: Schedule,
    stage_rank: Amount,
    *,
    num_stages: Amount,
    num_micro_batches: Amount,
    chunks_per_rank: Amount = 1,
) -> Amount:
    """Chunk-micro-batches resident at the peak of pipeline rank r = 0 … p−1, each of L/(p·v) layers.

    GPipe m (v of them a micro-batch); 1F1B min(m, p−r); interleaved min(m·v, 2(p−r−1) + (v−1)p + 1), which with one
    chunk a rank is 1F1B's own order and count. The zero-bubble schedules are balanced over ranks: ZB1P p, ZB2P 2p−1,
    ZBV p, V-Half ⌊(p+2)/2⌋, V-Min ⌊(p+4)/3⌋, in micro-batches of all layers of a rank, at most m.
    """
    p, m, v, r = num_stages, num_micro_batches, chunks_per_rank, stage_rank
    if schedule == "gpipe":
        return m * v + 0 * r
    if schedule == "1f1b":
        return np.minimum(m, p - r)
    if schedule == "interleaved":
        warm_up = 2 * (p - r - 1) + (v - 1) * p + 1
        return np.where(np.asarray(v) == 1, np.minimum(m, p - r), np.minimum(m * v, warm_up))
    balanced = {"zb1p": p, "zb2p": 2 * p - 1, "zbv": p, "v_half": (p + 2) // 2, "v_min": (p + 4) // 3}
    return np.minimum(m, balanced[schedule]) * v + 0 * r


def bubble_share(schedule: Schedule, chunks_per_rank: int = 1) -> Fraction:
    """The idle time of a step as a share of (p−1)(F+B), F and B of one micro-batch on one rank, equal stages."""
    return Fraction(1, chunks_per_rank) if schedule == "interleaved" else _BUBBLES[schedule]


def warm_up_chunks(
    schedule: OrderedSchedule, rank: int, *, num_stages: int, num_micro_batches: int, chunks_per_rank: int = 1
) -> int:
    """Forwards that a rank runs before its first backward, beside the one that it alternates with."""
    p, m, v = num_stages, num_micro_batches, chunks_per_rank
    if schedule == "gpipe":
        return m * v
    if v == 1:
        return min(m, p - 1 - rank)
    return min(m * v, 2 * (p - rank - 1) + (v - 1) * p)


def rank_order(
    schedule: OrderedSchedule, rank: int, *, num_stages: int, num_micro_batches: int, chunks_per_rank: int = 1
) -> RankOrder:
    """The order of pipeline rank ``rank`` as Megatron-LM runs it (layout page, 3.4).

    Warm-up forwards, then one forward and one backward in turn, then the backwards left. The i-th forward is chunk
    ⌊(i mod pv)/p⌋ of micro-batch p⌊i/(pv)⌋ + i mod p, the i-th backward the same with chunks reversed; a last group of
    less than p micro-batches is as wide as it is.
    """
    chunk, micro_batch = _forwards(num_stages, num_micro_batches, chunks_per_rank)
    total, p, v = len(chunk), num_stages, chunks_per_rank
    warm_up = warm_up_chunks(schedule, rank, num_stages=p, num_micro_batches=num_micro_batches, chunks_per_rank=v)
    index = np.arange(total)
    # F number i stands after the i forwards before it and the backwards that the alternation put between them.
    forward_at = index + np.maximum(0, index - warm_up)
    backward_at = np.minimum(warm_up + 1 + 2 * index, total + index)
    forward = np.zeros(2 * total, dtype=np.bool_)
    forward[forward_at] = True
    chunks, batches = np.empty(2 * total, dtype=np.int64), np.empty(2 * total, dtype=np.int64)
    chunks[forward_at], batches[forward_at] = chunk, micro_batch
    chunks[backward_at], batches[backward_at] = v - 1 - chunk, micro_batch
    return RankOrder(forward, chunks, batches)


def peak_resident(
    schedule: OrderedSchedule,
    rank: int,
    stored: npt.ArrayLike,
    *,
    num_stages: int,
    num_micro_batches: int,
) -> float:
    """The most that is resident on a rank: +``stored[chunk]`` at a forward, −it at its backward; exact.

    ``stored`` has one amount per chunk of the rank, length v.
    """
    amounts = np.asarray(stored, dtype=np.float64)
    return walk(_short_order(schedule, rank, num_stages, num_micro_batches, len(amounts)), amounts)


def chunks_at_peak(
    schedule: OrderedSchedule,
    rank: int,
    stored: npt.ArrayLike,
    *,
    num_stages: int,
    num_micro_batches: int,
) -> list[int]:
    """Of each chunk the micro-batches that are resident when a rank first holds most, ``peak_resident``."""
    amounts = np.asarray(stored, dtype=np.float64)
    order = _short_order(schedule, rank, num_stages, num_micro_batches, len(amounts))
    until = int(_resident(order, amounts).argmax()) + 1
    ran, forward = order.chunk[:until], order.forward[:until]
    forwards = np.bincount(ran[forward], minlength=len(amounts))
    kept: list[int] = (forwards - np.bincount(ran[~forward], minlength=len(amounts))).tolist()
    return kept


def walk(order: RankOrder, stored: npt.ArrayLike) -> float:
    """The most that is resident anywhere along an order, by a walk over all of it."""
    return float(_resident(order, np.asarray(stored, dtype=np.float64)).max())


def _resident(order: RankOrder, amounts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    moved = amounts[order.chunk]
    return np.cumsum(np.where(order.forward, moved, -moved))


def _short_order(schedule: OrderedSchedule, rank: int, p: int, m: int, v: int) -> RankOrder:
    """An order with the same peak: whole periods repeat, so only the warm-up, two of them and the end are there."""
    if schedule != "gpipe":
        needed = warm_up_chunks(schedule, rank, num_stages=p, num_micro_batches=m, chunks_per_rank=v) + 2 * p * v
        m -= p * max(0, (m * v - needed) // (p * v))
    return rank_order(schedule, rank, num_stages=p, num_micro_batches=m, chunks_per_rank=v)


def _forwards(p: int, m: int, v: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Chunk and micro-batch of the i-th forward of any rank."""
    index = np.arange(m * v)
    group, inside = np.divmod(index, p * v)
    width = np.where(group < m // p, p, max(m % p, 1))
    chunk, batch = np.divmod(inside, width)
    return chunk, p * group + batch
