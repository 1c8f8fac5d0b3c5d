"""What there is to see of a placement: what each instance holds together and carries, which experts have copies."""

from __future__ import annotations

import numpy as np

from planner.papers.janus.experts.statistics import of_pairs
from planner.papers.janus.presentation import CO_ACTIVATIONS
from planner.papers.janus.problem import PlacementProblem
from planner.papers.janus.solution import PlacementSolution
from planner.view import Bar, Bars, Segment, Table, View

MOST_INSTANCES = 32
MOST_EXPERTS = 16
MOST_BATCHES = 16
MOST_NAMED = 12


def placement_view(problem: PlacementProblem, solution: PlacementSolution) -> View:
    """Co-activation and load by instance, experts with copies, and batches where there are any."""
    together = _together(problem, solution)
    return View(
        (
            _bars(together),
            _instances(problem, solution, together),
            *_copies(problem, solution),
            *_batches(problem, solution),
        )
    )


def _together(problem: PlacementProblem, solution: PlacementSolution) -> list[float]:
    """I(g) of each instance."""
    weights = of_pairs(problem.expert_load, problem.coactivation).together
    known: dict[tuple[int, ...], float] = {}
    for held in solution.placement:
        if held not in known:
            known[held] = float(weights[np.ix_(held, held)].sum()) / 2
    return [known[held] for held in solution.placement]


def _bars(together: list[float]) -> Bars:
    busiest = sorted(range(len(together)), key=lambda place: (-together[place], place))[:MOST_INSTANCES]
    bars = tuple(
        Bar(f"instance {place}", (Segment(CO_ACTIVATIONS, together[place]),), f"{together[place]:,.6g}")
        for place in sorted(busiest)
    )
    cut = "" if len(together) <= MOST_INSTANCES else f", the {MOST_INSTANCES} busiest of {len(together)} instances"
    return Bars(f"activated together{cut}", bars, CO_ACTIVATIONS, (CO_ACTIVATIONS,))


def _instances(problem: PlacementProblem, solution: PlacementSolution, together: list[float]) -> Table:
    """Load counts an expert's tokens as shared evenly by its copies."""
    share = np.array(problem.expert_load) / np.maximum(1, solution.replicas)
    loads = [float(share[list(held)].sum()) for held in solution.placement]
    mean = sum(loads) / len(loads)
    rows = tuple(
        (
            str(place),
            f"{len(held)} of {problem.slots_per_instance}",
            f"{load:,.6g}",
            f"{load / mean:.3f}" if mean else "-",
            f"{pairs:,.6g}",
            ", ".join(map(str, held[:MOST_NAMED])) + (", ..." if len(held) > MOST_NAMED else ""),
        )
        for place, (held, load, pairs) in enumerate(zip(solution.placement, loads, together, strict=True))
    )
    more = len(rows) - MOST_INSTANCES
    title = "instances" if more <= 0 else f"instances, the first {MOST_INSTANCES} of {len(rows)}"
    return Table(title, ("instance", "slots", "load", "of mean", "together", "experts"), rows[:MOST_INSTANCES])


def _copies(problem: PlacementProblem, solution: PlacementSolution) -> tuple[Table, ...]:
    copied = [expert for expert, copies in enumerate(solution.replicas) if copies > 1]
    if not copied:
        return ()
    ordered = sorted(copied, key=lambda expert: (-solution.replicas[expert], expert))
    rows = tuple(
        (
            str(expert),
            str(solution.replicas[expert]),
            f"{problem.expert_load[expert]:,.6g}",
            ", ".join(str(place) for place, held in enumerate(solution.placement) if expert in held),
        )
        for expert in ordered[:MOST_EXPERTS]
    )
    cut = "" if len(copied) <= MOST_EXPERTS else f", the first {MOST_EXPERTS} of {len(copied)}"
    return (Table(f"experts with copies{cut}", ("expert", "copies", "load", "on instances"), rows),)


def _batches(problem: PlacementProblem, solution: PlacementSolution) -> tuple[Table, ...]:
    if not solution.a_max_per_batch:
        return ()
    rows = []
    for place, (batch, largest) in enumerate(zip(problem.batches, solution.a_max_per_batch, strict=True)):
        active = len({expert for token in batch for expert in token})
        even = -(-active // problem.expert_instances)
        rows.append((str(place), str(len(batch)), str(active), str(largest), str(even)))
    more = len(rows) - MOST_BATCHES
    title = "batches" if more <= 0 else f"batches, the first {MOST_BATCHES} of {len(rows)}"
    return (Table(title, ("batch", "tokens", "active experts", "a_max", "if even"), tuple(rows[:MOST_BATCHES])),)
