"""What simpler rules give on the same problem (page, section 5): same costs, legal degrees, tables and switches.

Under a launcher's switches a rule that leaves one operator of a flag in sequence leaves all of them so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from planner.paper import Baseline
from planner.papers.compass.candidates import INTER_DECOM, INTRA_FUSION, SEQUENTIAL, Candidates, candidates
from planner.papers.compass.closed_form import Curve, comm_bound, gemm_bound
from planner.papers.compass.explained import solution_of
from planner.papers.compass.launcher import settled, switched_off
from planner.papers.compass.problem import CompassProblem, Operator
from planner.papers.compass.solution import CompassSolution
from planner.papers.compass.times import Ints, Truths, is_comm_bound
from solvers.report import Limits

Found = Baseline[CompassSolution]

PIPELINE_DEFAULT = 4
"""num_splits of TransformerEngine's reduce-scatter pipeline where none is given."""


def baselines(problem: CompassProblem, limits: Limits) -> list[Found]:
    """All baselines in the order of the page."""
    del limits
    offered, nowhere = candidates(problem), [None] * len(problem.operators)
    gated = [_gated_degree(operator) for operator in problem.operators]
    tabled = any(operator.comm is None and operator.inter_decom_table is not None for operator in problem.operators)
    lineless = "; by the table where there are no lines" if tabled else ""
    return [
        _by_degree(problem, offered, "sequential", nowhere, ""),
        _by_degree(
            problem,
            offered,
            "launcher_default",
            [_launcher_degree(operator) for operator in problem.operators],
            f"all-gather in tp_size chunks, reduce-scatter in {PIPELINE_DEFAULT}",
        ),
        _fixed_d(problem, offered),
        _of_kinds(problem, offered, "decompose_only", offered.kind == INTER_DECOM, ""),
        _fuse_only(problem, offered),
        _by_degree(
            problem, offered, "naive_closed_form", _naive_degrees(problem, offered), f"the curve seen at d=1{lineless}"
        ),
        _by_degree(problem, offered, "gated", gated, f"d = tp_size{lineless}"),
    ]


def _by_degree(
    problem: CompassProblem, offered: Candidates, name: str, wanted: Sequence[int | None], note: str
) -> Found:
    """The rule's degree for every operator; in sequence where it names none or one that is not offered."""
    chosen = np.full(len(problem.operators), -1, dtype=np.int64)
    starts, kinds, degrees = offered.starts.tolist(), offered.kind.tolist(), offered.degree.tolist()
    for index, (first, end) in enumerate(pairwise(starts)):
        for place in range(first, end):
            if kinds[place] == SEQUENTIAL or (kinds[place] == INTER_DECOM and degrees[place] == wanted[index]):
                chosen[index] = place
    return _written(problem, offered, name, switched_off(problem, offered, chosen), note)


def _fixed_d(problem: CompassProblem, offered: Candidates) -> Found:
    """The one degree that is best for all operators that allow it."""
    chunks = offered.kind == INTER_DECOM
    best: tuple[float, int, Ints] | None = None
    for degree in np.unique(offered.degree[chunks]).tolist():
        kept = (offered.kind == SEQUENTIAL) | (chunks & (offered.degree == degree))
        chosen = _forced(problem, offered.without(~kept))
        if (chosen >= 0).all() and (best is None or offered.total_s(chosen) < best[0]):
            best = (offered.total_s(chosen), degree, chosen)
    if best is None:
        return _by_degree(problem, offered, "fixed_d", [None] * len(problem.operators), "no degree that all allow")
    return _written(problem, offered, "fixed_d", best[2], f"d={best[1]}")


def _forced(problem: CompassProblem, kept: Candidates) -> Ints:
    """Overlap wherever it is offered, in sequence elsewhere."""
    overlapped, off = kept.without(kept.kind == SEQUENTIAL).best(), kept.best()
    return switched_off(problem, kept, np.where(overlapped >= 0, overlapped, off))


def _of_kinds(problem: CompassProblem, offered: Candidates, name: str, overlap: Truths, note: str) -> Found:
    """The best of some ways to overlap, or in sequence, for every operator."""
    chosen = settled(problem, offered.without(~(overlap | (offered.kind == SEQUENTIAL))))
    return _written(problem, offered, name, chosen, note)


