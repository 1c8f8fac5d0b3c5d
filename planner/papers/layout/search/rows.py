"""The cost table as arrays: for each combination the row of each kind of layer."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.rules import needed_kinds
from planner.papers.layout.search.combinations import AXES, Bools, Floats, Inner, Ints
from planner.papers.layout.search.rank_kinds import KINDS
from planner.papers.layout.table import Key, Row

HEAD = KINDS.index("head")
_WITHOUT_EXPERTS = tuple(AXES.index(name) for name in ("ep", "etp"))


@dataclass(frozen=True)
class Priced:
    """The rows of combinations [kind of ``Rows.kinds``, combination]; names, units, meaning are those of ``Row``."""

    forward_s: Floats
    backward_s: Floats
    comm_forward_s: Floats
    comm_backward_s: Floats
    selective_s: Floats
    params: Floats
    expert_params: Floats
    kept_bytes: Floats
    selective_bytes: Floats
    input_bytes: Floats
    workspace_bytes: Floats


_COLUMNS = tuple(field.name for field in fields(Priced))


@dataclass(frozen=True)
class Rows:
    """Of each kind that the model has its rows, and where the row of a combination of AXES is, -1 for nowhere."""

    kinds: tuple[int, ...]
    """Places in KINDS, ascending."""
    columns: dict[int, Floats]
    places: dict[int, Ints]
    shape: tuple[int, ...]
    tied: bool

    @property
    def recomputed(self) -> Bools:
        """Which kinds are run again by recomputation, [kind, 1]: the ends never are."""
        return np.array([KINDS[kind] in ("dense", "moe") for kind in self.kinds])[:, None]

    def missing(self, inner: Inner) -> Bools:
        """Of which combinations the table lacks a kind of layer."""
        lacks = np.zeros(inner.size, dtype=bool)
        for kind in self.places:
            lacks |= self._of(inner, kind) < 0
        return lacks

    def missing_keys(self, inner: Inner) -> set[Key]:
        """The keys of rows that combinations need and the table lacks."""
        found: set[Key] = set()
        for kind in self.places:
            lacks = inner.only(self._of(inner, kind) < 0)
            experts = KINDS[kind] == "moe"
            degrees = (lacks.tp, lacks.cp, lacks.sequence_parallel, lacks.micro_batch)
            columns = [each.tolist() for each in (*degrees, lacks.ep * experts, lacks.etp * experts)]
            found.update((KINDS[kind], *key) for key in zip(*columns, strict=True))
        return found

    def priced(self, inner: Inner, pp: int) -> Priced:
        """The rows of combinations, none of them missing.

        Where both ends share one matrix on one rank, the head has no parameters of its own.
        """
        found = np.stack([self.columns[kind][:, self._of(inner, kind)] for kind in self.kinds], axis=1)
        if self.tied and pp == 1:
            for column in ("params", "expert_params"):
                found[_COLUMNS.index(column), self.kinds.index(HEAD)] = 0.0
        return Priced(*found)

    def _of(self, inner: Inner, kind: int) -> Ints:
        places = self.places[kind]
        at = np.unravel_index(inner.place, self.shape)
        found = places[tuple(at[axis] if size > 1 else 0 for axis, size in enumerate(places.shape))]
        return np.broadcast_to(found, inner.size)


def rows_of(problem: LayoutProblem) -> Rows:
    """The table of a problem, of what its search lists name."""
    lists = [getattr(problem.search, name) for name in AXES]
    seats = [{value: seat for seat, value in enumerate(values)} for values in lists]
    shape = tuple(len(values) for values in lists)
    wanted = needed_kinds(problem)
    found: dict[str, list[tuple[tuple[int, ...], Row]]] = {name: [] for name in KINDS if name in wanted}
    # By key, as this is the one loop over a table of many thousand rows.
    for key, row in problem.costs.by_key.items():
        if key[0] in found and (seat := _seat(key, seats)) is not None:
            found[key[0]].append((seat, row))
    columns, places = {}, {}
    for name, rows in found.items():
        own = tuple(1 if name != "moe" and axis in _WITHOUT_EXPERTS else size for axis, size in enumerate(shape))
        place = np.full(own, -1, dtype=np.int64)
        place[tuple(np.array([seat for seat, _ in rows], dtype=np.int64).reshape(-1, len(AXES)).T)] = range(len(rows))
        values = [[getattr(row, column) for column in _COLUMNS] for _, row in rows]
        kind = KINDS.index(name)
        columns[kind] = np.array(values, dtype=np.float64).reshape(-1, len(_COLUMNS)).T.copy()
        places[kind] = place
    return Rows(tuple(columns), columns, places, shape, problem.model.tied_embeddings)


def _seat(key: Key, seats: list[dict[int, int]]) -> tuple[int, ...] | None:
    """Where in the lists the row's degrees stand; None where one of them is not searched."""
    kind, *degrees = key
    t, c, s, b, e, u = degrees
    tp, cp, ep, etp, micro_batch, sp = seats
    try:
        experts = (ep[e], etp[u]) if kind == "moe" else (0, 0)
        return (tp[t], cp[c], *experts, micro_batch[b], sp[s])
    except KeyError:
        return None
