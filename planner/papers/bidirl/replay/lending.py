"""When a pool is lent, and when the work is done with its help (page, equations 5 and 6 for a fluid)."""

from __future__ import annotations

from planner.papers.bidirl.replay.setting import Stage, Switch

ROUNDING = 1e-9
"""Of the time or work at hand: a gain or a rest that is smaller is none."""


def lends_train_pool(stage: Stage, switch: Switch, left: float, bulk: float, *, by_cost: bool) -> bool:
    """Whether pool T is lent to the rollout with ``left`` replica-seconds of a ``bulk`` still to do.

    Without ``by_cost`` it is wherever work is left.
    """
    if not stage.helpers:
        return False
    if not by_cost:
        return left > ROUNDING * bulk
    alone_s = left / stage.replicas
    together_s = left / (stage.replicas + stage.helpers)
    return alone_s - together_s > switch.in_s + switch.out_s + ROUNDING * alone_s


def lends_rollout_pool(stage: Stage, switch: Switch, left: float, bulk: float, *, by_cost: bool) -> bool:
    """Whether pool R is lent to the training; there, too, some of the work must be left when the helpers come."""
    rest = left - switch.in_s * stage.replicas
    if not stage.helpers or rest <= ROUNDING * bulk:
        return False
    if not by_cost:
        return True
    alone_s = left / stage.replicas
    together_s = switch.in_s + rest / (stage.replicas + stage.helpers)
    return together_s + switch.out_s + switch.grad_s < alone_s - ROUNDING * alone_s


def helped_end_s(stage: Stage, start_s: float, left: float, helpers_from_s: float) -> float:
    """When ``left`` replica-seconds begun at ``start_s`` are done; the helpers may come too late, or before it."""
    alone_s = max(0.0, helpers_from_s - start_s)
    done = alone_s * stage.replicas
    if left <= done:
        return start_s + left / stage.replicas
    return start_s + alone_s + (left - done) / (stage.replicas + stage.helpers)
