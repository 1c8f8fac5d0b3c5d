"""A layer's placement without replicas: several starts, each dimension, swaps until none helps."""

from __future__ import annotations

from dataclasses import dataclass

from planner.papers.hiermoe.balance import longest_first
from planner.papers.hiermoe.exchange.loads import expert_loads
from planner.papers.hiermoe.exchange.tables import ascending, moved_count, swaps_between
from planner.papers.hiermoe.exchange.time import TIE, best_dimension, layer_objective
from planner.papers.hiermoe.instance import Case, LayerCase, Table, Tokens, Uniform, contiguous
from planner.papers.hiermoe.swaps.descent import Walk, best_plain, descend, first_swaps, polish
from planner.papers.hiermoe.swaps.homing import back_within, come_home
from planner.papers.hiermoe.swaps.moving_placement import MovingPlacement
from planner.papers.hiermoe.swaps.renaming import least_moved
from planner.papers.hiermoe.swaps.together import together
from planner.papers.hiermoe.swaps.token_index import TokenIndex

PER_EXPERT = 4
"""Swaps of one walk, times E, where the problem states no number."""
THOROUGH = 2**25
"""Up to this many experts of tokens, times E, every start is followed; above, the one that looks best."""
EVERY_DIMENSION = 2**20
"""Up to this many each dimension is searched, however bad its starts look."""
FIRST = 6
"""In layers as small, under a move budget, twice so many swaps are each tried as the first one."""
HOPELESS = 1.15
"""In larger ones, not those whose best start is so much worse than the best start of all."""


@dataclass(frozen=True, eq=False)
class Placed:
    """One layer's decision: ``swaps`` of experts lead to the table from the current placement, slots of a rank aside.

    ``swap_optimal``: no swap lowers the objective at this dimension. ``within_load_limit`` is false if no placement
    within ``max_load_ratio`` was met.
    """

    table: Table
    dimension: int
    objective_s: float
    moved: int
    swaps: tuple[tuple[int, int], ...]
    swap_optimal: bool
    within_load_limit: bool


@dataclass(frozen=True, eq=False)
class Walker:
    """What the walks of one layer share: the layer, its tokens by expert, and how many swaps a walk may make."""

    case: Case
    layer: LayerCase
    index: TokenIndex | None
    max_swaps: int
    effort: float

    def at(self, table: Table, d: int) -> MovingPlacement:
        """A placement to walk from."""
        return MovingPlacement(self.case, self.layer, self.index, table, d)

    def walk(self, max_moved: int | None = None) -> Walk:
        """A fresh budget."""
        return Walk(self.max_swaps, max_moved)


def walker(case: Case, layer: LayerCase, effort: float = 1.0) -> Walker:
    """For one layer; ``effort`` multiplies the number of swaps unless the problem states it."""
    index = TokenIndex(layer.routed, case.E) if isinstance(layer.routed, Tokens) else None
    stated = case.problem.search.max_swaps
    return Walker(case, layer, index, round(effort * PER_EXPERT * case.E) if stated is None else stated, effort)


def place_layer(case: Case, layer: LayerCase, *, max_moved: int | None = None, effort: float = 1.0) -> Placed:
    """The best placement met for one layer, no replicas; at most ``max_moved`` experts come to another rank.

    Of equal ones the one that moves fewest experts, then the lexicographically smallest table. It is the current one
    unless the gain is at least ``min_relative_gain``. ``effort`` multiplies the number of swaps a walk may make.
    """
    current = ascending(layer.current, case.G)
    dimension, objective_s = best_dimension(case, layer, current)
    if isinstance(layer.routed, Uniform):
        return Placed(current, dimension, objective_s, 0, (), True, True)
    by = walker(case, layer, effort)
    stay = by.at(current, dimension)
    found = stay if max_moved == 0 else best_of_starts(by, stay)
    if max_moved is not None and found.moved > max_moved:
        found = _within(by, stay, found, max_moved)
    gain = case.problem.search.min_relative_gain
    return _placed(by, found if found.plain <= stay.plain * (1 - max(gain, TIE)) else stay)


