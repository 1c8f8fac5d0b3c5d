"""Prices and bytes of measured runs, as a derivation gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from planner.derivation.references import input_errors
from planner.derivation.training.calibration import Calibration
from planner.derivation.training.cuts import Cuts, Ints
from planner.errors import BadInputError
from planner.papers.layout.calibration.priced import PricedRuns
from planner.papers.layout.calibration.runs import Run
from planner.papers.layout.costs.frame import costs_of, frame_of
from planner.papers.layout.costs.rows import priced, rows_of
from planner.papers.layout.costs.setting import Setting
from planner.papers.layout.layouts import Layout
from planner.papers.layout.problem import Batch, LayoutProblem
from planner.papers.layout.table import Kind, Row, Tiers


def price_runs(setting: Setting, tiers: Tiers, runs: Sequence[Run], where: str) -> list[tuple[PricedRuns, list[Run]]]:
    """Runs of the setting's model, in parts of one sequence length each; ``tiers`` uncalibrated.

    Layers are cut as evenly as they go, the first stages holding one more. Raises BadInputError naming the line of a
    run that the model or the profile has no price for.
    """
    ordered = sorted(runs, key=lambda run: run.sequence_length)
    parts = [list(part) for _, part in groupby(ordered, key=lambda run: run.sequence_length)]
    return [(_priced(setting, tiers, part, where), part) for part in parts]


def _priced(setting: Setting, tiers: Tiers, runs: list[Run], where: str) -> PricedRuns:
    for run in runs:
        _refuse_other(setting, run, where)
    kinds: list[Kind] = [*setting.kinds, "embedding", "head"]
    with input_errors(where):
        found = {kind: priced(setting, kind, _cuts(runs, experts=kind == "moe")) for kind in kinds}
    for kind, each in found.items():
        if len(each.kept) < len(runs):
            run = runs[int(np.flatnonzero(each.times.missing)[0])]
            reason = next(iter(each.times.reasons.values()))
            raise _fault(run, f"no price for its {kind} layers: {reason}", "outside_measured_range", where)
    rows, _ = rows_of(found, Calibration())
    by_kind: dict[Kind, list[Row]] = {kind: [row for row in rows if row.kind == kind] for kind in kinds}
    problems = [
        _problem(setting, tiers, run, [by_kind[kind][place] for kind in kinds]) for place, run in enumerate(runs)
    ]
    return PricedRuns(
        problems,
        [_cut(run.layout, setting.model.num_layers) for run in runs],
        {kind: each.times for kind, each in found.items()},
        optimizer_is_priced=setting.given.optimizer_s_per_param is None,
    )


def _problem(setting: Setting, tiers: Tiers, run: Run, rows: list[Row]) -> LayoutProblem:
    batch = Batch(global_batch_size=run.global_batch_size, sequence_length=run.sequence_length)
    here = replace(setting, sequence_length=run.sequence_length)
    return frame_of(here, run.num_gpus, batch, costs_of(here, tiers, rows, Calibration()))


def _cuts(runs: list[Run], *, experts: bool) -> Cuts:
    def column(name: str) -> Ints:
        return np.array([getattr(run.layout, name) for run in runs], dtype=np.int64)

    one = np.ones(len(runs), dtype=np.int64)
    return Cuts(
        runs[0].sequence_length,
        column("micro_batch"),
        column("tp"),
        column("cp"),
        column("sequence_parallel") == 1,
        column("ep") if experts else one,
        column("etp") if experts else one,
    )


def _cut(layout: Layout, layers: int) -> Layout:
    each, more = divmod(layers, layout.pp * layout.vpp)
    return replace(layout, partition=tuple(each + (stage < more) for stage in range(layout.pp * layout.vpp)))


def _refuse_other(setting: Setting, run: Run, where: str) -> None:
    layout, layers = run.layout, setting.model.num_layers
    if layout.pp * layout.vpp > layers:
        stages = layout.pp * layout.vpp
        raise _fault(run, f"{stages} virtual stages for {layers} layers", "out_of_range", where)
    if setting.experts is None and layout.ep * layout.etp > 1:
        raise _fault(run, "ep and etp are of models with experts", "out_of_range", where)


def _fault(run: Run, message: str, code: str, where: str) -> BadInputError:
    return BadInputError(f"line {run.line}: {message}", code=code, where=where)
