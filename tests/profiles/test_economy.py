"""Splitting work is never a free lunch: what is modelled gets no more efficient when there is less of it."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles.encoder import Fitted, surface
from profiles.errors import ProfileError
from profiles.library import load
from profiles.priced import INTERPOLATED, MEASURED, MODELLED
from profiles.profile import Profile
from profiles.table import CostTable

ALL = ["a100-sxm", "b200-sxm", "h100-sxm", "h200-sxm", "l40s"]
WITH_ENCODER = [name for name in ALL if name != "a100-sxm"]
Floats = npt.NDArray[np.float64]


def attention(profile: Profile, q: object, kv: object, heads: object, head_dim: int = 128) -> Floats:
    return profile.attention(q, kv, heads, head_dim, extrapolate="roofline").seconds  # type: ignore[arg-type]


def fitted(profile: Profile, family: str) -> Fitted:
    entry = next(t for t in profile.document.tables if (t.family, t.dtype) == (family, "bf16"))
    assert entry.roofline is not None
    return Fitted(profile.cost_table(family), entry.roofline.coefficients, 2.0)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=60, deadline=None)
@given(
    length=st.integers(1024, 500_000),
    heads=st.sampled_from([1, 12, 24, 40]),
    split=st.tuples(*[st.integers(1, 8)] * 3),
)
def test_splitting_attention_is_never_cheaper_in_total(
    name: str, length: int, heads: int, split: tuple[int, int, int]
) -> None:
    q, h, k = split
    profile = load(name)
    whole = attention(profile, length, length, heads)
    parts = attention(profile, np.ceil(length / (q * k)), np.ceil(length / k), heads / h)
    assert q * h * k * k * parts >= whole * (1 - 1e-9)


@pytest.mark.parametrize("name", ALL)
def test_more_heads_and_longer_sequences_never_lower_the_rate_and_it_saturates(name: str) -> None:
    heads, length = np.meshgrid(np.arange(1, 65), 2.0 ** np.arange(8, 20, 0.5), indexing="ij")
    rate = 4 * 128 * heads * length**2 / attention(load(name), length, length, heads)
    assert (np.diff(rate, axis=0) >= -1e-9 * rate[:-1]).all()
    assert (np.diff(rate, axis=1) >= -1e-9 * rate[:, :-1]).all()
    assert rate[11, -1] / rate[11, -5] < 1.02
    assert rate.max() < 0.85 * load(name).device.peak_flop_per_s["bf16"]


@pytest.mark.parametrize("name", ALL)
def test_modelled_attention_has_no_steps(name: str) -> None:
    # One percent longer is never more than (1.01)^2 dearer: no jump at a measured length, nor at the table's end.
    length = 512 * 1.01 ** np.arange(700)
    seconds = attention(load(name), length, length, 12)
    growth = seconds[1:] / seconds[:-1]
    assert growth.min() >= 1.0
    assert growth.max() <= 1.01**2 + 1e-9


@pytest.mark.parametrize("heads", [1, 2, 12, 40])
def test_one_slow_causal_row_does_not_reach_another_shape(heads: int) -> None:
    profile = load("h200-sxm")
    encoder, causal = fitted(profile, "encoder_attention"), fitted(profile, "prefill_attention")
    columns, seconds = causal.table.columns, causal.table.seconds.copy()
    alike = (columns["head_dim"] == 64) & (columns["queries_per_kv_head"] == 1) & (columns["batch"] == 1)
    alike &= columns["heads"] == heads
    row = alike & (columns["length"] == columns["length"][alike].max())
    assert row.sum() == 1
    seconds[row] *= 2
    slow = Fitted(CostTable(causal.table.family, columns, seconds), causal.coefficients, 2.0)
    before, after = surface(128, encoder, causal), surface(128, encoder, slow)
    assert before is not None
    assert after is not None
    assert after["flop_per_s"] == pytest.approx(before["flop_per_s"], rel=1e-2)


@pytest.mark.parametrize("name", WITH_ENCODER)
@pytest.mark.parametrize("head_dim", [64, 72, 80])
def test_the_surface_lies_at_the_level_of_the_long_rows(name: str, head_dim: int) -> None:
    profile = load(name)
    table = profile.cost_table("encoder_attention")
    columns = table.columns
    long = (columns["head_dim"] == head_dim) & (columns["length"] >= 8192) & ~table.estimated
    heads, length, measured = columns["heads"][long], columns["length"][long], table.seconds[long]
    off = attention(profile, length + 1e-6, length, heads, head_dim) / measured - 1  # a hair off square: modelled
    assert abs(np.median(off)) < 0.03
    assert np.median(np.abs(off)) < 0.06
    assert np.percentile(np.abs(off), 90) < 0.17


@pytest.mark.parametrize("name", WITH_ENCODER)
def test_measured_rows_are_exact_under_the_roofline_and_rows_between_are_interpolated(name: str) -> None:
    profile = load(name)
    table = profile.cost_table("encoder_attention")
    rows = np.flatnonzero((table.columns["head_dim"] == 64) & ~table.estimated)
    heads, length = table.columns["heads"][rows], table.columns["length"][rows]
    price = profile.attention(length, length, heads, 64, extrapolate="roofline")
    assert np.array_equal(price.seconds, table.seconds[rows])
    assert set(price.source.tolist()) == {MEASURED}
    assert int(profile.attention(5000, 5000, 8, 64, extrapolate="roofline").source) == INTERPOLATED
    assert int(profile.attention(5000, 5000, 8, 128, extrapolate="roofline").source) == MODELLED


@pytest.mark.parametrize("name", WITH_ENCODER)
@pytest.mark.parametrize("heads", [1, 5, 24])
def test_what_the_last_row_is_off_fades_beyond_it(name: str, heads: int) -> None:
    profile = load(name)
    length = np.array([65_536, 65_537, 131_072, 524_288])
    square = attention(profile, length, length, heads, 64)
    model = attention(profile, length + 1e-6, length, heads, 64)
    assert square[1] == pytest.approx(square[0], rel=1e-3)
    off = np.abs(square / model - 1)
    assert off[2] <= off[0] / 3 + 1e-9
    assert off[3] < 0.01


def test_unequal_lengths_inside_the_measured_box_need_no_roofline_and_beyond_it_do() -> None:
    profile = load("h200-sxm")
    inside = profile.attention(2048, 4096, 16, 64)
    assert inside.seconds == profile.attention(2048, 4096, 16, 64, extrapolate="roofline").seconds
    with pytest.raises(ProfileError, match=r"length 70000 is outside the measured 1\.\.65536"):
        profile.attention(60_000, 70_000, 16, 64)
    with pytest.raises(ProfileError, match=r"heads .* is outside the measured 1\.\.2048"):
        profile.attention(10, 4096, 1, 64)
    with pytest.raises(ProfileError, match="refuse or roofline"):
        profile.attention(2048, 4096, 16, 64, extrapolate="guess")  # type: ignore[arg-type]


def test_a_head_dimension_without_a_causal_pair_costs_in_proportion_but_never_less() -> None:
    encoder = fitted(load("h200-sxm"), "encoder_attention")
    rates = {d: surface(d, encoder, None) for d in (32, 64, 80, 160)}
    level = {d: rate["flop_per_s"] for d, rate in rates.items() if rate is not None}
    assert level[160] == level[80]
    assert level[32] == level[64] / 2


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("n", "k"), [(1536, 1536), (8960, 1536), (5120, 13_824), (12_288, 3072)])
def test_products_beyond_the_table_are_never_dearer_a_row_than_their_parts_beyond_it(name: str, n: int, k: int) -> None:
    rows = np.float64(32_768) * np.float64(1.05) ** np.arange(60, dtype=np.float64)
    seconds = load(name).gemm(rows, n, k, extrapolate="roofline").seconds / rows
    assert (np.diff(seconds) <= 1e-9 * seconds[:-1]).all()
