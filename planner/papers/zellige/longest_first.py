"""Longest first on aligned groups of one degree, and the baselines that are settings of it (page section 5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from planner.papers.zellige.instance import Instance, Mode, Piece, Placement, Ranks, loads
from planner.papers.zellige.rank_sets import aligned_blocks
from planner.papers.zellige.spread import Bins

MEMORY_TOLERANCE = 1e-12
"""Relative excess over the cap that is put down to rounding; far inside the check's 1e-9."""


@dataclass(frozen=True)
class Candidate:
    """What a cheap rule gives. ``placement`` is complete and on legal rank sets, or None where the rule has none.

    ``feasible`` says whether it also fits the memory of every rank; ``note`` names the setting, or what failed.
    """

    name: str
    placement: Placement | None
    makespan_s: float | None
    feasible: bool
    note: str


Trial: TypeAlias = tuple[float, Callable[[], Candidate]]
"""One setting of a rule: a makespan [s] it cannot beat, and the rule itself, scored to rounding."""


def failed(name: str, note: str) -> Candidate:
    """A rule that gives no placement."""
    return Candidate(name, None, None, False, note)


def scored(instance: Instance, name: str, placement: Placement, note: str = "") -> Candidate:
    """A placement with its exact makespan; over the memory cap it is kept, marked infeasible."""
    time_s, memory_bytes = loads(instance, placement)
    cap = instance.memory_cap_bytes
    most = max(memory_bytes)
    if most > cap * (1 + MEMORY_TOLERANCE):
        excess = f"rank {memory_bytes.index(most)} needs {most:.6g} bytes of {cap:.6g}"
        return Candidate(name, placement, max(time_s), False, f"{note}; {excess}" if note else excess)
    return Candidate(name, placement, max(time_s), True, note)


def legal_blocks(instance: Instance, mode: Mode) -> tuple[Ranks, ...]:
    """The aligned blocks that a mode's policy allows: disjoint, ascending."""
    return aligned_and_legal(instance, mode.config, mode.degree)


def aligned_and_legal(instance: Instance, config: int, degree: int) -> tuple[Ranks, ...]:
    """The aligned blocks that a configuration's policy allows: disjoint, ascending."""
    aligned = aligned_blocks(instance.num_ranks, instance.node_size, degree)
    if instance.problem.rank_sets.policy != "explicit":
        return aligned
    listed = set(instance.blocks[config])
    return tuple(block for block in aligned if block in listed)


def _choose(instance: Instance, wanted: Callable[[Mode], bool]) -> list[int] | str:
    """For every kind the first wanted mode (least degree, then time); else the id of a sequence that has none."""
    chosen: list[int] = []
    for kind in instance.kinds:
        mode = next((m for m, mode in enumerate(kind.modes) if wanted(mode)), None)
        if mode is None:
            return kind.sequence_ids[0]
        chosen.append(mode)
    return chosen


def _longest(instance: Instance, chosen: Sequence[int]) -> list[int]:
    modes = [kind.modes[m] for kind, m in zip(instance.kinds, chosen, strict=True)]
    return sorted(range(len(modes)), key=lambda i: -modes[i].time_s)


def _on_groups(instance: Instance, name: str, degree: int, chosen: list[int] | str) -> Candidate:
    """Kinds by time descending, each sequence to the least-loaded aligned group of this degree that has the memory."""
    if isinstance(chosen, str):
        return failed(name, f'"{chosen}" has no usable option of degree {degree}')
    blocks = legal_blocks(instance, instance.kinds[0].modes[chosen[0]])
    bins = Bins(len(blocks), instance.memory_cap_bytes * (1 + MEMORY_TOLERANCE))
    placement: dict[Piece, int] = {}
    for index in _longest(instance, chosen):
        kind, m = instance.kinds[index], chosen[index]
        taken = bins.put(kind.count, kind.modes[m].time_s, kind.modes[m].memory_bytes)
        if (placed := sum(taken.values())) < kind.count:
            return failed(name, f'degree {degree}: no memory left for "{kind.sequence_ids[placed]}"')
        for b, n in taken.items():
            placement[Piece(index, m, blocks[b])] = n
    return Candidate(name, placement, max(bins.levels), True, f"groups of {degree}")