def _fuse_only(problem: CompassProblem, offered: Candidates) -> Found:
    """One family of fused kernels for all, or in sequence."""
    ids = sorted({fused.id for operator in problem.operators for fused in operator.fused})
    found, fused, owner = [], offered.kind == INTRA_FUSION, offered.operator
    of = np.full(len(fused), "", dtype=object)
    for place in np.flatnonzero(fused).tolist():
        of[place] = problem.operators[owner[place]].fused[offered.variant[place]].id
    for identity in ids:
        found.append(_of_kinds(problem, offered, "fuse_only", fused & (of == identity), f"all {identity}"))
    best = [one for one in found if one.objective is not None]
    if best:
        return min(best, key=lambda one: one.objective or 0.0)
    if found:
        return found[0]
    return _by_degree(problem, offered, "fuse_only", [None] * len(problem.operators), "no fused kernel is listed")


def _launcher_degree(operator: Operator) -> int | None:
    if operator.op == "ag_gemm":
        return operator.tp_size
    return PIPELINE_DEFAULT if operator.op == "gemm_rs" else None


def _gated_degree(operator: Operator) -> int | None:
    """The classic gate of decomposition: what can be hidden is worth more than d start-ups of both stages.

    Without stages the table says whether d chunks take longer than the sequence.
    """
    comm, gemm, d = operator.comm, operator.gemm, operator.tp_size
    if d is None:
        return None
    if comm is None or gemm is None:
        return _quicker(operator, d)
    stated = operator.sequential_time_s
    whole_s = comm.startup_s + comm.payload_s + gemm.startup_s + gemm.payload_s if stated is None else stated
    chunked_s = max(comm.payload_s, gemm.payload_s) + d * (comm.startup_s + gemm.startup_s)
    return d if whole_s >= chunked_s else None


def _quicker(operator: Operator, only: int | None = None) -> int | None:
    """The quickest degree of the table, or the one that is asked for, unless the sequence is quicker."""
    alone_s, table = operator.sequential_time_s, operator.inter_decom_table or ()
    quicker = [
        (point.time_s, point.degree)
        for point in table
        if alone_s is not None and point.time_s <= alone_s and only in (None, point.degree)
    ]
    return min(quicker)[1] if quicker else None


def _naive_degrees(problem: CompassProblem, offered: Candidates) -> list[int | None]:
    """What the printed formula alone says: one curve, that of the stage which is slower at d = 1, never the other."""
    by_comm = is_comm_bound(offered.costs, 1)
    first, second = comm_bound(offered.costs), gemm_bound(offered.costs)
    curve = Curve(*(np.where(by_comm, getattr(first, name), getattr(second, name)) for name in "ABC"))
    optimum = curve.optimum().tolist()
    degrees: list[int | None] = []
    for index, operator in enumerate(problem.operators):
        span = slice(offered.starts[index], offered.starts[index + 1])
        legal = offered.degree[span][offered.kind[span] == INTER_DECOM].tolist()
        if operator.comm is None or not legal:
            degrees.append(_quicker(operator) if legal else None)
            continue
        nearest = max(legal) if math.isinf(optimum[index]) else _nearest(legal, optimum[index])
        own = Curve(curve.A[index], curve.B[index], curve.C[index])
        degrees.append(nearest if float(own.at(nearest)) < offered.sequential_s[index] else None)
    return degrees


def _nearest(legal: Sequence[int], wanted: float) -> int:
    return min(legal, key=lambda d: (abs(d - wanted), d))


def _written(problem: CompassProblem, offered: Candidates, name: str, chosen: Ints, note: str) -> Found:
    stuck = [operator.id for operator, place in zip(problem.operators, chosen, strict=True) if place < 0]
    if stuck:
        return Baseline(name, None, f"operator {stuck[0]} may not run in sequence", feasible=False)
    solution = solution_of(problem, offered, chosen, rule=name)
    return Baseline(name, solution.metrics.total_time_s, note, solution)
