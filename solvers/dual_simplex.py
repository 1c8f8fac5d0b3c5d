"""A dual simplex for linear programs whose rows arrive one by one (cuts, branches), in condensed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

MOST_PIVOTS = 400
_FEASIBLE = 1e-9


class Tableau:
    """Condensed: basic = rhs - body @ nonbasic. Labels: variable j >= 0, slack of row f as -1-f, of a branch None."""

    def __init__(self, body: Floats, basic: list[int | None], nonbasic: list[int | None]) -> None:
        self.body = body  # last column: rhs; last row: reduced costs
        self.basic = basic
        self.nonbasic = nonbasic

    @classmethod
    def start(cls, cost: Floats, starts: Indices, n: Floats) -> Tableau:
        """min cost·z with totals n: every kind wholly in its cheapest variable."""
        ends = np.append(starts[1:], len(cost))
        basic: list[int | None] = [
            int(start + np.argmin(cost[start:end])) for start, end in zip(starts, ends, strict=True)
        ]
        chosen = set(basic)
        nonbasic: list[int | None] = [j for j in range(len(cost)) if j not in chosen]
        body = np.zeros((len(basic) + 1, len(nonbasic) + 1))
        kind = np.searchsorted(starts, np.array(nonbasic, dtype=np.intp), side="right") - 1
        body[kind, np.arange(len(nonbasic))] = 1.0
        body[:-1, -1] = n
        if nonbasic:
            picked = np.array(basic, dtype=np.intp)
            body[-1, :-1] = cost[np.array(nonbasic, dtype=np.intp)] - cost[picked[kind]]
        return cls(body, basic, nonbasic)

    def solution(self, variables: int) -> Floats:
        """z at the basis."""
        z = np.zeros(variables)
        for row, label in enumerate(self.basic):
            if label is not None and label >= 0:
                z[label] = self.body[row, -1]
        return z

    def reoptimise(self) -> int | None:
        """Dual simplex: -1 when feasible, the row that refutes, or None when it does not settle."""
        body = self.body
        for _ in range(MOST_PIVOTS):
            row = int(np.argmin(body[:-1, -1])) if len(body) > 1 else -1
            if body[row, -1] >= -_FEASIBLE:
                return -1
            line = body[row, :-1]
            usable = line < -1e-9
            if not usable.any():
                return row
            ratio = np.where(usable, body[-1, :-1] / np.where(usable, -line, 1.0), np.inf)
            least = ratio.min()
            # Of equal ratios the largest pivot: steadier, and it leaves degenerate corners.
            column = int(np.argmax(np.where(ratio <= least + 1e-12, -line, -np.inf)))
            self._pivot(row, column)
        return None

    def _pivot(self, row: int, column: int) -> None:
        body = self.body
        pivot = body[row, column]
        line = body[row] / pivot
        line[column] = 1.0 / pivot
        col = body[:, column].copy()
        col[row] = 0.0
        body[:, column] = 0.0
        body -= np.outer(col, line)
        body[row] = line
        self.basic[row], self.nonbasic[column] = self.nonbasic[column], self.basic[row]

    def add_row(self, f: int, a: Floats, limit: float) -> None:
        """Append A_f z + slack = b_f, written in the nonbasic variables."""
        line = np.zeros(self.body.shape[1])
        line[-1] = limit
        for column, label in enumerate(self.nonbasic):
            if label is not None and label >= 0:
                line[column] = a[label]
        for row, label in enumerate(self.basic):
            if label is not None and label >= 0 and a[label]:
                line -= a[label] * self.body[row]
        self._append(line, -1 - f)

    def branch(self, j: int, value: float, *, up: bool) -> Tableau:
        """A copy with z_j >= value (up) or z_j <= value."""
        row = self.basic.index(j)
        line = self.body[row].copy()
        line[-1] -= value
        child = Tableau(self.body, list(self.basic), list(self.nonbasic))
        child._append(line if up else -line, None)
        return child

    def _append(self, line: Floats, label: int | None) -> None:
        self.body = np.vstack((self.body[:-1], line, self.body[-1:]))
        self.basic.append(label)

    def multipliers(self, row: int, rows: int) -> Floats:
        """y >= 0 over the problem's rows whose sum this infeasible tableau row is."""
        y = np.zeros(rows)
        for label, value in zip(self.nonbasic, self.body[row, :-1], strict=True):
            if label is not None and label < 0:
                y[-1 - label] = max(0.0, value)
        label = self.basic[row]
        if label is not None and label < 0:
            y[-1 - label] += 1.0
        return y
