"""FinDEP: what the paper's own search loses to the scan of the whole box, with real and with whole tokens (``ceil``).

Valleys: problems whose D, at the best m_a, r1 and order, falls again in r2 after it has risen.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
from layer_costs import random_problem

from planner.papers.findep.closed_form import replayed_s
from planner.papers.findep.paper_search import paper_search
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.scan import scan
from planner.papers.findep.space import TIE, Decision, most_chunks
from planner.papers.findep.times import task_times

SEEDS = range(150)
BOXES = ((4, 4, 16), (64, 8, 64))
LAYERS = 60


def main(smoke: bool) -> None:
    """Print losses and the time of both."""
    seeds = SEEDS[:4] if smoke else SEEDS
    print(
        f"{'box':12s} {'tokens':7s} {'n':>3s} {'valleys':>7s} {'lost':>5s} {'mean':>8s} {'worst':>8s} "
        f"{'paper ms':>8s} {'scan ms':>8s}"
    )
    for box in BOXES[:1] if smoke else BOXES:
        for rounding in ("real", "ceil"):
            rows = [_measure(random_problem("paper", seed, LAYERS, box, rounding)) for seed in seeds]
            losses, valleys = [row[0] for row in rows], sum(row[3] for row in rows)
            lost = sum(loss > TIE for loss in losses)
            paper_ms, scan_ms = (1e3 * statistics.median(row[place] for row in rows) for place in (1, 2))
            print(
                f"{'x'.join(map(str, box)):12s} {rounding:7s} {len(rows):3d} {valleys:7d} {lost:5d} "
                f"{statistics.mean(losses):8.1e} {max(losses):8.1e} {paper_ms:8.1f} {scan_ms:8.1f}",
                flush=True,
            )


def _measure(problem: FindepProblem) -> tuple[float, float, float, bool]:
    """How much the paper's search loses, relatively, the seconds of it and of the scan, whether there are valleys."""
    start = time.perf_counter()
    found = paper_search(problem)
    between = time.perf_counter()
    best = scan(problem).best
    if best is None:
        raise ValueError("a problem without limits has a plan")
    scan_s = time.perf_counter() - between
    return best.objective / found.objective - 1, between - start, scan_s, _has_valleys(problem, best)


def _has_valleys(problem: FindepProblem, best: Decision) -> bool:
    r2 = np.arange(1, most_chunks(problem, best.m_a) + 1)
    times = task_times(problem, problem.splits[best.split], best.m_a, r2)
    makespan_s = replayed_s(times, problem.num_layers, best.r1, r2, best.order)
    steps = np.diff(makespan_s)
    rises = np.flatnonzero(steps > TIE * makespan_s[1:])
    return bool(len(rises) and (steps[rises[0] :] < -TIE * makespan_s[1:][rises[0] :]).any())
