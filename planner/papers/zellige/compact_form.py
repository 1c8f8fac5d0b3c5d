"""The exact compact form (8)-(9) as a CP-SAT model, in the page's letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from planner.papers.zellige.instance import Instance, Piece, Placement
from planner.papers.zellige.integers import Grid
from planner.papers.zellige.symmetry import interchangeable


@dataclass(frozen=True)
class CompactForm:
    """The model and its variables. ``u[piece]`` counts sequences of a kind in a mode on a rank set B.

    ``L`` and ``H`` are load and memory of each rank in grid steps, ``T`` and ``M`` their limits, ``K`` the splits.
    """

    model: cp_model.CpModel
    u: dict[Piece, cp_model.IntVar]
    L: list[cp_model.LinearExpr]
    T: cp_model.IntVar
    M: cp_model.IntVar
    K: cp_model.LinearExpr

    def hint(self, placement: Placement) -> None:
        """Start from a placement (counts it lacks are 0)."""
        for piece, variable in self.u.items():
            self.model.add_hint(variable, placement.get(piece, 0))

    def placement(self, values: Sequence[int]) -> dict[Piece, int]:
        """Read a placement from the values of ``u`` in order."""
        return {piece: value for piece, value in zip(self.u, values, strict=True) if value}


def compact_form(instance: Instance, grid: Grid, T_range: tuple[int, int]) -> CompactForm:
    """(8)-(9): every sequence placed, L_r <= T with T in a range of steps, H_r <= M <= M_cap."""
    model = cp_model.CpModel()
    N = instance.num_ranks
    T = model.new_int_var(*T_range, "T")
    M = model.new_int_var(0, grid.cap, "M")
    u: dict[Piece, cp_model.IntVar] = {}
    on_rank: list[list[tuple[cp_model.IntVar, int, int]]] = [[] for _ in range(N)]
    splits, work, bytes_ = [], [], []
    for i, kind in enumerate(instance.kinds):
        z_i = []
        for theta in undominated(instance, i):
            mode = kind.modes[theta]
            p, m = grid.p(mode), grid.m(mode)
            most = min(kind.count, T_range[1] // p, grid.cap // m if m else kind.count)
            if not most:
                continue
            sets = instance.blocks[mode.config]
            z = model.new_int_var(0, min(kind.count, most * len(sets)), f"z[{i},{theta}]")
            for B in sets:
                variable = u[Piece(i, theta, B)] = model.new_int_var(0, most, f"u[{i},{theta},{B[0]}]")
                for r in B:
                    on_rank[r].append((variable, p, m))
            model.add(sum(u[Piece(i, theta, B)] for B in sets) == z)
            z_i.append(z)
            work.append(mode.degree * p * z)
            bytes_.append(mode.degree * m * z)
            if mode.degree > 1:
                splits.append(z)
        model.add(sum(z_i) == kind.count)
    L = [cp_model.LinearExpr.weighted_sum([v for v, _, _ in row], [p for _, p, _ in row]) for row in on_rank]
    H = [cp_model.LinearExpr.weighted_sum([v for v, _, _ in row], [m for _, _, m in row]) for row in on_rank]
    for r in range(N):
        model.add(L[r] <= T)
        model.add(H[r] <= M)
    model.add(sum(work) <= N * T)
    model.add(sum(bytes_) <= N * M)
    for left, right in interchangeable(instance):
        model.add(L[left] >= L[right])
    return CompactForm(model, u, L, T, M, cp_model.LinearExpr.sum(splits))


def undominated(instance: Instance, i: int) -> list[int]:
    """Modes of a kind without those for which another on the same sets has no larger price and memory (4.2)."""
    modes = instance.kinds[i].modes

    def beats(a: int, b: int) -> bool:
        same_sets = instance.blocks[modes[a].config] == instance.blocks[modes[b].config]
        first, second = modes[a][2:], modes[b][2:]
        no_worse = first[0] <= second[0] and first[1] <= second[1]
        return same_sets and no_worse and (first != second or a < b)

    return [b for b in range(len(modes)) if not any(beats(a, b) for a in range(len(modes)) if a != b)]
