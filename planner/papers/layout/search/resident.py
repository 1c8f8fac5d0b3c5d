"""What of its chunks a rank holds when its activations peak (page, sections 3.4 and 3.6), in closed form."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from planner.papers.layout.search.combinations import Floats, Ints


def pattern(pp: int, vpp: int, micro_batches: Ints) -> Ints:
    """A key for each number of micro-batches: equal ones have the same peaks on every rank.

    Nothing in flight depends on micro-batches beyond p (one chunk) or 3p (several chunks, m a multiple of p): a rank
    runs fewer than (v+1)p forwards before its first backward and then repeats itself every pv tasks.
    """
    return np.minimum(micro_batches, pp if vpp == 1 else 3 * pp)


@lru_cache(maxsize=1024)
def peaks(pp: int, vpp: int, micro_batches: int) -> Floats:
    """Micro-batches of each chunk in flight: [rank, state, chunk].

    Whatever a micro-batch of each chunk stores, the rank's activations peak at one of these states.
    """
    return np.stack([_of_rank(pp, vpp, micro_batches, rank) for rank in range(pp)])


def _of_rank(pp: int, vpp: int, micro_batches: int, rank: int) -> Floats:
    """Resident bytes are linear between two tasks that turn to another chunk, so only those tasks can be peaks."""
    total = micro_batches * vpp
    warm_up = pp - 1 - rank if vpp == 1 else 2 * (pp - rank - 1) + (vpp - 1) * pp
    warm_up = min(total, warm_up)
    if vpp == 1:
        return np.array([[float(min(micro_batches, warm_up + 1))]])
    # After i backwards of the steady phase warm_up + i + 1 forwards are done, until no forward is left.
    last = min(max(total - warm_up - 1, 0), pp * vpp)
    turns = np.arange(0, pp * vpp + 1, pp)
    done = np.concatenate([turns, turns + (-(warm_up + 1)) % pp, [last]])
    done = np.minimum(done, last)
    chunk = np.arange(vpp)
    forwards = _of_chunk(np.minimum(done + warm_up + 1, total)[:, None], chunk, pp, vpp)
    backwards = _of_chunk(done[:, None], vpp - 1 - chunk, pp, vpp)
    return (forwards - backwards).astype(np.float64)


def _of_chunk(tasks: Ints, chunk: Ints, pp: int, vpp: int) -> Ints:
    """Of so many first tasks those of the chunk that is served as number ``chunk``: p micro-batches of each in turn."""
    rounds, rest = np.divmod(tasks, pp * vpp)
    return np.asarray(rounds * pp + np.clip(rest - chunk * pp, 0, pp))
