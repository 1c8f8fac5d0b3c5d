"""Attention instances: a layer's attention, router and shared experts, and its share of dense layers and the head.

The paper's layers are alike and it leaves the ends of a model out; an output token passes them too, on an attention
instance, so their seconds are spread over the layers with experts. A head wider than any row of the profile is left out
where nothing is extrapolated, and the plan says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from planner.derivation.account import Account, Floats, nine_digits, rounded_shares, sources_of
from planner.derivation.moe.attention_cost import attention_seconds, dense_seconds, head_seconds, shared_seconds
from planner.derivation.moe.cautions import attention_cautions
from planner.derivation.moe.forward import Forward
from planner.derivation.moe.missing_rows import place_of_attention
from planner.errors import BadInputError
from planner.papers.janus.costs import Attention, Caution, Memory, PricedAttention
from planner.papers.janus.prices.attention_fit import AttentionFit, attention_fit
from planner.papers.janus.prices.setting import Setting
from profiles.errors import ProfileError

FEWEST_POINTS = 8.0
"""Requests up to which attention is priced at least."""
MOST_REQUESTS = 4096.0
POOR = 0.1
"""Mean relative distance of the fit that is worth a warning: a sum is 0.01 to 0.04 off, the larger 0.1 to 0.15."""


@dataclass(frozen=True)
class AttentionPrice:
    """The document, the fit behind it, and seconds of the largest batch by family."""

    document: Attention
    fit: AttentionFit
    by_family: dict[str, float]


def attention_price(setting: Setting, memory: Memory | None) -> AttentionPrice:
    """Price batches up to what memory and the demand allow. Raises BadInputError where the tables end."""
    forward = setting.forward
    batches = _batches(setting, memory)
    half = replace(forward, context=max(1, setting.context // 2))
    try:
        headed = _has_head(forward, batches)
        whole, shorter = layer_seconds(forward, batches, headed), layer_seconds(half, batches, headed)
    except ProfileError as error:
        default = "derive.extrapolate" if forward.extrapolate == "refuse" else "derive.profile"
        place = place_of_attention(forward) or default
        raise BadInputError(error.message, code=error.code, where=place) from None
    # More requests are never cheaper: where rows say so, the dearer ones before count.
    seconds, combine = np.maximum.accumulate(whole.seconds), setting.given.attention
    fit = attention_fit(
        batches, seconds, np.maximum.accumulate(shorter.seconds), forward.context, half.context, combine
    )
    said: dict[Caution, str] = {}
    for code, text in attention_cautions(forward, batches, whole.seconds).items():
        said[code] = text
    if fit.mape > POOR:
        said["poor_fit"] = (
            f"equation 2 is {100 * fit.mape:.0f} % off the prices of attention in the mean and {100 * fit.worst:.0f} % "
            f"at worst, from 1 to {batches[-1]:.0f} requests"
        )
    if not headed:
        said["left_out"] = (
            f"the head of {setting.model.name} is wider than any product in the profile and is left out of the time of "
            "a token: derive.extrapolate=roofline prices it"
        )
    shares = rounded_shares((whole.by_source / whole.by_source.sum(axis=0)).mean(axis=1))
    document = Attention(
        floor_s=fit.floor_s,
        per_request_s=fit.per_request_s,
        per_cached_token_s=fit.per_cached_token_s,
        combine=combine,
        sources=sources_of(shares.tolist()),
        cautions=said or None,
        priced=PricedAttention(
            context_tokens=float(forward.context), requests=tuple(batches.tolist()), times_s=tuple(nine_digits(seconds))
        ),
    )
    return AttentionPrice(document, fit, {name: float(part[-1]) for name, part in whole.by_family.items()})


def _batches(setting: Setting, memory: Memory | None) -> Floats:
    """Two points an octave from one request to the most that an instance may be given."""
    most = setting.load.most_in_flight
    if memory is not None and isinstance(memory.attention_fixed_bytes, dict):
        request = memory.kv_bytes_per_token * setting.load.context_tokens + memory.activation_bytes_per_request
        most = min(most, (memory.capacity_bytes - sum(memory.attention_fixed_bytes.values())) / request)
    most = min(MOST_REQUESTS, max(FEWEST_POINTS, math.floor(most)))
    points = np.round(2.0 ** np.arange(0.0, math.log2(most), 0.5))
    return np.unique(np.append(points, most))


def _has_head(forward: Forward, batches: Floats) -> bool:
    try:
        head_seconds(forward, batches)
    except ProfileError:
        return False
    return True


def layer_seconds(forward: Forward, batches: Floats, headed: bool) -> Account:
    """Seconds of one layer by batches, with its share of the dense layers and (``headed``) of the head."""
    layers = forward.model.num_layers
    parts = [(attention_seconds(forward, batches), 1.0), (shared_seconds(forward, batches), 1.0)]
    parts.append((dense_seconds(forward, batches), 1.0 / layers))
    if headed:
        parts.append((head_seconds(forward, batches), 1.0 / layers))
    return _sum((account, times) for account, times in parts if account is not None)


def _sum(parts: Iterable[tuple[Account | None, float]]) -> Account:
    total: Account | None = None
    for account, times in parts:
        if account is None:
            continue
        total = total or Account(account.shape)
        total.by_source += times * account.by_source
        for family, seconds in account.by_family.items():
            total.by_family[family] += times * seconds
    if total is None:
        raise TypeError("a layer has attention")
    return total
