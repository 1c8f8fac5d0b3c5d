"""Fresh processes: ``plan --help`` and a solve, beside an empty interpreter."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mixes

from planner.documents import canonical_bytes
from planner.envelope import dump_model


def main(smoke: bool) -> None:
    """Print the median and extremes of each, and its ratio to an empty interpreter."""
    runs = 1 if smoke else 7
    with tempfile.TemporaryDirectory() as folder:
        derived, explicit = Path(folder, "derived.json"), Path(folder, "explicit.json")
        mix = mixes.standard_mix(32, 350_000, 50, 0)
        derived.write_bytes(canonical_bytes(mixes.mix_document(mix, 32)))
        explicit.write_bytes(canonical_bytes(dump_model(mixes.mix_problem(mix, 32))))
        plan = [sys.executable, "-m", "planner"]
        base = None
        for name, command in (
            ("python -c pass", [sys.executable, "-c", "pass"]),
            ("plan --help", [*plan, "--help"]),
            ("plan solve --help", [*plan, "solve", "--help"]),
            ("plan solve, 32 ranks, explicit", [*plan, "solve", str(explicit), "-o", str(Path(folder, "p.json"))]),
            ("plan solve, 32 ranks, derived", [*plan, "solve", str(derived), "-o", str(Path(folder, "p.json"))]),
            ("plan demo", [*plan, "demo", "--out", folder]),
        ):
            times = [_wall_s(command) for _ in range(runs)]
            median = statistics.median(times)
            base = base or median
            print(
                f"{name:32s} median {median * 1e3:7.0f} ms   {min(times) * 1e3:.0f}..{max(times) * 1e3:.0f}   "
                f"{median / base:6.1f} x python"
            )


def _wall_s(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start
