"""The memory part of the trust study: which runs were out of memory, by plain rules and by cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from published_sweeps import AS_PUBLISHED, Sweep, read_sweep, without_workspace

from planner.memory.near_capacity import NEAR_CAPACITY
from planner.papers.layout.calibration.capacity import Reserved, fit_reserve, peak_bytes
from planner.papers.layout.calibration.quality import Confusion, confusion

QUOTED = (
    "plain rule 94 of 126 and 2 of 93 in five sweeps; 1.1 x 60 of 63 and 4 of 50 where its constants were picked, "
    "45 of 63 and 0 of 43 elsewhere"
)
"""Page memory, section 11."""
PLAIN_MARGIN, PLAIN_RESERVE_BYTES, PLAIN_CAPACITY_BYTES = 1.1, 4e9, 80e9
"""Of the rules there."""


def print_memory(sweeps: Sequence[Sweep], fused: Sequence[Sweep], place: int) -> dict[str, Confusion]:
    """Rules by name, fitted ones to all sweeps but the one at ``place``."""
    plain = fused[place]
    found: dict[str, Confusion] = {}
    for name, margin in (("bytes + 4 GB > 80 GB", 1.0), ("1.1 x bytes + 4 GB > 80 GB", PLAIN_MARGIN)):
        peaks = [margin * peak_bytes(each, 0.0) + PLAIN_RESERVE_BYTES for each in without_workspace(plain)]
        found[name] = confusion(peaks, plain.ran, PLAIN_CAPACITY_BYTES)
    for name, mine in (("as the code is read", sweeps), ("fused code assumed", fused)):
        found[f"by cause, {name}, defaults"] = _stated(mine[place])
        learned = reserved([each for index, each in enumerate(mine) if index != place])
        peaks = [peak_bytes(each, learned.fragmentation) for each in mine[place].held]
        room = mine[place].capacity_bytes - learned.reserve_bytes
        found[f"by cause, {name}, fitted"] = confusion(peaks, mine[place].ran, room)
        print(
            f"  memory fitted to the others, {name}: fragmentation {learned.fragmentation:.2f}, reserve "
            f"{learned.reserve_bytes / 1e9:.2f} GB (as good from {learned.least_bytes / 1e9:.2f} to "
            f"{learned.most_bytes / 1e9:.2f})"
        )
    for name, each in found.items():
        print(f"  memory, {name}: {_counted(each)}")
    print(f"  warned near_capacity: {_warned(sweeps[place])}")
    return found


def print_totals(found: Mapping[str, Sequence[Confusion]]) -> None:
    """The rules over all sweeps."""
    for name, each in found.items():
        print(f"  memory, {name}: {_counted(_sum(each))}")
    print(f"  quoted: {QUOTED}")


def print_causes(path: Path, names: Sequence[str]) -> None:
    """What each tensor of the code as read is worth, under the defaults."""
    for cause in AS_PUBLISHED:
        code = {name: value for name, value in AS_PUBLISHED.items() if name != cause}
        found = [_stated(read_sweep(path, name, code)) for name in names]
        print(f"  memory by cause but {cause} assumed, defaults: {_counted(_sum(found))}")


def _stated(sweep: Sweep) -> Confusion:
    room = sweep.capacity_bytes - sweep.reserve_bytes
    return confusion([peak_bytes(each, 0.0) for each in sweep.held], sweep.ran, room)


def reserved(sweeps: Sequence[Sweep]) -> Reserved:
    """Fragmentation and reserve fitted to sweeps."""
    held = [each for sweep in sweeps for each in sweep.held]
    ran = [each for sweep in sweeps for each in sweep.ran]
    return fit_reserve(held, ran, sweeps[0].capacity_bytes, sweeps[0].reserve_bytes)


def _sum(found: Sequence[Confusion]) -> Confusion:
    return Confusion(
        sum(each.failed for each in found),
        sum(each.foreseen for each in found),
        sum(each.ran for each in found),
        sum(each.refused for each in found),
    )


def _warned(sweep: Sweep) -> str:
    """Of the runs that the defaults let through, those that a plan would warn of."""
    room = sweep.capacity_bytes
    filled = [(peak_bytes(each, 0.0) + sweep.reserve_bytes) / room for each in sweep.held]
    passed = [(share > NEAR_CAPACITY, ran) for share, ran in zip(filled, sweep.ran, strict=True) if share <= 1]
    failed, good = [near for near, ran in passed if not ran], [near for near, ran in passed if ran]
    return f"{sum(failed)} of {len(failed)} failures let through, {sum(good)} of {len(good)} good runs"


def _counted(found: Confusion) -> str:
    return f"{found.foreseen} of {found.failed} failures foreseen, {found.refused} of {found.ran} good runs refused"
