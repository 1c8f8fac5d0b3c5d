"""Seconds of the attention kernel of one layer on one attention device, between the projections."""

from __future__ import annotations

from planner.derivation.account import Floats
from planner.derivation.causal_attention import grouped_causal
from planner.derivation.moe.forward import Forward
from profiles.geometry.attention import GroupedAttention, LatentAttention
from profiles.latent import latent_decode, latent_prefill
from profiles.priced import Priced, modelled


def kernel(forward: Forward, attention: GroupedAttention | LatentAttention, samples: Floats) -> tuple[str, Priced]:
    """Name of the family, and the price of batches of ``samples``. Raises ProfileError outside the tables."""
    if isinstance(attention, LatentAttention):
        return _latent(forward, attention, samples)
    return _prefill(forward, attention, samples) if forward.phase == "prefill" else _decode(forward, attention, samples)


def _latent(forward: Forward, attention: LatentAttention, samples: Floats) -> tuple[str, Priced]:
    if forward.phase == "prefill":
        dtype = forward.activation_dtype
        price = latent_prefill(
            forward.profile, forward.context, samples, attention.heads, dtype=dtype, extrapolate=forward.extrapolate
        )
        return f"mla_prefill/{dtype}", price

    def look_up(dtype: str) -> Priced:
        return latent_decode(
            forward.profile, forward.context, samples, attention.heads, dtype=dtype, extrapolate=forward.extrapolate
        )

    dtype, substituted = cache_rows(forward, "mla_decode")
    return f"mla_decode/{dtype}", _marked(look_up(dtype), substituted)


def _prefill(forward: Forward, attention: GroupedAttention, samples: Floats) -> tuple[str, Priced]:
    dtype = forward.activation_dtype
    price, stands_in = grouped_causal(
        forward.profile,
        forward.tokens_per_sample,
        samples,
        attention.heads,
        attention.kv_heads,
        attention.head_dim,
        attention.window,
        dtype=dtype,
        extrapolate=forward.extrapolate,
    )
    return f"prefill_attention/{dtype}", _marked(price, stands_in)


def _decode(forward: Forward, attention: GroupedAttention, samples: Floats) -> tuple[str, Priced]:
    """One query a sample over the keys it reads: those of the window where it slides."""
    dtype, substituted = cache_rows(forward, "decode_attention")
    price = forward.profile.decode_attention(
        attention.keys_read(forward.context),
        samples,
        attention.heads,
        attention.kv_heads,
        attention.head_dim,
        dtype=dtype,
        extrapolate=forward.extrapolate,
    )
    return f"decode_attention/{dtype}", _marked(price, substituted)


def stands_in(forward: Forward) -> bool:
    """Whether decoding over a narrower cache than activations takes the rows of a cache as wide as they are."""
    family = "mla_decode" if forward.latent else "decode_attention"
    return forward.phase == "decode" and cache_rows(forward, family)[1]


def cache_rows(forward: Forward, family: str) -> tuple[str, bool]:
    """The dtype of the rows to use, and whether they stand in for a narrower cache that was not measured."""
    computed = forward.activation_dtype
    if forward.cache_dtype == computed:
        return computed, False
    own = f"{computed}_kv_{forward.cache_dtype}"
    if forward.extrapolate == "roofline" and not forward.profile.has(family, own):
        return computed, True
    return own, False


def _marked(price: Priced, substituted: bool) -> Priced:
    return modelled(price.seconds) if substituted else price
