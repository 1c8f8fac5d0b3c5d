"""What fills the fullest instance of either side."""

from __future__ import annotations

from planner.paper import MemoryRow
from planner.papers.janus.presentation import by_instance, memory
from planner.papers.janus.problem import JanusProblem
from planner.papers.janus.solution import JanusSolution
from planner.units import in_bytes
from planner.view import Table


def memory_tables(problem: JanusProblem, solution: JanusSolution) -> tuple[Table, ...]:
    """Bytes by cause; none where memory is unlimited."""
    return tuple(_table(rows) for rows in by_instance(memory(problem, solution)))


def _table(rows: list[MemoryRow]) -> Table:
    cells = tuple((row.cause, in_bytes(row.bytes), f"{row.bytes / row.capacity_bytes:.1%}") for row in rows)
    return Table(f"memory of the fullest {rows[0].where}", ("cause", "bytes", "of capacity"), cells)
