"""Message sizes in elements: one collective whose bus bandwidth is a dtype's size off that of all the others.

Bus bandwidth of large messages is a property of the link, so a profile's collectives agree on it: those of the built-in
profiles lie at 0.83 to 1.23 of the median of the others. If all of them are off alike nothing shows here.
"""

from __future__ import annotations

import numpy as np

from profiles.checks.finding import Finding, as_axes, title
from profiles.document import ProfileDocument, Table
from profiles.families import COLLECTIVES, DTYPE_BYTES
from profiles.roofline import wire_bytes

LOW, HIGH = 0.65, 1.55
LARGE_BYTES = 1 << 20


def odd_messages(document: ProfileDocument) -> list[Finding]:
    """A warning for each collective whose best bus bandwidth is below 0.65 or above 1.55 of the others' median."""
    best = {
        number: _bus_bandwidth(table)
        for number, table in enumerate(document.tables)
        if table.family in COLLECTIVES and table.family not in ("send_recv", "broadcast")
    }
    found = []
    for number, own in best.items():
        ratios = []
        for group, rate in own.items():
            others = [rates[group] for other, rates in best.items() if other != number and group in rates]
            if others:
                ratios.append(rate / float(np.median(others)))
        ratio = float(np.median(ratios)) if ratios else 1.0
        if LOW <= ratio <= HIGH:
            continue
        table = document.tables[number]
        size = DTYPE_BYTES[table.dtype]
        unit = (
            f"message_bytes may count elements: {table.dtype} has {size} bytes each"
            if 0.6 < ratio * size < 1.6 and size > 1
            else "check the message convention (the larger of one rank's two buffers, in bytes) and the unit of time"
        )
        what = f"best bus bandwidth is {ratio:.2g} of the median of the profile's other collectives"
        where = f"tables.{number}.columns.message_bytes"
        found.append(Finding("message_unit", "warning", title(table), where, what, f"{LOW} to {HIGH}", unit))
    return found


def _bus_bandwidth(table: Table) -> dict[tuple[int, int], float]:
    """Best bytes on the wire per second over large messages, by (nodes, ranks)."""
    axes = as_axes(table)
    rate = wire_bytes(table.family, axes["message_bytes"], axes["ranks"]) / np.asarray(table.latency_s)
    best: dict[tuple[int, int], float] = {}
    for row in np.flatnonzero((axes["message_bytes"] >= LARGE_BYTES) & (axes["ranks"] > 1)).tolist():
        group = table.columns["nodes"][row], table.columns["ranks"][row]
        best[group] = max(best.get(group, 0.0), float(rate[row]))
    return best
