"""Latent attention is priced from rows of its own, else from what grouped rows say of the device."""

from __future__ import annotations

import numpy as np
import pytest

from profiles import ProfileError, load, names
from profiles.document import Device, ProfileDocument, Provenance, Table
from profiles.latent import latent_decode, latent_prefill, latent_product
from profiles.priced import MEASURED, MODELLED, Priced
from profiles.profile import Profile

PROFILES = sorted(names())
HEADS = 128


def prefill(profile: Profile, length: object, batch: object) -> Priced:
    return latent_prefill(profile, length, batch, HEADS, dtype="bf16", extrapolate="roofline")  # type: ignore[arg-type]


def decode(profile: Profile, kv_length: object, batch: object) -> Priced:
    return latent_decode(profile, kv_length, batch, HEADS, dtype="bf16", extrapolate="roofline")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PROFILES)
def test_modelled_kernels_are_within_the_devices_peak_and_not_absurdly_below(name: str) -> None:
    profile = load(name)
    flops, bandwidth = profile.device.peak_flop_per_s["bf16"], profile.device.memory_bandwidth_bytes_per_s
    assert bandwidth is not None
    # Causal prefill: half of 2 (192 + 128) FLOPs a pair. Decode: 2 (576 + 512) FLOPs and 576 cached numbers a key.
    tokens = 4096
    ideal = 320 * HEADS * tokens**2 * 8 / flops
    assert 0.25 < ideal / float(prefill(profile, tokens, 8).seconds) < 1.0
    keys = 128 * 8192
    ideal = max(2 * 1088 * HEADS * keys / flops, 2 * 576 * keys / bandwidth)
    assert 0.25 < ideal / float(decode(profile, 8192, 128).seconds) < 1.0
    for before in (True, False):
        price = latent_product(profile, 1, HEADS, before=before, dtype="bf16", extrapolate="roofline")
        assert 0.2 < 2 * HEADS * 128 * 512 / bandwidth / float(price.seconds) < 1.0


@pytest.mark.parametrize("name", PROFILES)
def test_more_work_takes_longer(name: str) -> None:
    profile, sizes = load(name), np.array([1, 2, 16, 128, 1024])
    for price in (prefill(profile, 16 * sizes, 4), prefill(profile, 512, sizes), decode(profile, 64 * sizes, 8),
                  decode(profile, 4096, sizes)):  # fmt: skip
        assert (np.diff(price.seconds) > 0).all()
        assert (price.source == MODELLED).all()


def test_without_rows_a_refusal_says_what_would_price_it() -> None:
    with pytest.raises(ProfileError, match=r"no mla_prefill/bf16 rows.*`extrapolate: roofline`") as caught:
        latent_prefill(load("h200-sxm"), 1024, 1, HEADS, dtype="bf16", extrapolate="refuse")
    assert caught.value.code == "outside_measured_range"


def test_rows_of_latent_attention_come_first() -> None:
    axes = {"heads": [128, 128], "batch": [1, 1], "kv_length": [1024, 4096]}
    table = Table(family="mla_decode", dtype="bf16", provenance="p", columns=axes, latency_s=[1e-5, 3e-5])
    source = Provenance(id="p", title="made", licence="none")
    document = ProfileDocument(name="made", device=Device(name="made"), provenance=[source], tables=[table])
    price = decode(Profile(document, ""), np.array([1024, 4096]), 1)
    assert price.seconds.tolist() == [1e-5, 3e-5]
    assert (price.source == MEASURED).all()
