"""The tile of what is cut: the stated one, else the largest that leaves a degree."""

from __future__ import annotations

import math

from planner.papers.compass.degrees import divisors
from planner.papers.compass.derived import Derive

TILES = (128, 64, 32, 16, 8, 4, 2, 1)
"""GEMM tiles by preference; a launcher needs none, but chunks below a tile leave part of it idle."""


def tile_of(given: Derive, extent: int, ring: int | None, among: int = 1) -> int:
    """e: of the tiles that divide an extent the largest with a legal degree (a ring: with both of its own).

    The largest of all where none leaves one.

    Chunks are whole multiples of ``among`` too, the ranks that share their rows. ``ring``: see `degrees_of`.
    """
    if given.split_multiple is not None:
        return math.lcm(given.split_multiple, among)
    fitting = [tile for tile in (math.lcm(tile, among) for tile in TILES) if extent % tile == 0]
    left = {tile: len(degrees_of(extent, tile, given.max_degree, ring)) for tile in fitting}
    if not any(left.values()):
        return fitting[0] if fitting else among
    # A ring has two degrees, of which each may be the better one.
    enough = 1 if ring is None else max(left.values())
    return next(tile for tile, number in left.items() if number >= enough)


def degrees_of(extent: int, multiple: int, most: int, ring: int | None) -> tuple[int, ...]:
    """Legal degrees, ascending; over a ring of so many ranks only one or two shards a step (page, section 3.6)."""
    multiples, rest = divmod(extent, multiple)
    found = () if rest else divisors(multiples, most)
    return found if ring is None else tuple(d for d in found if ring in (d, 2 * d))
