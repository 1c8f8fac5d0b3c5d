"""What fills the fullest attention instance."""

from __future__ import annotations

from planner.papers.janus.presentation import memory
from planner.papers.janus.problem import JanusProblem
from planner.papers.janus.solution import JanusSolution
from planner.units import in_bytes
from planner.view import Table


def memory_tables(problem: JanusProblem, solution: JanusSolution) -> tuple[Table, ...]:
    """Bytes by cause; none where memory is unlimited."""
    rows = memory(problem, solution)
    if not rows:
        return ()
    cells = tuple((row.cause, in_bytes(row.bytes), f"{row.bytes / row.capacity_bytes:.1%}") for row in rows)
    return (Table(f"memory of the fullest {rows[0].where}", ("cause", "bytes", "of capacity"), cells),)
