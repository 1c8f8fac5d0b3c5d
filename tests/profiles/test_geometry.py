"""Geometries of diffusion transformers: golden numbers, sums that must agree, and hostile sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from profiles.errors import ProfileError, UnknownNameError
from profiles.geometry import GeometrySpec, element_bytes, find_geometry, geometry_names

ALL = geometry_names()


def test_wan_13b_forward_flops_are_the_golden_number() -> None:
    # Z12: L = 32,760; F n = 282,980,013,834,240 FLOPs, 69.9 % of them self-attention.
    wan = find_geometry("wan2.1-1.3b")
    assert wan.forward_flops(32_760) == 282_980_013_834_240
    assert wan.attention_flops(32_760) / wan.forward_flops(32_760) == pytest.approx(0.699, abs=5e-4)


def test_a_joint_layer_with_ffn_four_times_hidden_has_knapformers_flops() -> None:
    # (17) with f = 4 d: 24 L d^2 + 4 L^2 d, L with the text tokens.
    flux = find_geometry("flux")
    length = 4096 + 512
    assert flux.ffn == 4 * flux.hidden
    assert flux.layer_flops(4096) == 24 * length * 3072**2 + 4 * length**2 * 3072


@pytest.mark.parametrize("name", ALL)
@given(tokens=st.integers(1, 600_000))
def test_projections_and_attention_add_up_to_the_formula(name: str, tokens: int) -> None:
    model = find_geometry(name)
    for kind in (None, *(kind for kind, _ in model.kinds())):
        products = sum(
            2 * p.count * p.row_count(tokens, model.text_tokens) * p.out_features * p.in_features
            for p in model.projections(kind)
        )
        cross = 0 if model.joint else 4 * tokens * model.text_tokens * model.hidden
        attention = 4 * model.attention_length(tokens) ** 2 * model.hidden
        assert products + cross + attention == model.layer_flops(tokens)


def test_fifteen_seconds_of_1080p_are_the_golden_token_count() -> None:
    # Z11: 16 fps, 241 frames -> 61 latent frames x 68 x 120.
    assert find_geometry("wan2.1-1.3b").tokens(1920, 1080, 241) == 61 * 68 * 120 == 497_760


def test_an_image_is_one_latent_frame() -> None:
    assert find_geometry("flux").tokens(1024, 1024) == 64 * 64
    assert find_geometry("wan2.1-14b").tokens(1024, 1024, 1) == 64 * 64


@pytest.mark.parametrize(("frames", "latent"), [(1, 1), (2, 2), (5, 2), (6, 3), (81, 21), (83, 22)])
def test_a_part_of_a_latent_step_counts_as_a_whole_one(frames: int, latent: int) -> None:
    assert find_geometry("wan2.1-1.3b").tokens(16, 16, frames) == latent


@given(width=st.integers(1, 4000), height=st.integers(1, 4000), frames=st.integers(1, 500))
def test_more_pixels_or_frames_are_never_fewer_tokens(width: int, height: int, frames: int) -> None:
    model = find_geometry("hunyuanvideo")
    here = model.tokens(width, height, frames)
    assert here >= 1
    assert model.tokens(width + 1, height, frames) >= here
    assert model.tokens(width, height, frames + 1) >= here


@pytest.mark.parametrize("bad", [0, -8])
def test_sizes_below_one_are_refused_by_name(bad: int) -> None:
    with pytest.raises(ProfileError, match="expected height >= 1") as caught:
        find_geometry("flux").tokens(64, bad)
    assert caught.value.code == "out_of_range"


@pytest.mark.parametrize("bad", [True, 12.5, "64"])
def test_sizes_that_are_not_whole_numbers_are_refused(bad: object) -> None:
    with pytest.raises(ProfileError) as caught:
        find_geometry("flux").tokens(bad, 64)  # type: ignore[arg-type]
    assert caught.value.code == "wrong_type"


def test_heads_divide_hidden_in_every_built_in_geometry() -> None:
    for name in ALL:
        model = find_geometry(name)
        assert model.head_dim * model.heads == model.hidden
        assert model.head_dim == 128
        assert sum(count for _, count in model.kinds()) == model.layers


def test_an_unknown_model_lists_the_known_ones_and_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'wan2.1-14b'\?") as caught:
        find_geometry("wan-14b")
    assert caught.value.code == "unknown_model"
    assert caught.value.known == tuple(ALL)


def test_a_custom_geometry_has_the_same_fields() -> None:
    custom = find_geometry(
        {"name": "mine", "hidden": 1536, "heads": 12, "ffn": 8960, "text_tokens": 512, "cross_layers": 30}
    )
    assert custom.forward_flops(32_760) == find_geometry("wan2.1-1.3b").forward_flops(32_760)


def test_a_custom_geometry_is_checked() -> None:
    base = {"hidden": 100, "heads": 12, "ffn": 10, "text_tokens": 0, "cross_layers": 1}
    with pytest.raises(ProfileError, match="not a multiple of heads"):
        find_geometry(base)
    with pytest.raises(ProfileError, match="either cross_layers"):
        GeometrySpec(hidden=120, heads=12, ffn=10, text_tokens=0, cross_layers=1, double_layers=1).geometry()
    with pytest.raises(ValidationError):
        find_geometry({**base, "layers": 3})


def test_an_element_has_the_bytes_of_its_dtype() -> None:
    assert (element_bytes("bf16"), element_bytes("fp8"), element_bytes("fp32")) == (2, 1, 4)
    with pytest.raises(ProfileError, match="known: "):
        element_bytes("bf17")
