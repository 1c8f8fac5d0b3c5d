"""Whether the problem offers a layout at all: its search lists, the rules, the partition and the cost table."""

from __future__ import annotations

from typing import NamedTuple

from planner.papers.layout.checks.decision import Decision
from planner.papers.layout.checks.rules import broken, partitions
from planner.papers.layout.checks.stages import rows_of
from planner.papers.layout.problem import LayoutProblem


class Fault(NamedTuple):
    """A code, what is wrong, and the field of the row."""

    code: str
    message: str
    field: str | None


def faults(problem: LayoutProblem, of: Decision) -> list[Fault]:
    """Why a layout is none that the problem offers, memory apart; empty where it is one."""
    return [*_outside(problem, of), *(_partition_faults(problem, of)), *_rules(problem, of), *_unpriced(problem, of)]


def first_rule(problem: LayoutProblem, of: Decision) -> str | None:
    """The first rule that degrees break, whatever the partition, up to ``row_not_in_table``; None where none."""
    for rule in broken(problem, of):
        return rule
    if not partitions(problem.model.num_layers, of.pp, of.vpp, problem.search.partitions):
        return "partition"
    return "row_not_in_table" if isinstance(rows_of(problem, of), str) else None


def _outside(problem: LayoutProblem, of: Decision) -> list[Fault]:
    search, found = problem.search, []
    for name in Decision._fields[:-1]:
        value, listed = getattr(of, name), getattr(search, name)
        if value not in listed:
            shown = ", ".join(str(one).lower() for one in listed[:10])
            message = f"expected one of {shown}, got {str(value).lower()}"
            found.append(Fault("outside_search", message, name))
    return found


def _partition_faults(problem: LayoutProblem, of: Decision) -> list[Fault]:
    layers, stages = problem.model.num_layers, of.pp * of.vpp
    if len(of.partition) != stages:
        message = f"expected {stages} virtual stages, got {len(of.partition)}"
        return [Fault("partition_shape", message, "partition")]
    if sum(of.partition) != layers:
        message = f"expected {layers} layers in all, got {sum(of.partition)}"
        return [Fault("partition_shape", message, "partition")]
    kinds = problem.search.partitions
    offered = partitions(layers, of.pp, of.vpp, kinds)
    if not offered:
        message = f"{' and '.join(kinds)} cut {layers} layers into no {stages} stages"
        return [Fault("rule partition", message, "partition")]
    if of.partition not in offered:
        message = f"{' and '.join(kinds)} give no such partition"
        return [Fault("outside_search", message, "partition")]
    return []


def _rules(problem: LayoutProblem, of: Decision) -> list[Fault]:
    return [Fault(f"rule {name}", f"{of} breaks {name}", None) for name in broken(problem, of)]


def _unpriced(problem: LayoutProblem, of: Decision) -> list[Fault]:
    rows = rows_of(problem, of)
    return [Fault("row_not_in_table", f"the cost table has no row {rows}", None)] if isinstance(rows, str) else []
