"""What may carry the two sides, everything resolved, and the operating point of one pair of pools."""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import BadInputError
from planner.papers.janus import fixed_point, model
from planner.papers.janus.activated import rows_of
from planner.papers.janus.costs import Limits
from planner.papers.janus.model import Option
from planner.papers.janus.problem import Device, SizingProblem

CELLS = 2**22
"""Expert instances times points of the batch grid of an option: what bounds the memory of a search, and its time."""


def options(problem: SizingProblem, limits: Limits | None = None) -> tuple[Option, ...]:
    """The options of a problem by device id, or its own as the one; ``limits`` stand in place of every stated one.

    Raises BadInputError: too_large, missing_field (routing not read), out_of_range (an output token takes no time).
    """
    devices = sorted(problem.devices, key=lambda device: device.id)
    found = tuple(_option(problem, device, limits) for device in devices) or (_option(problem, None, limits),)
    for option in found:
        _refuse_no_time(option)
    return found


def _option(problem: SizingProblem, device: Device | None, limits: Limits | None) -> Option:
    own = device or Device(id="own")
    slots = own.slots_per_instance or problem.slots_per_instance
    limits = limits or own.limits or problem.limits
    a_max = own.a_max or problem.a_max
    most = min(limits.max_expert_instances, limits.max_total_instances)
    place = "" if device is None else f"devices.{device.id}."
    _refuse_large(most, len(a_max.batch_grid or ()), place if own.limits else "")
    grid, rows, row_instances = rows_of(a_max, problem.num_experts, problem.top_k, slots, most)
    return Option(
        device=None if device is None else device.id,
        num_layers=problem.num_layers,
        num_experts=problem.num_experts,
        top_k=problem.top_k,
        slots=slots,
        slo_s=problem.slo_tpot_s,
        context_tokens=problem.context_tokens,
        rules=problem.launcher_rules,
        attention=own.attention or problem.attention,
        moe=own.moe or problem.moe,
        comm=own.comm or problem.comm,
        memory=own.memory or problem.memory,
        limits=limits,
        prices=own.prices or problem.prices,
        memory_place=f"{place if own.memory else ''}memory",
        limits_place=f"{place if own.limits else ''}limits",
        grid=grid,
        rows=rows,
        row_instances=row_instances,
    )


def _refuse_large(instances: int, points: int, place: str) -> None:
    if instances * points > CELLS:
        raise BadInputError(
            f"up to {instances:,} expert instances on a batch grid of {points:,} points: a search takes "
            f"{CELLS:,} of their products at most",
            code="too_large",
            where=f"{place}limits.max_expert_instances",
        )


def _refuse_no_time(option: Option) -> None:
    """One request on the fewest experts is never without time, so no token is."""
    one = model.pairs_of(option, 1, option.fewest_experts)
    beside_experts = max(option.attention.floor_s, option.request_s) + float(one.direct.sum(axis=0).min())
    if beside_experts + option.moe.base_s + option.moe.per_expert_s * float(option.rows[:, 0].min()) <= 0:
        raise BadInputError(
            "an output token takes no time: expected some of attention, moe or comm above 0",
            code="out_of_range",
            where="attention" if option.device is None else f"devices.{option.device}",
        )


@dataclass(frozen=True)
class Point:
    """Pools at the batch that a demand keeps in flight. Seconds ``*_s`` but ``tpot_s`` are of one layer.

    ``attention_memory_bytes`` is None where the problem states no memory. Nothing here says that limits are kept.
    """

    attention_instances: int
    expert_instances: int
    batch: float
    tpot_s: float
    a_max: float
    attention_s: float
    moe_s: float
    comm_s: float
    comm_case: int
    attention_memory_bytes: float | None


def operating_point(option: Option, n_a: int, n_e: int, demand: float) -> Point | None:
    """The smallest fixed point of one pair, whether or not it meets the SLO and memory.

    None where its batch is past the data, or n_e is below every row of a_max.
    """
    if n_a < 1 or n_e < option.row_instances[0]:
        return None
    one = model.pairs_of(option, n_a, n_e)
    batch = fixed_point.batches(one, demand)
    if batch[0] != batch[0]:
        return None
    comm_s, case = model.comm_s(one, batch)
    return Point(
        attention_instances=n_a,
        expert_instances=n_e,
        batch=float(batch[0]),
        tpot_s=float(model.tpot_s(one, batch)[0]),
        a_max=float(model.activated(one, batch)[0]),
        attention_s=float(model.attention_s(one, batch)[0]),
        moe_s=float(model.moe_s(one, batch)[0]),
        comm_s=float(comm_s[0]),
        comm_case=int(case[0]),
        attention_memory_bytes=None if option.memory is None else float(model.attention_bytes(one, batch)[0]),
    )


__all__ = ["Option", "Point", "operating_point", "options"]
