"""Bytes of weights, gradients and optimizer states on one device, by mode and shard (3.1), and by ZeRO stage.

Sources: ZeRO, arXiv 1910.02054; FSDP, arXiv 2304.11277. ``shard_ranks`` N(i) share a state: the product of the first i
data-parallel dimensions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.memory.amounts import Amount
from planner.memory.modes import GradientsMode, OptimizerMode, ParametersMode

PARAMETER_UNITS = 2
"""Whole units of gathered parameters at once: one in use, one prefetched."""
GRADIENT_UNITS = 1
"""Whole units of gradients at once: one that waits for its reduction."""


class States(NamedTuple):
    """Bytes on one device."""

    weights: Amount
    gradients: Amount
    optimizer: Amount


def parameters_bytes(mode: ParametersMode, whole: Amount, unit: Amount, shard_ranks: Amount) -> Amount:
    """Bytes of parameters: ``whole`` before sharding, ``unit`` the largest gathered at once. One rank gathers none."""
    if mode == "offloaded":
        return PARAMETER_UNITS * unit + 0 * (whole + shard_ranks)
    if mode == "replicated":
        return whole + 0 * shard_ranks
    return whole / shard_ranks + _where_shared(shard_ranks, whole if mode == "gather_keep" else PARAMETER_UNITS * unit)


def gradients_bytes(mode: GradientsMode, whole: Amount, unit: Amount, shard_ranks: Amount) -> Amount:
    """Bytes of gradients: ``whole`` before sharding, ``unit`` the largest reduced at once. One rank reduces none."""
    if mode == "offloaded":
        return GRADIENT_UNITS * unit + 0 * (whole + shard_ranks)
    if mode == "replicated":
        return whole + 0 * shard_ranks
    return whole / shard_ranks + _where_shared(shard_ranks, GRADIENT_UNITS * unit)


def optimizer_bytes(mode: OptimizerMode, whole: Amount, shard_ranks: Amount) -> Amount:
    """Bytes of optimizer states; offloaded they are updated where they lie, on the host."""
    if mode == "replicated":
        return whole + 0 * shard_ranks
    return whole / shard_ranks if mode == "sharded" else 0.0 * (whole + shard_ranks)


def fully_sharded_bytes(
    parameters: Amount, bytes_per_parameter: float, *, shard_ranks: Amount, unit_bytes: Amount
) -> Amount:
    """All states of ZeRO stage 3 (FSDP) together, at ``bytes_per_parameter`` of the three."""
    gathered = parameters_bytes("gather", parameters * bytes_per_parameter, unit_bytes, shard_ranks)
    return gathered + gradients_bytes("sharded", 0, unit_bytes, shard_ranks)


def zero_states(
    stage: Amount,
    parameters: Amount,
    *,
    shard_ranks: Amount,
    unit: Amount,
    param_bytes: float,
    grad_bytes: float,
    optimizer_bytes: float,
) -> States:
    """Bytes of one group's states at ZeRO stage 0 … 3 (layout page, 3.6); dense and expert groups add.

    ``parameters`` and ``unit`` (the largest layer's) are counts. Stage 1 divides the optimizer, stage 2 the gradients
    and holds one unit of them, stage 3 the weights and holds two units, on however many ranks, as that page has it.
    """

    def held(first_stage: int, units: int) -> Amount:
        # Arithmetic alone: of single numbers, which a replay asks for one by one, arrays take fifty times as long.
        shared = stage >= first_stage
        return parameters / (1 + shared * (shard_ranks - 1)) + shared * units * unit

    return States(
        held(3, PARAMETER_UNITS) * param_bytes, held(2, GRADIENT_UNITS) * grad_bytes, held(1, 0) * optimizer_bytes
    )


def _where_shared(shard_ranks: Amount, amount: Amount) -> Amount:
    return np.where(np.asarray(shard_ranks) > 1, amount, 0)
