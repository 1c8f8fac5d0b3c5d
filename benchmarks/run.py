"""Run the benchmarks: ``python benchmarks/run.py [NAME ...] [--smoke]``. Each is one file with a ``main(smoke)``.

Figures are medians with extremes, and ratios within one run, since machines differ and drift.
"""

from __future__ import annotations

import argparse
import importlib
import time

NAMES = (
    "startup",
    "quality",
    "growth",
    "reference",
    "schedules",
    "orders",
    "paper_search",
    "expert_placement",
    "overlap",
    "pools",
    "pool_experts",
    "placements",
    "layouts",
    "lookups",
    "closed_loop",
    "published_runs",
    "rl_splits",
)


def main() -> None:
    """Parse the line, run, and say how long each took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES)}; all by default")
    parser.add_argument("--smoke", action="store_true", help="one small case of each, to see that it runs")
    arguments = parser.parse_args()
    for name in arguments.names or NAMES:
        if name not in NAMES:
            parser.error(f"unknown benchmark {name}; known: {', '.join(NAMES)}")
        print(f"== {name}")
        start = time.perf_counter()
        importlib.import_module(name).main(arguments.smoke)
        print(f"-- {name} took {time.perf_counter() - start:.1f} s\n")


if __name__ == "__main__":
    main()
