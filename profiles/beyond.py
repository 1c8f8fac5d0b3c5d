"""The price of a point outside the measured range, from the nearest measured point and a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from profiles.table import CostTable

Floats = npt.NDArray[np.float64]
Model = Callable[[Mapping[str, Floats]], Floats]


def seconds_beyond(table: CostTable, query: Mapping[str, Floats], model: Model) -> Floats:
    """Continuous at the edge of the table; where the edge itself is a hole it is the model's own price.

    Most families: edge x model outside / model at the edge, the level measured there. Encoder attention: the model has
    a robust level of its own (`profiles.encoder`), so the edge only adds what it is off, and that fades with more work;
    with less work than at the edge it is the ratio again, which stays positive.
    """
    edge = table.clamp(query)
    at_edge = table.look_up(edge)
    here, there = model(query), model(edge)
    priced = at_edge.seconds * here / there
    if table.family.name == "encoder_attention":
        priced = np.where(here >= there, here + (at_edge.seconds - there), priced)
    return np.where(at_edge.outside, here, priced)
