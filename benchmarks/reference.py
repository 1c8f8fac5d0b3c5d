"""The fast engine against the joint reference (CP-SAT, hinted by it), and the paper's two-stage method beside both."""

from __future__ import annotations

import time

import mixes

from planner.papers.zellige import formulation
from planner.papers.zellige.engines import fast, two_stage
from planner.papers.zellige.instance import compile_instance
from planner.papers.zellige.longest_first import pure_dp
from solvers.report import Limits

EFFORT = 1.0
"""20 units of deterministic time for the makespan, about a minute of one core."""


def main(smoke: bool) -> None:
    """Print makespans over the reference's and the reference's own certified gap."""
    print(f"{'instance':36s} {'fast/ref-1':>11s} {'2stage/ref-1':>12s} {'ref gap':>8s} {'ref s':>7s} {'2stage ms':>9s}")
    cases = [(16, 350_000, v, 0) for v in mixes.VIDEO_SHARES_PERCENT] + [(32, 350_000, v, 1) for v in (35, 50)]
    cases += [(32, 125_000, 60, 0), (32, 350_000, 90, 0)]
    for ranks, load, share, seed in cases[:1] if smoke else cases:
        limits = Limits(effort=0.01 if smoke else EFFORT)
        instance = compile_instance(mixes.mix_problem(mixes.standard_mix(ranks, load, share, seed), ranks))
        hint, found = fast(instance, Limits())
        start = time.perf_counter()
        _, best = formulation.reference(instance, limits, hint)
        reference_s = time.perf_counter() - start
        start = time.perf_counter()
        _, staged = two_stage(instance, Limits(effort=0.01 if smoke else 0.1))
        staged_ms = (time.perf_counter() - start) * 1e3
        print(
            f"{f'N={ranks} {load // 1000}K V{share} seed {seed}':36s} {found.objective / best.objective - 1:11.4%} "
            f"{staged.objective / best.objective - 1:12.4%} {best.objective / (best.bound or 0) - 1:8.3%} "
            f"{reference_s:7.1f} {staged_ms:9.0f}",
            flush=True,
        )
    _needs_no_split()


def _needs_no_split() -> None:
    """Where nothing needs a split, plain longest-first is nearly perfect; the plan must not lose to it."""
    mix = {1024: 900, 2304: 700, 4096: 500}
    instance = compile_instance(mixes.mix_problem(mix, 32))
    longest_first = pure_dp(instance)
    _, found = fast(instance, Limits())
    print(f"{'images only, longest first over plan':36s} {(longest_first.makespan_s or 0) / found.objective - 1:11.4%}")
