"""The trust study: published runs against predictions whose constants were fitted to the other sweeps.

For every sweep: step time before and after calibration, whom we would pick, and memory, beside what was published of
a cost model of ten constants (page layout, section 11). Skips without PLAN_REAL_DATA.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from published_memory import print_causes, print_memory, print_totals, reserved
from published_sweeps import (
    AS_PUBLISHED,
    FUSED,
    OTHERS,
    SWEEPS,
    WHERE,
    Sweep,
    published_file,
    read_group,
    read_sweep,
)

from planner.derivation.training.calibration import Calibration
from planner.papers.layout.calibration.capacity import peak_bytes
from planner.papers.layout.calibration.fit import fit_calibration, step_times_s
from planner.papers.layout.calibration.quality import (
    Confusion,
    Ranking,
    StepErrors,
    ranking,
    step_errors,
)

QUOTED = {
    "aa-13B-2k-32": "mean 5.4 %, rank correlation 0.62, pick loss 10.7 % (fitted)",
    "aa-30B-8k-64": "mean 3.5 %, rank correlation 0.96, pick loss 0 (fitted)",
    "aa-65B-2k-64": "mean 4.1 %, rank correlation 0.94, pick loss 0 (fitted)",
}
QUOTED_ALL = "fitted: median 4.3 %, p90 8.2 %; held out (two sweeps that are not in the file): 3.5 %, 10.7 %"
MEDIAN, P90, LOSS = 0.06, 0.12, 0.05
"""Of the target."""


def main(smoke: bool) -> None:
    """Print every sweep, held out in turn; the smoke run holds out the first and fits to the second."""
    path = published_file()
    if path is None:
        print(f"skipped: {WHERE} names no folder with layout/published_runs.csv")
        return
    names = SWEEPS[:2] if smoke else SWEEPS
    sweeps = [read_sweep(path, name, AS_PUBLISHED) for name in names]
    fused = [read_sweep(path, name, FUSED) for name in names]
    errors: list[float] = []
    counted: dict[str, list[Confusion]] = {}
    for place in range(1 if smoke else len(sweeps)):
        errors += _print_times(sweeps, place)
        for name, found in print_memory(sweeps, fused, place).items():
            counted.setdefault(name, []).append(found)
    every = step_errors([1 + error for error in errors], [1.0] * len(errors))
    print(f"all held-out runs ({every.runs}): {_said(every)}")
    print(f"  quoted, all dense A100: {QUOTED_ALL}")
    together = fit_calibration([sweep.timed()[:2] for sweep in sweeps])
    print(f"fitted to all of them: {_multipliers(together)}")
    print_totals(counted)
    if not smoke:
        print_causes(path, names)
        _print_others(path, together)


def _print_times(sweeps: Sequence[Sweep], place: int) -> list[float]:
    """Relative errors of the held-out step times."""
    sweep, others = sweeps[place], [each for index, each in enumerate(sweeps) if index != place]
    runs, measured, _ = sweep.timed()
    failed = sweep.ran.count(False)
    print(f"{sweep.name}: {len(sweep.runs)} runs, {len(measured)} with a step time, {failed} out of memory")
    calibration = fit_calibration([other.timed()[:2] for other in others])
    print(f"  fitted to {', '.join(other.name for other in others)}: {_multipliers(calibration)}")
    predicted = step_times_s(runs, calibration)
    for name, seconds in (("before", step_times_s(runs, Calibration())), ("after ", predicted)):
        found, picked = step_errors(seconds, measured), ranking(seconds, measured, runs.layouts)
        print(f"  step time, {name} calibration: {_said(found)}; {_told(picked)}")
    print(f"    quoted: {QUOTED[sweep.name]}")
    print(f"    target median <= 6 %, p90 <= 12 %, pick within 5 %: {_verdict(found, picked)}")
    _print_pick(sweep, others, calibration)
    return [ours / theirs - 1 for ours, theirs in zip(predicted, measured, strict=True)]


def _print_others(path: Path, calibration: Calibration) -> None:
    """Other software, other GPUs: what prices say as they are, and under the multipliers of the sweeps."""
    print("other software, nothing fitted to it:")
    for name, model, software in OTHERS:
        runs, measured, _ = read_group(path, name, model, software).timed()
        plain, learned = step_times_s(runs, Calibration()), step_times_s(runs, calibration)
        found = step_errors(plain, measured), step_errors(learned, measured)
        print(f"  {name}, {model} ({len(measured)} runs): as priced, {_said(found[0])}")
        print(f"    with the multipliers of the sweeps, {_said(found[1])}")
        if name.startswith("korthikanti"):
            right = (learned[0] < learned[1]) == (measured[0] < measured[1])
            print(f"    which of the two is faster: {'right' if right else 'wrong'}")


def _print_pick(sweep: Sweep, others: Sequence[Sweep], calibration: Calibration) -> None:
    """Whom we pick among all that our memory lets through, whether it ran or not."""
    found = reserved(others)
    seconds = step_times_s(sweep.priced, calibration)
    order = sorted(
        (
            place
            for place, each in enumerate(sweep.held)
            if peak_bytes(each, found.fragmentation) + found.reserve_bytes <= sweep.capacity_bytes
        ),
        key=lambda place: seconds[place],
    )
    best = min((run.step_time_s, place) for place, run in enumerate(sweep.runs) if run.step_time_s is not None)[1]
    first = sweep.runs[order[0]]
    said = f"ran, {_percent((first.step_time_s or 0.0) / (sweep.runs[best].step_time_s or 1.0) - 1)} over the best"
    place = f"{order.index(best) + 1} of {len(order)}" if best in order else "not in our list"
    print(f"  of all that memory lets through, our first {said if first.ran else 'ran out of memory'}; best: {place}")


def _verdict(found: StepErrors, picked: Ranking) -> str:
    missed = [
        name
        for name, within in (
            ("median", found.median <= MEDIAN),
            ("p90", found.p90 <= P90),
            ("pick", picked.pick_loss <= LOSS),
        )
        if not within
    ]
    return f"missed by {', '.join(missed)}" if missed else "met"


def _said(found: StepErrors) -> str:
    sizes = ", ".join(f"{name} {_percent(getattr(found, name))}" for name in ("median", "mean", "p90"))
    return f"{sizes}, bias {found.bias * 100:+.1f} %"


def _told(picked: Ranking) -> str:
    return (
        f"pick loss {_percent(picked.pick_loss)}, best in place {picked.place_of_best}, rank correlation "
        f"{picked.rank_correlation:.2f}"
    )


def _multipliers(found: Calibration) -> str:
    names = ("gemm", "attention", "elementwise", "communication")
    return ", ".join(f"{name} {getattr(found, name):.2f}" for name in names)


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"
