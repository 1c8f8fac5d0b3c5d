"""The paper's own method (page 4.1 to 4.3): CP-SAT places the anchors, the headroom rule fills in the rest."""

from __future__ import annotations

import numpy as np

from planner.papers.zellige.fast import log_price_cut
from planner.papers.zellige.fillers import Rule, pack_fillers
from planner.papers.zellige.formulation import anchors
from planner.papers.zellige.instance import Instance, Piece, Placement, loads
from solvers import cpsat
from solvers.report import Limits, Report, Status


def solve_two_stage(instance: Instance, limits: Limits, epsilon: float) -> tuple[Placement, Report]:
    """Stage 1 (a) and (b) with slack ``epsilon``, then stage 2; a filler kind without memory becomes an anchor.

    The report carries no bound: stage 1 proves nothing about the whole. Raises InfeasibleError and LimitError.
    """
    kinds = instance.kinds
    fillers = {kind: whole for kind in range(log_price_cut(instance)) if (whole := kinds[kind].whole) is not None}
    while True:
        placed: dict[Piece, int] = {}
        promoted = [kind for kind in range(len(kinds)) if kind not in fillers]
        if promoted:
            placed, _ = anchors(instance, promoted, limits, epsilon)
        filled, left = pack_fillers(instance, fillers, np.array(loads(instance, placed)), rule=Rule.HEADROOM)
        if not left:
            placed |= filled
            break
        del fillers[max(left)]
    makespan_s = max(loads(instance, placed)[0])
    return placed, Report(Status.FEASIBLE, cpsat.ENGINE, "two_stage", cpsat.engine_version(), makespan_s)
