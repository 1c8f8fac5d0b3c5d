"""Rows of the cost table as the explicit form writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.derivation.account import Floats, nine_digits, rounded_shares, sources_of
from planner.derivation.training.calibration import Calibration, RowTimes, calibrated
from planner.derivation.training.cuts import Cuts, Ints
from planner.derivation.training.parts import LayerTimes
from planner.papers.layout.costs.columns import Held, held_by, times_of
from planner.papers.layout.costs.setting import Setting
from planner.papers.layout.table import Kind, Row

LAYERS: tuple[Kind, ...] = ("dense", "moe")


@dataclass(frozen=True)
class Priced:
    """All layouts of one kind: ``kept`` numbers those that have a price, and ``held`` is of them alone."""

    cuts: Cuts
    times: LayerTimes
    kept: Ints
    held: Held


def priced(setting: Setting, kind: Kind, cuts: Cuts) -> Priced:
    """Price one kind in every layout; those that lack a price are dropped."""
    times = times_of(setting, kind, cuts)
    kept = np.flatnonzero(~times.missing)
    return Priced(cuts, times, kept, held_by(setting, kind, cuts.at(kept)))


def rows_of(found: Mapping[Kind, Priced], calibration: Calibration) -> tuple[list[Row], dict[Kind, RowTimes]]:
    """Rows of every kind, and the seconds behind them, over all layouts."""
    rows: list[Row] = []
    times = {}
    for kind, each in found.items():
        times[kind] = calibrated(each.times, calibration, layer=kind in LAYERS)
        rows += _rows(kind, each, times[kind])
    return rows, times


def _rows(kind: Kind, found: Priced, times: RowTimes) -> list[Row]:
    kept, held, cuts = found.kept, found.held, found.cuts.at(found.kept)
    seconds = (times.forward_s, times.backward_s, times.comm_forward_s, times.comm_backward_s, times.selective_s)
    columns: dict[str, list[float]] = {
        **dict(zip(SECONDS, (nine_digits(each[kept]) for each in seconds), strict=True)),
        "params": held.dense.tolist(),
        "expert_params": held.experts.tolist(),
        "kept_bytes": held.stored.kept.tolist(),
        "selective_bytes": held.stored.selective.tolist(),
        "input_bytes": held.stored.input.tolist(),
        "workspace_bytes": held.workspace.tolist(),
    }
    degrees = {
        "tp": cuts.tp.tolist(),
        "cp": cuts.cp.tolist(),
        "sp": cuts.sequence_parallel.tolist(),
        "micro_batch": cuts.micro_batch.tolist(),
    }
    if kind == "moe":
        degrees |= {"ep": cuts.ep.tolist(), "etp": cuts.etp.tolist()}
    names = (*degrees, *columns)
    shares = _shares(times.by_source[:, kept])
    return [
        # Checked by the document that they go into, where its rows must agree.
        Row.model_construct(kind=kind, **dict(zip(names, values, strict=True)), sources=sources_of(share))
        for *values, share in zip(*degrees.values(), *columns.values(), shares.tolist(), strict=True)
    ]


SECONDS = ("forward_s", "backward_s", "comm_forward_s", "comm_backward_s", "selective_s")


def _shares(by_source: Floats) -> Floats:
    """Shares of each row's seconds by source; a row without any counts as modelled."""
    total = by_source.sum(axis=0)
    by_source = np.where(total > 0, by_source, np.array([[0.0], [0.0], [1.0], [0.0]]))
    return rounded_shares((by_source / by_source.sum(axis=0)).T)
