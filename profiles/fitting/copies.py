"""Copies: one alpha and beta, or one for each piece of the curve."""

from __future__ import annotations

from profiles.document import Device, Table
from profiles.fitting.alpha_beta import alpha_beta_fit
from profiles.fitting.document import Fit
from profiles.fitting.making import Unfitted, finite, rows_of


def copy_fits(table: Table, device: Device) -> list[Fit | Unfitted]:
    """One fit. Its beta is of the bytes copied, each counted once; against the memory's bandwidth if that is stated."""
    fit = alpha_beta_fit(table, *rows_of(table), {})
    if fit is None:
        return []
    if isinstance(fit, Unfitted):
        return [fit]
    beta, memory = fit.pieces[-1].coefficients["beta_bytes_per_s"], device.memory_bandwidth_bytes_per_s
    if beta is None or memory is None:
        return [fit]
    return [fit.model_copy(update={"derived": finite({"utilisation_of_memory": beta / memory})})]
