"""What a forward holds beside weights and cache, by hand for grouped and latent attention."""

from __future__ import annotations

from planner.memory.inference import (
    exchange_buffer_bytes_per_token,
    expert_buffer_bytes_per_copy,
    expert_matrix_bytes,
    layer_workspace_bytes_per_token,
    residual_stream_bytes_per_token,
    weight_bytes,
)
from profiles.geometry import load_model
from profiles.geometry.feed_forward import Experts
from profiles.geometry.spec import ModelSpec


def test_latents_expand_in_prefill_and_stay_latent_in_decoding() -> None:
    moe = load_model("deepseek-v3").runs[1].kind
    # 128 heads: query 192, key 192, value 128, output 128; absorbed: query 192, latent 576, result 512, output 128.
    assert layer_workspace_bytes_per_token(moe, absorbed=False) == 128 * (192 + 192 + 128 + 128) * 2
    assert layer_workspace_bytes_per_token(moe, absorbed=True) == 128 * (192 + 576 + 512 + 128) * 2


def test_the_larger_of_attention_and_feed_forward_counts() -> None:
    llama = load_model("llama-3.1-8b").runs[0].kind
    assert layer_workspace_bytes_per_token(llama, absorbed=True) == 2 * 14336 * 2
    mixtral = load_model("mixtral-8x7b").runs[0].kind
    assert layer_workspace_bytes_per_token(mixtral, absorbed=True) == (2 * 32 + 2 * 8) * 128 * 2

    gpt = ModelSpec(hidden=64, num_layers=1, num_heads=4, ffn=256, vocab=512, gated=False).geometry().runs[0].kind
    assert layer_workspace_bytes_per_token(gpt, absorbed=True) == 256 * 2  # as much as 4 times 64 of attention


def test_an_expert_is_its_matrices() -> None:
    assert expert_matrix_bytes(64, Experts(8, 2, 32, gated=True, bias=True), 2) == 3 * 64 * 32 * 2
    assert expert_matrix_bytes(64, Experts(8, 2, 32, gated=False), 1) == 2 * 64 * 32


def test_weights_in_two_dtypes() -> None:
    kind = load_model("llama-3.1-8b").runs[0].kind
    vectors = 2 * 4096
    found = weight_bytes(((weight, 2) for weight in kind.weights), lambda weight: 2 if weight.vector else 1)
    assert found == 2 * (kind.parameters + vectors)


def test_buffers_of_a_token() -> None:
    assert residual_stream_bytes_per_token(7168) == 2 * 7168 * 2
    assert exchange_buffer_bytes_per_token(7168, 8, sent_element_bytes=1, received_element_bytes=2) == 7168 * 8 * 3
    experts = Experts(256, 8, 2048)
    held = expert_buffer_bytes_per_copy(7168, experts, received_element_bytes=1, sent_element_bytes=2)
    assert held == 7168 * 3 + 2 * 2048 * 2
