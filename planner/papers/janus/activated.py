"""Experts activated on the busiest instance as rows over a batch grid, whatever they come from (page, "Model" 7)."""

from __future__ import annotations

import numpy as np

from planner.errors import BadInputError
from planner.papers.janus.costs import Activated, ActivatedBound, ActivatedTable
from planner.papers.janus.model import Floats, Ints


def rows_of(a_max: Activated, E: int, K: int, C: int, most_instances: int) -> tuple[Floats, Floats, Ints]:
    """The grid [G], the rows [R, G], and the expert instances [R] from which each row holds.

    Closed forms get a row for every size from the fewest that hold all experts up to ``most_instances``. Raises
    BadInputError where the routing has not been read into a table.
    """
    if not isinstance(a_max, ActivatedTable | ActivatedBound):
        raise BadInputError("the routing of the layers has not been read", code="missing_field", where="a_max")
    grid = np.array(a_max.batch_grid, dtype=np.float64)
    if isinstance(a_max, ActivatedTable):
        return grid, np.array(a_max.values, dtype=np.float64), np.array(a_max.expert_instances, dtype=np.int64)
    fewest = -(-E // C)
    instances = np.arange(fewest, max(fewest, most_instances) + 1, dtype=np.int64)
    return grid, closed_form(a_max.kind, grid, instances, E, K, C), instances


def closed_form(kind: str, grid: Floats, instances: Ints, E: int, K: int, C: int) -> Floats:
    """min(C, K B, mean + sqrt(2 variance ln n_e) + 1) [R, G]: the mean is of C slots' experts, or of E / n_e of them.

    The variance is the mean, or of ``binomial_bound`` that of E / n_e experts each active or not. That one is also no
    more than ceil(E / n_e), what one copy of each expert, spread evenly, attains whatever is routed: so spare slots
    never make experts slower, and its row never falls, as past its peak the sum is still above E / n_e + 1.
    """
    # expm1 and log1p: K / E may be so small that 1 - (1 - K / E)^B would lose its digits.
    hit = -np.expm1(grid * np.log1p(-K / E)) if K < E else np.ones_like(grid)
    experts = np.full(len(instances), float(C)) if kind == "printed_bound" else E / instances
    variance = mean = experts[:, None] * hit
    most = np.full(len(instances), float(C))
    if kind == "binomial_bound":
        variance, most = mean * (1 - hit), np.minimum(most, np.ceil(experts))
    raw = mean + np.sqrt(2 * variance * np.log(instances)[:, None]) + 1
    return np.asarray(np.minimum(np.minimum(most[:, None], K * grid), raw))
