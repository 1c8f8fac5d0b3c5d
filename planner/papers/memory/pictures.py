"""What there is to see in a memory plan: bytes by cause, where each state is, rival placements, what a step pays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.papers.memory.account import account, account_of_rank, names_of, total_s
from planner.papers.memory.baselines import lacking, named_placements
from planner.papers.memory.causes import OTHER, by_cause
from planner.papers.memory.explained import (
    Placement,
    activations_bytes,
    bytes_by_group,
    device_bytes,
    fullest,
    placement_at,
    placement_of,
)
from planner.papers.memory.launch_settings import launched
from planner.papers.memory.names import named
from planner.papers.memory.placements import EQUAL, Placements, fitting, placements
from planner.papers.memory.problem import MODES, STATES, MemoryProblem, State
from planner.papers.memory.solution import MemorySolution
from planner.units import in_bytes, percent, seconds
from planner.view import Bar, Bars, Segment, Table, View

COLUMNS = (*STATES, OTHER)
_HEADINGS = {"parameters": "params", "gradients": "grads", "optimizer": "optim", "activations": "activ", OTHER: OTHER}


def view(problem: MemoryProblem, solution: MemorySolution) -> View:
    """The table by cause first, then why it is placed so and what that costs."""
    placement, found = placement_of(solution), placements(problem)
    return View(
        (
            causes_table(problem, placement),
            *_ranks(problem, placement),
            _states(problem, solution, placement),
            _rivals(problem, placement, found),
            *_changes(problem, placement, found),
            *_paid(problem, solution, placement),
            _launched(problem, placement),
        )
    )


def causes_table(problem: MemoryProblem, placement: Placement) -> Table:
    """Bytes on the device by cause and state, with what is free; of several ranks on the fullest."""
    own = fullest(problem, placement)
    causes = by_cause(own, placement)
    used = [column for column in COLUMNS if any(column in row for row in causes.values())]
    rows = [_cause_row(problem, cause, row, used) for cause, row in causes.items()]
    whole = {column: sum(row.get(column, 0.0) for row in causes.values()) for column in used}
    rows.append(_cause_row(problem, "in all", whole, used))
    free = problem.capacity_bytes - sum(whole.values())
    rows.append(("free", *("" for _ in used), in_bytes(free), _share(free, problem.capacity_bytes)))
    which = f"rank {own.rank}, the fullest" if problem.ranks else "the device"
    title = f"bytes by cause on {which}, of {in_bytes(problem.capacity_bytes)}"
    return Table(title, ("cause", *(_HEADINGS[column] for column in used), "in all", "share"), tuple(rows))


def _ranks(problem: MemoryProblem, placement: Placement) -> Iterator[Table]:
    """What each rank of the pipeline holds and pays; those that another beats in everything are not stated."""
    if not problem.ranks:
        return
    rows = []
    for each in sorted(problem.each_rank(), key=lambda each: each.rank or 0):
        held = device_bytes(each, placement)
        took = seconds(total_s(account_of_rank(each, placement)))
        rows.append((f"rank {each.rank}", in_bytes(held), _share(held, problem.capacity_bytes), took))
    yield Table("ranks of the pipeline, all by this placement", ("rank", "in all", "share", "a step"), tuple(rows))


def _cause_row(problem: MemoryProblem, cause: str, row: dict[str, float], used: list[str]) -> tuple[str, ...]:
    total = sum(row.values())
    cells = (in_bytes(row[column]) if row.get(column) else "" for column in used)
    return cause, *cells, in_bytes(total), _share(total, problem.capacity_bytes)


def _share(amount: float, capacity: float) -> str:
    return f"{amount / capacity:.2%}"


def _states(problem: MemoryProblem, solution: MemorySolution, placement: Placement) -> Table:
    """Where each state of each group is kept, on the fullest rank."""
    own = fullest(problem, placement)
    held = bytes_by_group(own, placement)
    prefixes: dict[State, int] = {
        "parameters": placement.i_p,
        "gradients": placement.i_g,
        "optimizer": placement.i_o,
    }
    rows = []
    for state, prefix in prefixes.items():
        for group in own.groups:
            dims = [dim for dim in group.dims[:prefix] if dim.size > 1]
            rows.append(
                (
                    state,
                    group.id,
                    getattr(placement, state),
                    names_of(dims) or ("one rank" if prefix else "-"),
                    in_bytes(getattr(group, f"{state}_bytes")),
                    in_bytes(held[state][group.id]),
                )
            )
    kept = in_bytes(own.activations.kept_bytes)
    on_device = in_bytes(activations_bytes(own, placement.activations))
    rows.append(("activations", "", placement.activations, "-", kept, on_device))
    title = "where each state is" + (f", {in_bytes(solution.host_bytes)} on the host" if solution.host_bytes else "")
    return Table(title, ("state", "group", "kept", "sharded over", "whole", "on the device"), tuple(rows))


def _rivals(problem: MemoryProblem, placement: Placement, found: Placements) -> Bars:
    """This placement and those that have a name, beside what the device has."""
    places = {placement_at(found, place): place for place in range(len(found))}
    rivals = {"planned": placement} | {
        name: rival for name, rival in named_placements(problem.num_dims).items() if rival is not None
    }
    bars = tuple(_bar(problem, found, name, rival, places[rival]) for name, rival in rivals.items() if rival in places)
    return Bars("placements on the device, | its memory", bars, "bytes", COLUMNS, limit=problem.capacity_bytes)


def _bar(problem: MemoryProblem, found: Placements, name: str, rival: Placement, place: int) -> Bar:
    own = fullest(problem, rival)
    amounts: dict[str, float] = {state: sum(each.values()) for state, each in bytes_by_group(own, rival).items()}
    beside = own.other_bytes + own.workspace_bytes
    amounts |= {"activations": activations_bytes(own, rival.activations), OTHER: beside}
    segments = tuple(Segment(column, amounts[column]) for column in COLUMNS if amounts[column] > 0)
    took = seconds(float(found.overhead_s[place]))
    over = ", over" if lacking(problem, found, place) else ""
    return Bar(name, segments, f"{took}{over}")


def _changes(problem: MemoryProblem, placement: Placement, found: Placements) -> Iterator[Table]:
    """For every mode that was not chosen the best placement with it, or what the closest one lacks."""
    on_device, on_host = fitting(problem, found)
    fits = on_device & on_host
    place = next(place for place in range(len(found)) if placement_at(found, place) == placement)
    own_s = float(found.overhead_s[place])
    rows = []
    for number, state in enumerate(STATES):
        for code, mode in enumerate(MODES[state]):
            with_mode = found.modes[number] == code
            if code == found.modes[number, place] or not with_mode.any():
                continue
            other = found.best(with_mode & fits)
            if other is not None:
                loses = _longer(float(found.overhead_s[other]), own_s)
            else:
                held = with_mode & on_host if (with_mode & on_host).any() else with_mode
                other = int(np.where(held, found.device_bytes, np.inf).argmin())
                loses = lacking(problem, found, other)
            name = named(placement_at(found, other), problem.num_dims)
            rows.append((f"{state} {mode}", name, in_bytes(float(found.device_bytes[other])), loses))
    if rows:
        yield Table("with another mode", ("instead", "at best", "on the device", "loses by"), tuple(rows))


def _longer(other_s: float, own_s: float) -> str:
    """Why a placement that fits was not taken."""
    if other_s < own_s / EQUAL:
        return f"nothing: {seconds(other_s)}"
    if other_s <= own_s * EQUAL:
        return "nothing: as long"
    return f"{seconds(other_s)}" + (f", {other_s / own_s:.3g} times" if own_s else "")


def _paid(problem: MemoryProblem, solution: MemorySolution, placement: Placement) -> Iterator[Table]:
    """What moving and recomputing take in a step."""
    total_s = solution.overhead_s
    rows = tuple(
        (
            item.name.replace("_", " "),
            item.group,
            item.over,
            f"{item.times:,}",
            in_bytes(item.moved_bytes) if item.moved_bytes else "",
            seconds(item.seconds),
            percent(item.seconds / total_s) if total_s else "-",
        )
        for item in account(problem, placement)
    )
    if rows:
        title = f"what a step pays: {seconds(total_s)}, nothing overlapped"
        yield Table(title, ("what", "group", "over", "times", "bytes moved", "time", "share"), rows)


def _launched(problem: MemoryProblem, placement: Placement) -> Table:
    """The placement in the settings of launchers."""
    rows = tuple((each.launcher, each.settings or each.cannot) for each in launched(problem, placement))
    return Table("as launchers are told it", ("launcher", "settings"), rows)
