"""From the rows of a log to a profile: the same tables, policies and errors as any other profile has."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from profiles.document import ProfileDocument, Provenance, Table
from profiles.families import FAMILIES
from profiles.making.building import RawRows, build_table
from profiles.measure.bench import Bench
from profiles.measure.machine import slug
from profiles.measure.options import Options
from profiles.measure.place import Place, Sample

SOURCE = "measured"


def assemble(samples: Mapping[Place, Sample], bench: Bench, options: Options) -> ProfileDocument:
    """The profile of all samples, however many runs took them. Raises ValueError without any."""
    conditions = bench.conditions
    by_table: dict[tuple[str, str, str, str], list[tuple[Place, Sample]]] = {}
    for place, sample in sorted(samples.items()):
        curve = place.curve
        by_table.setdefault((curve.family, curve.dtype, curve.backend, curve.workload), []).append((place, sample))
    versions = ", ".join(f"{name} {version}" for name, version in sorted(conditions.software.items()))
    return ProfileDocument(
        name=options.name or slug(conditions.device.name),
        device=conditions.device,
        provenance=[
            Provenance(
                id=SOURCE,
                title="own measurements by plan profile measure",
                licence=options.licence,
                note=versions,
            )
        ],
        notes=[*bench.notes(), *_clock_notes(samples)],
        tables=[_table(rows, bench) for _, rows in sorted(by_table.items())],
    )


def _table(rows: list[tuple[Place, Sample]], bench: Bench) -> Table:
    curve = rows[0][0].curve
    axes = FAMILIES[curve.family].axes
    spreads = np.array([sample.spread for _, sample in rows])
    counts = sorted(sample.count for _, sample in rows)
    scatter = (
        f"each row is the median of {counts[0]} to {counts[-1]} samples; their interquartile range is "
        f"{np.median(spreads):.1%} of it (median over rows), {np.percentile(spreads, 90):.1%} (p90)"
    )
    return build_table(
        RawRows(
            family=curve.family,
            dtype=curve.dtype,
            backend=curve.backend,
            workload=curve.workload,
            columns={axis: np.array([place.axes[axis] for place, _ in rows], dtype=np.int64) for axis in axes},
            seconds=np.array([sample.median_s for _, sample in rows]),
            provenance=SOURCE,
            kernels=tuple(sorted({sample.kernel for _, sample in rows})),
            policy=(bench.policy(curve.family), scatter),
        ),
        multiprocessors=bench.conditions.device.multiprocessors,
    )


def _clock_notes(samples: Mapping[Place, Sample]) -> list[str]:
    """What the device's clock did while rows were taken, where it can be read."""
    clocks = [sample.clock_hz for sample in samples.values() if sample.clock_hz is not None]
    held = sorted({sample.throttled for sample in samples.values() if sample.throttled})
    notes = []
    if clocks:
        notes.append(
            f"SM clock while rows ran: {min(clocks) / 1e6:.0f} to {max(clocks) / 1e6:.0f} MHz, "
            f"median {np.median(clocks) / 1e6:.0f} MHz"
        )
    for reason in held:
        rows = sum(sample.throttled == reason for sample in samples.values())
        notes.append(f"the clock was held back in {rows} of {len(samples)} rows: {reason}")
    return notes
