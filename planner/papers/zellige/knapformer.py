"""The KnapFormer baseline: fixed bags of ranks, each sequence to the emptiest bag large enough (page section 5)."""

from __future__ import annotations

import itertools
import math
from functools import partial

from planner.papers.zellige.instance import Instance, Kind, Piece, Ranks
from planner.papers.zellige.longest_first import MEMORY_TOLERANCE, Candidate, aligned_and_legal, best, failed
from planner.papers.zellige.spread import Bins, spread

NAME = "knapformer"


def knapformer(instance: Instance, below_s: float = math.inf) -> Candidate:
    """The best of all-equal bags and of 1,1,2,4,…; the rule has no memory test, so that is reported after the fact."""
    empty = next((kind for kind in instance.kinds if not kind.modes), None)
    if empty is not None:
        return failed(NAME, f'"{empty.sequence_ids[0]}" has no usable option')
    trials = [(_least_s(instance, sizes), partial(fill_bags, instance, sizes)) for sizes in bag_specs(instance)]
    return best(instance, NAME, trials, below_s)


def _least_s(instance: Instance, sizes: tuple[int, ...]) -> float:
    """The least mean rank time, or longest sequence [s], with bags of these sizes: no filling of them beats it."""
    degrees = set(sizes)
    offered = [[mode for mode in kind.modes if mode.degree in degrees] for kind in instance.kinds]
    if not all(offered):
        return math.inf
    works = (k.count * min(mode.work_s for mode in modes) for k, modes in zip(instance.kinds, offered, strict=True))
    longest = max(min(mode.time_s for mode in modes) for modes in offered)
    return max(sum(works) / instance.num_ranks, longest)


def bag_specs(instance: Instance) -> list[tuple[int, ...]]:
    """Bag sizes to try: every offered degree that divides N, and 1,1,2,4,… where N is a power of two."""
    n = instance.num_ranks
    degrees = sorted({mode.degree for kind in instance.kinds for mode in kind.modes})
    specs = [(d,) * (n // d) for d in degrees if n % d == 0]
    if n >= 4 and n & (n - 1) == 0:
        specs.append((1, *(2**e for e in range(n.bit_length() - 1))))
    return specs


def fill_bags(instance: Instance, sizes: tuple[int, ...]) -> Candidate:
    """One bag spec. Sequences by whole work descending; candidates by full, not remaining, capacity.

    A bag of ``size`` ranks holds cap·size of work, cap = W/N; bags lie side by side from rank 0.
    """
    label = f"bags {','.join(map(str, sizes))}" if len(set(sizes)) > 1 else f"{len(sizes)} bags of {sizes[0]}"
    starts = [0, *itertools.accumulate(sizes)]
    bags = [tuple(range(start, start + size)) for start, size in zip(starts, sizes, strict=False)]
    allowed = _allowed_bags(instance, bags)
    cap_s = sum(kind.count * kind.whole_s for kind in instance.kinds) / instance.num_ranks
    equal = Bins(len(bags)) if len(set(sizes)) == 1 else None
    occupancy, time_s, memory_bytes = [0.0] * len(bags), [0.0] * len(bags), [0.0] * len(bags)
    placement: dict[Piece, int] = {}
    for index in sorted(range(len(instance.kinds)), key=lambda i: -instance.kinds[i].whole_s):
        kind = instance.kinds[index]
        taken = (
            equal.put(kind.count, kind.whole_s / (cap_s * sizes[0]))
            if equal
            else _emptiest(kind, cap_s, sizes, occupancy)
        )
        for b, n in taken.items():
            m = next((m for m, mode in enumerate(kind.modes) if b in allowed[mode.config]), None)
            if m is None:
                return failed(NAME, f'{label}: "{kind.sequence_ids[0]}" has no usable option on a bag of {sizes[b]}')
            placement[Piece(index, m, bags[b])] = n
            time_s[b] += n * kind.modes[m].time_s
            memory_bytes[b] += n * kind.modes[m].memory_bytes
    feasible = max(memory_bytes) <= instance.memory_cap_bytes * (1 + MEMORY_TOLERANCE)
    return Candidate(NAME, placement, max(time_s), feasible, label)


def _emptiest(kind: Kind, cap_s: float, sizes: tuple[int, ...], occupancy: list[float]) -> dict[int, int]:
    """How many of a kind each bag gets; raises ``occupancy`` by them."""
    # The slack keeps a sequence that fills a bag exactly in it, whatever the unit of time.
    fits = [b for b, size in enumerate(sizes) if cap_s * size * (1 + 1e-12) >= kind.whole_s]
    chosen = fits or [b for b, size in enumerate(sizes) if size == max(sizes)]
    steps = [kind.whole_s / (cap_s * sizes[b]) for b in chosen]
    counts = spread(kind.count, steps, [occupancy[b] for b in chosen], [kind.count] * len(chosen))
    taken = {}
    for b, step, n in zip(chosen, steps, counts, strict=True):
        occupancy[b] += n * step
        if n:
            taken[b] = n
    return taken


def _allowed_bags(instance: Instance, bags: list[Ranks]) -> list[set[int]]:
    """For each configuration the bags that are legal rank sets of it."""
    allowed = []
    for c, config in enumerate(instance.problem.configs):
        same = [b for b, bag in enumerate(bags) if len(bag) == config.degree]
        legal = set(aligned_and_legal(instance, c, config.degree)) if same else set()
        allowed.append({b for b in same if bags[b] in legal})
    return allowed
