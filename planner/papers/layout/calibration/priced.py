"""Runs with the prices that a calibration corrects: problems of one layout each, and what their rows are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.derivation.training.calibration import Calibration, RowTimes, calibrated
from planner.derivation.training.cuts import Ints
from planner.derivation.training.layer import spread
from planner.derivation.training.parts import LayerTimes
from planner.papers.layout.costs.links import slowed
from planner.papers.layout.layouts import Layout
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.table import Costs, Kind

SECONDS = ("forward_s", "backward_s", "comm_forward_s", "comm_backward_s", "selective_s")


@dataclass(frozen=True, eq=False)
class PricedRuns:
    """Runs of one model. Run i is ``layouts[i]``, partition and all, in ``problems[i]``, whose table has its rows.

    ``times``: of a layer of each kind, arrays over the runs. The problems are uncalibrated; their optimizer's time is
    element-wise work unless somebody stated it.
    """

    problems: Sequence[LayoutProblem]
    layouts: Sequence[Layout]
    times: Mapping[Kind, LayerTimes]
    optimizer_is_priced: bool = True

    def at(self, places: Sequence[int]) -> PricedRuns:
        """Some of the runs."""
        chosen = np.asarray(places, dtype=np.int64)
        return PricedRuns(
            [self.problems[place] for place in places],
            [self.layouts[place] for place in places],
            {kind: _at(each, chosen) for kind, each in self.times.items()},
            self.optimizer_is_priced,
        )

    def under(self, calibration: Calibration) -> Iterator[LayoutProblem]:
        """The problems under a calibration, as a derivation would give them."""
        times = {
            kind: calibrated(each, calibration, layer=kind in ("dense", "moe")) for kind, each in self.times.items()
        }
        update = calibration.elementwise if self.optimizer_is_priced else 1.0
        for place, problem in enumerate(self.problems):
            costs = _under(problem.costs, times, place)
            links = {
                "collectives": slowed(costs.collectives, calibration.communication),
                "p2p": slowed(costs.p2p, calibration.communication),
                "optimizer_s_per_param": update * costs.optimizer_s_per_param,
                "fixed_s": calibration.fixed_s,
            }
            yield problem.model_copy(update={"costs": costs.model_copy(update=links)})


def _under(costs: Costs, times: Mapping[Kind, RowTimes], place: int) -> Costs:
    rows = tuple(
        row.model_copy(update={name: float(getattr(times[row.kind], name)[place]) for name in SECONDS})
        for row in costs.rows
    )
    return costs.model_copy(update={"rows": rows})


def _at(times: LayerTimes, places: Ints) -> LayerTimes:
    return LayerTimes(
        spread(times.forward, places),
        spread(times.backward, places),
        spread(times.selective, places),
        times.cp[places],
        times.missing[places],
        times.reasons,
    )