def best_of_starts(by: Walker, stay: MovingPlacement) -> MovingPlacement:
    """The best of the walks from the starts, in each dimension, with no limit on moves; or ``stay``."""
    case, best = by.case, stay
    starts = _starts(by)
    work = _work(by)
    followed = len(starts) if work <= THOROUGH * by.effort else 1
    fronts = [sorted((by.at(table, d) for table in starts), key=lambda start: start.smooth) for d in case.dimensions]
    least = min(start.plain for front in fronts for start in front)
    for front in sorted(fronts, key=lambda front: min(start.plain for start in front)):
        hopeless = min(start.plain for start in front) > HOPELESS * least
        if hopeless and work > EVERY_DIMENSION * by.effort:
            continue
        for start in front[:followed]:
            walk = by.walk()
            descend(start, walk)
            best = min(best, settled(by, start, walk), key=_preference)
    return best


def settled(by: Walker, placement: MovingPlacement, walk: Walk) -> MovingPlacement:
    """The same for fewer moves and at its best dimension: groups renamed, experts returned where that costs nothing."""
    case = by.case
    for _ in range(8):
        table = placement.table()
        renamed = least_moved(by.layer.current, table, case.U[: placement.d], case.G)
        d, _ = best_dimension(case, by.layer, renamed)
        if d != placement.d or moved_count(by.layer.current, renamed, case.G) < placement.moved:
            placement = by.at(renamed, d)
        before = len(walk.done)
        come_home(placement)
        polish(placement, walk)
        if len(walk.done) == before and best_dimension(case, by.layer, placement.table())[0] == placement.d:
            break
    return placement


def _within(by: Walker, stay: MovingPlacement, found: MovingPlacement, max_moved: int) -> MovingPlacement:
    """The best of the ways to a move budget: back from the best placement met, and on from the current one."""
    best, case = stay, by.case
    far = found.table()
    small = _work(by) <= THOROUGH * by.effort
    for d in case.dimensions if small else (found.d,):
        back, on = by.at(far, d), by.at(by.layer.current, d)
        back_within(back, Walk(case.E), max_moved)
        ways = [(back, descend), (on, descend)]
        if small:
            ways += [(by.at(back.table(), d), polish), (by.at(by.layer.current, d), polish)]
        if _work(by) <= EVERY_DIMENSION * by.effort:
            walk = by.walk(max_moved)
            for pair in first_swaps(on, walk.allowed(on), FIRST):
                ways.append((by.at(by.layer.current, d), descend))
                ways[-1][0].swap(*pair)
        for start, improve in ways:
            walk = by.walk(max_moved)
            improve(start, walk)
            if start.plain > best.plain * (1 + TIE):
                continue
            best = min(best, settled(by, start, walk), key=_preference)
    return best


def _work(by: Walker) -> int:
    """Experts of tokens, times E: what a walk takes, about."""
    return by.case.E if by.index is None else by.case.E * by.index.experts.size


def _starts(by: Walker) -> list[Table]:
    case, layer = by.case, by.layer
    tables = {
        "current": layer.current,
        "contiguous": contiguous(case.E, case.P),
        "balanced": longest_first(expert_loads(case, layer), case.G),
    }
    if isinstance(layer.routed, Tokens):
        tables["together"] = together(case, layer.routed)
    wanted = [ascending(tables[name], case.G) for name in case.problem.search.starts if name in tables]
    return list({table.tobytes(): table for table in wanted or [layer.current]}.values())


def _preference(placement: MovingPlacement) -> tuple[float, int, list[int]]:
    # Sums of the same counts differ in the last digits from one walk to another.
    return float(f"{placement.plain:.11e}"), placement.moved, placement.table().tolist()


def _placed(by: Walker, found: MovingPlacement) -> Placed:
    table, case, layer = found.table(), by.case, by.layer
    within = found.within_limit
    found.unlimited()
    return Placed(
        table,
        found.d,
        layer_objective(case, layer, table, found.d),
        found.moved,
        tuple(swaps_between(ascending(layer.current, case.G), table, case.G)),
        best_plain(found, None) is None,
        within,
    )
