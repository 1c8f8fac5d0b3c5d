"""Seconds of the attention kernel of one layer on one attention GPU, between the projections."""

from __future__ import annotations

from planner.papers.findep.setting import Floats, Setting
from profiles.geometry.attention import GroupedAttention, LatentAttention
from profiles.latent import latent_decode, latent_prefill
from profiles.priced import Priced, modelled


def kernel(setting: Setting, attention: GroupedAttention | LatentAttention, samples: Floats) -> tuple[str, Priced]:
    """Name of the family, and the price of micro-batches of ``samples``. Raises ProfileError outside the tables."""
    if isinstance(attention, LatentAttention):
        return _latent(setting, attention, samples)
    return (
        _prefill(setting, attention, samples)
        if setting.given.phase == "prefill"
        else _decode(setting, attention, samples)
    )


def _latent(setting: Setting, attention: LatentAttention, samples: Floats) -> tuple[str, Priced]:
    given = setting.given
    if given.phase == "prefill":
        dtype = given.activation_dtype
        price = latent_prefill(
            setting.profile, given.context, samples, attention.heads, dtype=dtype, extrapolate=given.extrapolate
        )
        return f"mla_prefill/{dtype}", price

    def look_up(dtype: str) -> Priced:
        return latent_decode(
            setting.profile, given.context, samples, attention.heads, dtype=dtype, extrapolate=given.extrapolate
        )

    dtype, substituted = cache_rows(setting, "mla_decode")
    return f"mla_decode/{dtype}", _marked(look_up(dtype), substituted)


def _prefill(setting: Setting, attention: GroupedAttention, samples: Floats) -> tuple[str, Priced]:
    """A sliding window of W keys: rows of that window, else causal pieces of 2 W tokens, which have as many pairs."""
    given, window = setting.given, attention.window
    dtype, length = given.activation_dtype, given.tokens_per_sample
    family = f"prefill_attention/{dtype}"
    if window is None or length <= window:
        return family, _grouped_prefill(setting, attention, length, samples)
    workload = f"window_{window}"
    if setting.profile.has("prefill_attention", dtype, workload=workload):
        axes = {"head_dim": attention.head_dim, "queries_per_kv_head": attention.heads // attention.kv_heads}
        axes |= {"heads": attention.heads, "length": length}
        price = setting.profile.operation(
            "prefill_attention",
            {**axes, "batch": samples},
            dtype=dtype,
            workload=workload,
            extrapolate=given.extrapolate,
        )
        return family, price
    pieces = max(1.0, length / (2 * window))
    price = _grouped_prefill(setting, attention, min(length, 2 * window), samples * pieces)
    return family, modelled(price.seconds)


def _grouped_prefill(setting: Setting, attention: GroupedAttention, length: int, batch: Floats) -> Priced:
    return setting.profile.prefill_attention(
        length,
        batch,
        attention.heads,
        attention.kv_heads,
        attention.head_dim,
        dtype=setting.given.activation_dtype,
        extrapolate=setting.given.extrapolate,
    )


def _decode(setting: Setting, attention: GroupedAttention, samples: Floats) -> tuple[str, Priced]:
    """One query a sample over the keys it reads: those of the window where it slides."""
    given = setting.given
    dtype, substituted = cache_rows(setting, "decode_attention")
    price = setting.profile.decode_attention(
        attention.keys_read(given.context),
        samples,
        attention.heads,
        attention.kv_heads,
        attention.head_dim,
        dtype=dtype,
        extrapolate=given.extrapolate,
    )
    return f"decode_attention/{dtype}", _marked(price, substituted)


def stands_in(setting: Setting) -> bool:
    """Whether decoding over a narrower cache than activations takes the rows of a cache as wide as they are."""
    given = setting.given
    latent = isinstance(setting.model.kinds[0][0].attention, LatentAttention)
    return given.phase == "decode" and cache_rows(setting, "mla_decode" if latent else "decode_attention")[1]


def cache_rows(setting: Setting, family: str) -> tuple[str, bool]:
    """The dtype of the rows to use, and whether they stand in for a narrower cache that was not measured."""
    given = setting.given
    computed = given.activation_dtype
    if given.cache_dtype == computed:
        return computed, False
    own = f"{computed}_kv_{given.cache_dtype}"
    if given.extrapolate == "roofline" and not setting.profile.has(family, own):
        return computed, True
    return own, False


def _marked(price: Priced, substituted: bool) -> Priced:
    return modelled(price.seconds) if substituted else price
