"""What a launcher's rules do to the choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.paper import Warned
from planner.papers.compass.calls import Call
from planner.papers.compass.candidates import SEQUENTIAL, candidates
from planner.papers.compass.infeasibility import no_degree
from planner.papers.compass.launcher import switches
from planner.papers.compass.problem import CompassProblem
from planner.papers.compass.warned.names import names


def launcher_warned(problem: CompassProblem, made: Sequence[Call]) -> Iterator[Warned]:
    """switch_partner, ring_by_chunks."""
    if problem.launcher_rules != "none":
        yield from _switch_partner(problem, made)
        yield from _ring_by_chunks(made)


def _switch_partner(problem: CompassProblem, made: Sequence[Call]) -> Iterator[Warned]:
    """Operators in sequence for no other reason than that one under their switch has no time in chunks at all."""
    offered = candidates(problem)
    overlapped = offered.without(offered.kind == SEQUENTIAL).best()
    for switch in switches(problem):
        unable = [made[place].operator for place in switch.tied if overlapped[place] < 0]
        kept = [
            made[place].operator
            for place in switch.all
            if overlapped[place] >= 0 and offered.time_s[overlapped[place]] < made[place].sequential_s
        ]
        if unable and kept:
            why = no_degree(unable[0], problem.launcher_rules)
            if "inter_decom" not in unable[0].allowed_strategies:
                why = "its allowed_strategies leave chunks out"
            yield Warned(
                "switch_partner",
                f"{names(kept)} would be faster in chunks and stays in sequence: {switch.name} overlap is one switch "
                f"with {names(unable)}, which has no time in chunks ({why})",
            )


def _ring_by_chunks(made: Sequence[Call]) -> Iterator[Warned]:
    """ring_exchange has no chunk that fills it, which equation 2 supposes (page, section 3.6)."""
    modelled = [
        call.operator
        for call in made
        if call.operator.op == "ag_gemm"
        and call.choice.strategy == "inter_decom"
        and call.operator.inter_decom_table is None
    ]
    if modelled:
        yield Warned(
            "ring_by_chunks",
            f"{names(modelled)} runs as a ring over its ranks, but is priced as chunks of a library collective: give "
            "inter_decom_table",
        )
