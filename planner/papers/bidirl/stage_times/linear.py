"""M = alpha + q beta / d + gamma L."""

from __future__ import annotations

from planner.papers.bidirl.problem import Linear
from planner.papers.bidirl.stage_times.work import Floats, Ints, Work


def taken_s(time: Linear, work: Work, parts: Ints, replicas: Ints) -> Floats:
    """Seconds of so many parts on so many replicas, broadcast."""
    return fixed_s(time) + time.beta_s * (parts / work.whole) / replicas + tail_s(time, work)


def relaxed_s(time: Linear, work: Work, replicas: Floats) -> Floats:
    """Seconds of a whole batch on a real number of replicas."""
    return fixed_s(time) + time.beta_s / replicas + tail_s(time, work)


def fixed_s(time: Linear) -> float:
    """Start-up, alpha."""
    return time.alpha_s


def tail_s(time: Linear, work: Work) -> float:
    """Of the longest response, gamma L."""
    return time.gamma_s_per_token * work.longest_tokens
