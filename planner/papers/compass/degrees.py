"""Legal degrees (page, section 3.4): equal chunks of whole multiples, found in O(sqrt E)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from planner.papers.compass.problem import Operator, Rules

_FEW = 128
"""Trial divisors so few are tried one by one."""


@lru_cache(maxsize=32768)
def divisors(number: int, most: int) -> tuple[int, ...]:
    """All d with 2 <= d <= most that divide ``number``, ascending."""
    root = math.isqrt(number)
    if most <= root:
        return _dividing(number, most)
    small = _dividing(number, root)
    large = [number // d for d in (1, *small)]
    return small + tuple(d for d in reversed(large) if d > root and 2 <= d <= most)


def _dividing(number: int, last: int) -> tuple[int, ...]:
    """The divisors from 2 to ``last``."""
    if last <= _FEW:
        return tuple(d for d in range(2, last + 1) if number % d == 0)
    tried = np.arange(2, last + 1)
    return tuple(tried[number % tried == 0].tolist())


def legal_degrees(operator: Operator) -> tuple[int, ...]:
    """D, ascending; empty where the multiple does not divide the extent."""
    multiples, rest = divmod(operator.split_extent, operator.split_multiple)
    return () if rest else divisors(multiples, operator.max_degree)


def launched_degrees(operator: Operator, rules: Rules) -> tuple[int, ...]:
    """D of what the launcher can start (page, section 3.6): ring_exchange takes p shards, or p/2 steps of two."""
    if rules == "none" or operator.op == "gemm_rs":
        return legal_degrees(operator)
    if operator.op != "ag_gemm" or operator.tp_size is None:
        return ()
    p = operator.tp_size
    steps = (p // 2, p) if p % 2 == 0 else (p,)
    return tuple(d for d in steps if operator.is_legal(d))
