"""How planning time and peak memory grow with ranks and with sequences per rank, one fresh process an instance."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RANKS = (16, 32, 64, 128, 256, 512, 1024)
SEQUENCES_PER_RANK = (2, 5, 10, 20, 50)


def main(smoke: bool) -> None:
    """Print time, its ratio to the row before, and peak memory."""
    for title, cases in (
        ("M(N, 350K, V50)", [("ranks", n, 0) for n in (RANKS[:2] if smoke else RANKS)]),
        ("S(64, S)", [("sequences", 64, 64 * k) for k in (SEQUENCES_PER_RANK[:2] if smoke else SEQUENCES_PER_RANK)]),
    ):
        print(f"{title:16s} {'ranks':>6s} {'sequences':>9s} {'plan ms':>8s} {'ratio':>6s} {'peak MB':>8s} {'gap%':>7s}")
        before = None
        for kind, ranks, sequences in cases:
            row = _fresh(kind, ranks, sequences)
            ratio = "" if before is None else f"{row['planning_s'] / before:.2f}"
            before = row["planning_s"]
            print(
                f"{'':16s} {ranks:6d} {row['sequences']:9d} {row['planning_s'] * 1e3:8.1f} {ratio:>6s} "
                f"{row['peak_mb']:8.0f} {row['gap'] * 100:7.3f}",
                flush=True,
            )


def _fresh(kind: str, ranks: int, sequences: int) -> dict[str, float]:
    command = [sys.executable, __file__, kind, str(ranks), str(sequences)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent)
    row: dict[str, float] = json.loads(done.stdout)
    return row


def _one(kind: str, ranks: int, sequences: int) -> None:
    import mixes
    from measure import measure

    mix = mixes.standard_mix(ranks, 350_000, 50, 0) if kind == "ranks" else mixes.synthetic_mix(ranks, sequences, 0)
    # Memory slack, as in the classes of the page: fifty sequences a rank would not fit else.
    measured = measure(mixes.mix_problem(mix, ranks, capacity_bytes=1e12))
    peak_mb = _peak_mb()
    row = {"sequences": measured.sequences, "planning_s": measured.planning_s, "gap": measured.certified_gap}
    print(json.dumps(row | {"peak_mb": peak_mb}))


def _peak_mb() -> float:
    """Peak resident memory of this program alone; getrusage would count the parent it was forked from."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    _one(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
