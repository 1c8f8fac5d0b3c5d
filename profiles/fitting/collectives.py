"""Collectives: alpha and beta of each curve, and one ring law over all ranks, as `profiles.cluster` prices links."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profiles.cluster import SMALLEST_FITTED_BYTES, ring_steps
from profiles.document import Device, Table
from profiles.fitting.alpha_beta import alpha_beta_fit
from profiles.fitting.document import Fit
from profiles.fitting.making import Axes, Named, Unfitted, groups, linear_fit, pick, rate, rows_of
from profiles.fitting.quality import short
from profiles.roofline import wire_bytes

Floats = npt.NDArray[np.float64]


_RING = {
    "all_reduce": "t = 2 (ranks - 1) latency_s + 2 (ranks - 1)/ranks message_bytes / bandwidth_bytes_per_s",
    "broadcast": "t = (ranks - 1) latency_s + message_bytes / bandwidth_bytes_per_s",
    "send_recv": "t = latency_s + message_bytes / bandwidth_bytes_per_s",
}
_OTHER = "t = (ranks - 1) latency_s + (ranks - 1)/ranks message_bytes / bandwidth_bytes_per_s"


def collective_fits(table: Table, device: Device) -> list[Fit | Unfitted]:
    """One fit for each (nodes, ranks), then one ring for each number of nodes; rows of a single rank are left out."""
    axes, seconds = rows_of(table)
    alone = axes["ranks"] < 2
    left_out = []
    if alone.any():
        reason = f"{np.count_nonzero(alone)} of {len(seconds)} rows have ranks 1, where nothing is sent"
        left_out.append(Unfitted("", {}, reason))
        axes, seconds = pick(axes, ~alone), seconds[~alone]
    fits = [alpha_beta_fit(table, pick(axes, rows), seconds[rows], at) for at, rows in groups(axes, ("nodes", "ranks"))]
    fits += [_ring(table, pick(axes, rows), seconds[rows], at, device) for at, rows in groups(axes, ("nodes",))]
    return [*left_out, *(fit for fit in fits if fit is not None)]


def _ring(table: Table, axes: Axes, seconds: Floats, at: dict[str, int], device: Device) -> Fit | Unfitted | None:
    """steps x latency + bytes on the wire / bandwidth over all ranks. Small messages run other protocols."""
    large = axes["message_bytes"] >= SMALLEST_FITTED_BYTES
    if np.count_nonzero(large) >= 4:
        axes, seconds = pick(axes, large), seconds[large]
    wire = wire_bytes(table.family, axes["message_bytes"], axes["ranks"])
    link = device.intra_node_bandwidth_bytes_per_s if at["nodes"] == 1 else None

    def named(found: Floats) -> Named:
        return {"latency_s": short(float(found[0])), "bandwidth_bytes_per_s": rate(float(found[1]))}

    def derived(found: Floats) -> dict[str, float]:
        return {"utilisation_of_link": short(1.0 / found[1] / link)} if link and found[1] > 0 else {}

    return linear_fit(
        table,
        axes,
        seconds,
        np.stack([ring_steps(table.family, axes["ranks"]), wire], axis=1),
        form="ring",
        formula=_RING.get(table.family, _OTHER),
        at=at,
        named=named,
        derived=derived,
    )
