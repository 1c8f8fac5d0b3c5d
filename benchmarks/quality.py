"""The page's target classes (section 12): planning time, certified gap, and the best cheap baseline over the plan."""

from __future__ import annotations

import mixes
from measure import HEADER, line, measure

MODELS = ("wan2.1-1.3b", "wan2.1-14b")


def main(smoke: bool) -> None:
    """Print one line a class."""
    print(HEADER)
    for model in MODELS[:1] if smoke else MODELS:
        for num_ranks in (16,) if smoke else (16, 32):
            for name, counts in _classes(num_ranks, smoke):
                rows = [measure(mixes.mix_problem(lengths, num_ranks, model)) for lengths in counts]
                print(line(f"{model} N={num_ranks} {name}", rows), flush=True)
        if not smoke:
            for name, lengths in (
                ("350K V50", mixes.standard_mix(1024, 350_000, 50, 0)),
                ("125K V60", mixes.standard_mix(1024, 125_000, 60, 0)),
                ("S=4N", mixes.synthetic_mix(1024, 4096, 0)),
            ):
                print(line(f"{model} N=1024 {name}", [measure(mixes.mix_problem(lengths, 1024, model))]), flush=True)


def _classes(num_ranks: int, smoke: bool) -> list[tuple[str, list[dict[int, int]]]]:
    seeds = range(1) if smoke else mixes.SEEDS
    shares = mixes.VIDEO_SHARES_PERCENT[:1] if smoke else mixes.VIDEO_SHARES_PERCENT
    return [
        ("350K V35-60", [mixes.standard_mix(num_ranks, 350_000, v, s) for v in shares for s in seeds]),
        ("350K V90", [mixes.standard_mix(num_ranks, 350_000, 90, s) for s in seeds]),
        ("125K V60", [mixes.standard_mix(num_ranks, 125_000, 60, s) for s in seeds]),
        ("S=4N", [mixes.synthetic_mix(num_ranks, 4 * num_ranks, s) for s in seeds]),
    ]
