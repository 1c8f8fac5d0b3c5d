"""Why no placement fits (page, section 4), and the least change that makes one fit."""

from __future__ import annotations

import numpy as np

from planner.errors import InfeasibleError, Relaxation
from planner.papers.memory.byte_fields import MAX_BYTES
from planner.papers.memory.explained import placement_at
from planner.papers.memory.names import named
from planner.papers.memory.placements import Placements, Truths, fitting, placements
from planner.papers.memory.problem import STATES, MemoryProblem
from planner.papers.memory.traffic import Floats
from planner.units import in_bytes


def nothing_fits(problem: MemoryProblem, found: Placements) -> InfeasibleError:
    """The error of a problem without a placement that device and host hold.

    ``device_memory`` where the host holds some, ``host_memory`` where it holds none, ``no_placement`` where the modes
    that ``search`` leaves make none.
    """
    if not len(found):
        return _no_placement(problem)
    on_device, on_host = fitting(problem, found)
    return (
        _device_memory(problem, found, on_device, on_host) if on_host.any() else _host_memory(problem, found, on_device)
    )


def _device_memory(problem: MemoryProblem, found: Placements, on_device: Truths, on_host: Truths) -> InfeasibleError:
    place = _least(found.device_bytes, on_host)
    required = float(found.device_bytes[place])
    name = named(placement_at(found, place), problem.num_dims)
    message = f"no placement fits the device; least takes {name}"
    if on_device.any():
        host_bytes = float(found.host_bytes[_least(found.host_bytes, on_device)])
        message += f"; a host.capacity_bytes of {host_bytes:.17g} would do too"
    elif problem.host is None:
        message += "; there is no host to offload to"
    return InfeasibleError(
        message,
        code="device_memory",
        where="capacity_bytes",
        required=required,
        available=problem.capacity_bytes,
        unit="bytes",
        relaxation=_relaxed("capacity_bytes", required, enough=True),
    )


def _host_memory(problem: MemoryProblem, found: Placements, on_device: Truths) -> InfeasibleError:
    """Only where ``search`` forces something onto the host."""
    enough = bool(on_device.any())
    place = _least(found.host_bytes, on_device if enough else np.ones(len(found), dtype=np.bool_))
    required = float(found.host_bytes[place])
    name = named(placement_at(found, place), problem.num_dims)
    message = f"no placement that search leaves fits the host; least takes {name}"
    if not enough:
        least = float(found.device_bytes.min())
        message += f"; nor does any fit the device, which needs {in_bytes(least)}"
    return InfeasibleError(
        message,
        code="host_memory",
        where="host.capacity_bytes",
        required=required,
        available=problem.host.capacity_bytes if problem.host else 0.0,
        unit="bytes",
        relaxation=_relaxed("host.capacity_bytes", required, enough=enough),
    )


def _relaxed(field: str, required: float, *, enough: bool) -> Relaxation | None:
    """The least bytes that are enough; None where they are more than a problem may state."""
    return Relaxation(field, required, proven=enough, enough=enough) if required <= MAX_BYTES else None


def _no_placement(problem: MemoryProblem) -> InfeasibleError:
    """With the state whose modes, all allowed, make a placement that fits, or at least one."""
    best: tuple[bool, str] | None = None
    for state in STATES:
        search = problem.search.model_copy(update={state: None})
        freed = problem.model_copy(update={"search": search})
        found = placements(freed)
        on_device, on_host = fitting(freed, found)
        if len(found) and (best is None or bool((on_device & on_host).any()) > best[0]):
            best = (bool((on_device & on_host).any()), state)
    return InfeasibleError(
        "no placement keeps the rules with the modes that search leaves",
        code="no_placement",
        where="search",
        relaxation=None if best is None else Relaxation(f"search.{best[1]}", "null", proven=False, enough=best[0]),
    )


def _least(figures: Floats, allowed: Truths) -> int:
    """The first place of the least figure among those allowed."""
    return int(np.where(allowed, figures, np.inf).argmin())
