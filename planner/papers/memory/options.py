"""What each state may do by itself: a mode and a shard prefix, with its bytes and the seconds that it alone decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from planner.memory import states
from planner.memory.modes import GradientsMode, OptimizerMode, ParametersMode
from planner.papers.memory import traffic
from planner.papers.memory.problem import (
    ACTIVATIONS_MODES,
    GRADIENTS_MODES,
    OPTIMIZER_MODES,
    PARAMETERS_MODES,
    MemoryProblem,
)
from planner.papers.memory.traffic import Floats, Groups, Traffic

Mode = TypeVar("Mode", bound=str)

REPLICATED = "replicated"
OFFLOADED = "offloaded"


class Option(NamedTuple):
    """One mode with one prefix of one state. ``mode`` counts the modes of the state in the order of ties."""

    mode: int
    prefix: int
    offloaded: bool
    device_bytes: float
    host_bytes: float
    sent_bytes: float
    seconds: float


def parameters_device_bytes(groups: Groups, mode: ParametersMode, prefix: int) -> Floats:
    """Of every group."""
    amount: Floats = states.parameters_bytes(mode, groups.parameters, groups.parameters_unit, groups.ranks[prefix])
    return amount


def gradients_device_bytes(groups: Groups, mode: GradientsMode, prefix: int) -> Floats:
    """Of every group."""
    amount: Floats = states.gradients_bytes(mode, groups.gradients, groups.gradients_unit, groups.ranks[prefix])
    return amount


def optimizer_device_bytes(groups: Groups, mode: OptimizerMode, prefix: int) -> Floats:
    """Of every group."""
    amount: Floats = states.optimizer_bytes(mode, groups.optimizer, groups.ranks[prefix])
    return amount


def parameters_options(groups: Groups) -> list[Option]:
    """Modes and prefixes of the parameters that the problem offers."""
    return _options(
        groups,
        PARAMETERS_MODES,
        groups.problem.search.parameters,
        groups.parameters,
        lambda mode, prefix: parameters_device_bytes(groups, mode, prefix),
        groups.parameters_gather,
        traffic.parameters_link_bytes,
    )


def gradients_options(groups: Groups) -> list[Option]:
    """Modes and prefixes of the gradients that the problem offers."""
    return _options(
        groups,
        GRADIENTS_MODES,
        groups.problem.search.gradients,
        groups.gradients,
        lambda mode, prefix: gradients_device_bytes(groups, mode, prefix),
        lambda _, prefix: groups.gradients_scatter(prefix),
        traffic.gradients_link_bytes,
    )


def optimizer_options(groups: Groups) -> list[Option]:
    """Modes and prefixes of the optimizer that the problem offers; the host's update of what it holds included."""
    options = _options(
        groups,
        OPTIMIZER_MODES,
        groups.problem.search.optimizer,
        groups.optimizer,
        lambda mode, prefix: optimizer_device_bytes(groups, mode, prefix),
        lambda _, prefix: groups.gradients_reduce(prefix),
        traffic.optimizer_link_bytes,
    )
    return [one._replace(seconds=one.seconds + update_s(groups.problem, one.host_bytes)) for one in options]


def _options(
    groups: Groups,
    modes: tuple[Mode, ...],
    asked: tuple[Mode, ...] | None,
    whole: Floats,
    device_bytes: Callable[[Mode, int], Floats],
    collective: Callable[[Mode, int], Traffic],
    link_bytes: Callable[[Groups, int], float],
) -> list[Option]:
    """Of one state; ``whole`` are its bytes before sharding."""
    found = []
    for number, mode in enumerate(modes):
        for prefix in _prefixes(groups.problem, asked, mode):
            moved = collective(mode, prefix)
            over_link = link_bytes(groups, prefix) if mode == OFFLOADED else 0.0
            found.append(
                Option(
                    number,
                    prefix,
                    mode == OFFLOADED,
                    float(device_bytes(mode, prefix).sum()),
                    float((whole / groups.ranks[prefix]).sum()) if mode == OFFLOADED else 0.0,
                    float(moved.sent_bytes.sum()),
                    float(moved.seconds.sum()) + _link_s(groups.problem, over_link),
                )
            )
    return found


def activations_options(problem: MemoryProblem) -> list[Option]:
    """Modes of the activations that the problem offers."""
    given, m = problem.activations, problem.num_micro_batches
    recomputed_s = m * (given.recompute_s or 0.0)
    link_s = _link_s(problem, traffic.activations_link_bytes(problem))
    takes = {
        "kept": (given.kept_bytes, 0.0, 0.0),
        "materialised": (given.materialised_bytes, 0.0, recomputed_s),
        OFFLOADED: (given.unit_bytes if problem.host else None, given.kept_bytes, link_s),
    }
    found = []
    for number, mode in enumerate(ACTIVATIONS_MODES):
        device_bytes, host_bytes, seconds = takes[mode]
        asked = problem.search.activations
        if device_bytes is not None and (asked is None or mode in asked):
            found.append(Option(number, 0, mode == OFFLOADED, device_bytes, host_bytes, 0.0, seconds))
    return found


def update_s(problem: MemoryProblem, held_bytes: float) -> float:
    """Seconds of the host's update of the optimizer states that it holds."""
    return held_bytes * problem.host.update_s_per_byte if problem.host else 0.0


def _prefixes(problem: MemoryProblem, asked: tuple[str, ...] | None, mode: str) -> range:
    """Rules 2 and 4 of section 3.1: replicated goes with none, offloaded with any and a host, the others with some."""
    if asked is not None and mode not in asked:
        return range(0)
    if mode == OFFLOADED:
        return range(problem.num_dims + 1) if problem.host else range(0)
    return range(1) if mode == REPLICATED else range(1, problem.num_dims + 1)


def _link_s(problem: MemoryProblem, link_bytes: float) -> float:
    return link_bytes * problem.host.beta_s_per_byte if problem.host else 0.0
