"""Whether integers can share out counts under many rows: z >= 0, Σ_{j in kind i} z_j = n_i, A z <= b.

Branch and bound on a dual simplex with rows added as they are violated. The floating-point simplex only proposes:
every exclusion is re-proved from multipliers y >= 0 by summing one row y·A over the node's box, so an error can
weaken the answer but never make it wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.dual_simplex import MOST_PIVOTS, Floats, Indices, Tableau

_MARGIN = 1e-9
_VIOLATED = 1e-7
_INTEGRAL = 1e-6


@dataclass
class Counting:
    """Rows ``A`` [rows, variables] >= 0 with limits ``b`` > 0; ``starts[i]`` is the first variable of kind i.

    Variables of a kind are contiguous; ``n`` are the kinds' totals. ``witness`` holds integers that satisfy all rows,
    within rounding, when the search met some.
    """

    A: Floats
    b: Floats
    starts: Indices
    n: Floats

    def __post_init__(self) -> None:
        self.ends = np.append(self.starts[1:], self.A.shape[1])
        self.nodes = 0
        self.witness: Floats | None = None

    def is_impossible(self, max_nodes: int) -> bool:
        """True if proved that no integers exist; False if some do or the budget ends first. Deterministic."""
        self.nodes = 0
        variables = self.A.shape[1]
        upper = np.repeat(self.n, self.ends - self.starts)
        open_nodes = [(Tableau.start(self.A[0], self.starts, self.n), np.zeros(variables), upper)]
        while open_nodes:
            tableau, low, high = open_nodes.pop()
            self.nodes += 1
            if self.nodes > max_nodes:
                return False
            refuted = self._relax(tableau, low, high)
            if refuted is None:
                return False
            if refuted:
                continue
            z = tableau.solution(variables)
            away = np.abs(z - np.rint(z))
            if away.max() < _INTEGRAL:
                self.witness = np.rint(z)
                return False
            j = int(np.argmax(np.where(away < _INTEGRAL, 0.0, away * self.A[0])))
            floor = float(np.floor(z[j]))
            up, raised = tableau.branch(j, floor + 1, up=True), low.copy()
            raised[j] = floor + 1
            down, lowered = tableau.branch(j, floor, up=False), high.copy()
            lowered[j] = floor
            children = [(up, raised, high), (down, low, lowered)]
            open_nodes += children if z[j] - floor < 0.5 else children[::-1]
        return True

    def _relax(self, tableau: Tableau, low: Floats, high: Floats) -> bool | None:
        """Solve the node's relaxation. True: refuted with proof; False: solved; None: gave up."""
        for _ in range(MOST_PIVOTS):
            dead = tableau.reoptimise()
            if dead is None:
                return None
            if dead >= 0:
                return True if self._proves(tableau.multipliers(dead, len(self.b)), low, high) else None
            z = tableau.solution(self.A.shape[1])
            excess = (self.A @ z - self.b) / self.b
            worst = int(np.argmax(excess))
            if excess[worst] <= _VIOLATED:
                return False
            tableau.add_row(worst, self.A[worst], float(self.b[worst]))
        return None

    def _proves(self, y: Floats, low: Floats, high: Floats) -> bool:
        """Whether Σ y_f (A_f z) exceeds Σ y_f b_f for every z of the box with the right totals."""
        cost, limit = y @ self.A, float(y @ self.b)
        least = float(cost @ low)
        for start, end, count in zip(self.starts, self.ends, self.n, strict=True):
            rest = count - float(low[start:end].sum())
            if rest < 0:
                return True
            for j in start + np.argsort(cost[start:end], kind="stable"):
                take = min(rest, high[j] - low[j])
                least += cost[j] * take
                rest -= take
                if rest <= 0:
                    break
            if rest > 0:
                return True
        return least > limit * (1 + _MARGIN)