def pure_dp(instance: Instance, below_s: float = math.inf) -> Candidate:
    """Whole sequences only, longest first to the least-loaded rank with memory."""
    chosen = _choose(instance, lambda mode: mode.degree == 1)
    run = partial(_on_groups, instance, "pure_dp", 1, chosen)
    return best(instance, "pure_dp", [(least_makespan_s(instance, chosen), run)], below_s)


def pure_cp(instance: Instance) -> Candidate:
    """Every sequence on all ranks in its fastest such option, T = Σ min p; memory is reported after the fact."""
    degree = instance.num_ranks
    configs = _tiling(instance, degree)
    chosen = _choose(instance, lambda mode: mode.config in configs)
    if isinstance(chosen, str):
        return failed("pure_cp", f'"{chosen}" has no usable option on all {degree} ranks')
    everyone = tuple(range(degree))
    placement = {Piece(i, m, everyone): instance.kinds[i].count for i, m in enumerate(chosen)}
    return scored(instance, "pure_cp", placement)


def homogeneous_d(instance: Instance, below_s: float = math.inf) -> Candidate:
    """N/d aligned groups of one degree d, longest first to the least-loaded group with memory; the best d."""
    name = "homogeneous_d"
    trials: list[Trial] = []
    for degree in sorted({config.degree for config in instance.problem.configs}):
        configs = _tiling(instance, degree)
        chosen = _choose(instance, lambda mode, configs=configs: mode.config in configs)  # type: ignore[misc]
        trials.append((least_makespan_s(instance, chosen), partial(_on_groups, instance, name, degree, chosen)))
    return best(instance, name, trials, below_s)


def least_makespan_s(instance: Instance, chosen: list[int] | str) -> float:
    """Mean rank time or longest sequence [s]: no placement in these modes beats it. Infinite if a mode is missing."""
    if isinstance(chosen, str):
        return math.inf
    modes = [kind.modes[m] for kind, m in zip(instance.kinds, chosen, strict=True)]
    works = (kind.count * mode.work_s for kind, mode in zip(instance.kinds, modes, strict=True))
    return max(sum(works) / instance.num_ranks, max(mode.time_s for mode in modes))


def _tiling(instance: Instance, degree: int) -> set[int]:
    """Configurations of a degree whose legal aligned blocks use every rank."""
    return {
        c
        for c, config in enumerate(instance.problem.configs)
        if config.degree == degree and len(aligned_and_legal(instance, c, degree)) * degree == instance.num_ranks
    }


def best(instance: Instance, name: str, trials: Sequence[Trial], below_s: float = math.inf) -> Candidate:
    """The fastest feasible one, else the fastest that has a placement, scored exactly; else the first failures.

    A setting whose least makespan is above ``below_s``, or above one already reached, is not tried.
    """
    tried: dict[int, Candidate] = {}
    reached_s = below_s
    for number in sorted(range(len(trials)), key=lambda number: trials[number][0]):
        least_s, run = trials[number]
        if least_s > reached_s * (1 + 1e-9):
            break
        candidate = tried[number] = run()
        if candidate.feasible and candidate.makespan_s is not None:
            reached_s = min(reached_s, candidate.makespan_s)
    in_order = [tried[number] for number in sorted(tried)]
    placed = [candidate for candidate in in_order if candidate.placement is not None]
    if placed:
        first = min(placed, key=lambda candidate: (not candidate.feasible, candidate.makespan_s))
        return scored(instance, name, first.placement or {}, first.note)
    reasons = list(dict.fromkeys(candidate.note for candidate in in_order))
    return failed(name, "; ".join(reasons[:3]) or f"cannot be below {below_s:.6g} s")
