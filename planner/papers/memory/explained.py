"""From one placement among all to the solution document that states it."""

from __future__ import annotations

from dataclasses import dataclass

from planner.memory.modes import ActivationsMode, GradientsMode, OptimizerMode, ParametersMode
from planner.papers.memory.options import gradients_device_bytes, optimizer_device_bytes, parameters_device_bytes
from planner.papers.memory.placements import Placements
from planner.papers.memory.problem import (
    ACTIVATIONS_MODES,
    GRADIENTS_MODES,
    OPTIMIZER_MODES,
    PARAMETERS_MODES,
    MemoryProblem,
    State,
)
from planner.papers.memory.solution import ByState, MemorySolution, ShardDims
from planner.papers.memory.traffic import Floats, Groups


@dataclass(frozen=True)
class Placement:
    """A decision: modes by name, and prefixes."""

    parameters: ParametersMode
    gradients: GradientsMode
    optimizer: OptimizerMode
    activations: ActivationsMode
    i_p: int
    i_g: int
    i_o: int


def placement_at(found: Placements, place: int) -> Placement:
    """The decision of one of all placements."""
    p, g, o, a = found.modes[:, place].tolist()
    return Placement(
        PARAMETERS_MODES[p],
        GRADIENTS_MODES[g],
        OPTIMIZER_MODES[o],
        ACTIVATIONS_MODES[a],
        *found.prefixes[:, place].tolist(),
    )


def placement_of(solution: MemorySolution) -> Placement:
    """The decision of a checked solution."""
    dims = solution.shard_dims
    return Placement(
        next(mode for mode in PARAMETERS_MODES if mode == solution.parameters),
        next(mode for mode in GRADIENTS_MODES if mode == solution.gradients),
        next(mode for mode in OPTIMIZER_MODES if mode == solution.optimizer),
        next(mode for mode in ACTIVATIONS_MODES if mode == solution.activations),
        dims.parameters,
        dims.gradients,
        dims.optimizer,
    )


def bytes_by_group(problem: MemoryProblem, placement: Placement) -> dict[State, dict[str, float]]:
    """Bytes on the device of parameters, gradients and optimizer, each by group."""
    groups = Groups(problem)
    ids = [group.id for group in problem.groups]
    each: dict[State, Floats] = {
        "parameters": parameters_device_bytes(groups, placement.parameters, placement.i_p),
        "gradients": gradients_device_bytes(groups, placement.gradients, placement.i_g),
        "optimizer": optimizer_device_bytes(groups, placement.optimizer, placement.i_o),
    }
    return {state: dict(zip(ids, amounts.tolist(), strict=True)) for state, amounts in each.items()}


def activations_bytes(problem: MemoryProblem, mode: ActivationsMode) -> float:
    """Bytes of activations on the device."""
    given = problem.activations
    amounts = {"kept": given.kept_bytes, "materialised": given.materialised_bytes, "offloaded": given.unit_bytes}
    return amounts[mode] or 0.0


def device_bytes(problem: MemoryProblem, placement: Placement) -> float:
    """Bytes on the device of the problem's own rank, all that is no state's included."""
    states = sum(sum(each.values()) for each in bytes_by_group(problem, placement).values())
    beside = problem.other_bytes + problem.workspace_bytes
    return states + activations_bytes(problem, placement.activations) + beside


def fullest(problem: MemoryProblem, placement: Placement) -> MemoryProblem:
    """The problem of the rank, alone, that holds most; of ties the first that is stated."""
    return max(problem.each_rank(), key=lambda each: device_bytes(each, placement))


def solution_of(problem: MemoryProblem, found: Placements, place: int) -> MemorySolution:
    """The solution that states one of all placements."""
    placement = placement_at(found, place)
    rank = fullest(problem, placement)
    held = {state: sum(each.values()) for state, each in bytes_by_group(rank, placement).items()}
    return MemorySolution(
        parameters=placement.parameters,
        gradients=placement.gradients,
        optimizer=placement.optimizer,
        activations=placement.activations,
        shard_dims=ShardDims(parameters=placement.i_p, gradients=placement.i_g, optimizer=placement.i_o),
        device_bytes=float(found.device_bytes[place]),
        host_bytes=float(found.host_bytes[place]),
        communication_bytes=float(found.sent_bytes[place]),
        overhead_s=float(found.overhead_s[place]),
        by_state=ByState(**held, activations=activations_bytes(rank, placement.activations)),
    )
