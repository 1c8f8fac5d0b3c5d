"""The memory model gives the counts and bytes that the memory page publishes (its section 10)."""

from __future__ import annotations

import numpy as np
import pytest

from planner import memory


def test_in_flight_of_1f1b_interleaved_and_few_micro_batches() -> None:
    ranks = np.arange(4)
    one = memory.in_flight_chunks("1f1b", ranks, num_stages=4, num_micro_batches=8)
    two = memory.in_flight_chunks("interleaved", ranks, num_stages=4, num_micro_batches=8, chunks_per_rank=2)
    few = memory.in_flight_chunks("1f1b", ranks, num_stages=4, num_micro_batches=2)
    assert one.tolist() == [4, 3, 2, 1]
    assert two.tolist() == [11, 9, 7, 5]
    assert few.tolist() == [2, 2, 2, 1]


def test_gpipe_keeps_every_micro_batch_on_every_rank() -> None:
    held = memory.in_flight_chunks("gpipe", np.arange(3), num_stages=3, num_micro_batches=6)
    assert held.tolist() == [6, 6, 6]


def test_interleaving_of_one_chunk_is_1f1b() -> None:
    ranks = np.arange(4)
    one = memory.in_flight_chunks("interleaved", ranks, num_stages=4, num_micro_batches=8, chunks_per_rank=1)
    assert one.tolist() == [4, 3, 2, 1]


def test_interleaved_rank_0_keeps_the_published_share_of_layers() -> None:
    # L(1 + (p-1)/(pv)) layers: p = 8, v = 3 gives 24 + 7 = 31 chunks (G9).
    assert memory.in_flight_chunks("interleaved", 0, num_stages=8, num_micro_batches=64, chunks_per_rank=3) == 31


def test_dit_xl_2_has_its_published_parameters() -> None:
    # 32x32 latent of 4 channels in 2x2 patches: 256 fixed positions, 16 values in and 32 (mean, variance) out.
    blocks = 28 * memory.dit_block_parameters(1152)
    ends = memory.dit_end_parameters(1152, patch_values=16, output_values=32, positions=256, labels=1001)
    assert blocks + ends == 675_129_632


@pytest.mark.parametrize(
    ("hidden", "ffn", "layers", "published"),
    [(1536, 8960, 30, 1_418_996_800), (5120, 13824, 40, 14_288_491_584)],
    ids=["wan2.1-1.3b", "wan2.1-14b"],
)
def test_wan_has_the_parameters_of_its_checkpoint(hidden: int, ffn: int, layers: int, published: int) -> None:
    # fp32 files: diffusion_pytorch_model.safetensors of Wan-AI/Wan2.1-T2V-1.3B has 5,676,070,424 bytes, 4 a parameter
    # and 83,224 of header; the index of the 14B transformer states a total_size of 57,153,966,336, 4 a parameter.
    blocks = layers * memory.cross_attention_dit_block_parameters(hidden, ffn)
    assert blocks + memory.cross_attention_dit_end_parameters(hidden) == published


def test_flux_has_the_parameters_of_its_checkpoint() -> None:
    # flux1-dev.safetensors of black-forest-labs/FLUX.1-dev has 23,802,932,552 bytes: bf16, and 115,912 of header.
    blocks = 19 * memory.double_stream_block_parameters(3072, 12288, 128)
    blocks += 38 * memory.single_stream_block_parameters(3072, 12288, 128)
    assert blocks + memory.joint_dit_end_parameters(3072) == 11_901_408_320


def dense_parameters(hidden: int, layers: int, heads: int, kv_heads: int, ffn: int, vocabulary: int) -> int:
    layer = memory.attention_parameters(hidden, heads, kv_heads, hidden // heads)
    layer += memory.ffn_parameters(hidden, ffn, gated=True) + 2 * memory.norm_parameters(hidden, "rms")
    ends = 2 * memory.embedding_parameters(vocabulary, hidden) + memory.norm_parameters(hidden, "rms")
    return int(layers * layer + ends)


@pytest.mark.parametrize(
    ("shape", "published"),
    [
        ((4096, 32, 32, 8, 14336, 128256), 8_030_261_248),
        ((8192, 80, 64, 8, 28672, 128256), 70_553_706_496),
        ((16384, 126, 128, 8, 53248, 128256), 405_853_388_800),
    ],
    ids=["llama-3-8b", "llama-3-70b", "llama-3-405b"],
)
def test_llama_3_has_its_published_parameters(shape: tuple[int, ...], published: int) -> None:
    assert dense_parameters(*shape) == published


def test_gpt_175b_with_biases_layer_norms_and_positions_has_its_published_parameters() -> None:
    layer = memory.attention_parameters(12288, 96, 96, 128, bias=True) + 2 * memory.norm_parameters(12288, "layer")
    layer += memory.ffn_parameters(12288, 49152, gated=False, bias=True)
    ends = memory.embedding_parameters(51200 + 2048, 12288) + memory.norm_parameters(12288, "layer")
    assert 96 * layer + ends == 174_615_846_912


def test_tensor_parallelism_splits_matrices_and_copies_output_biases() -> None:
    whole = memory.ffn_parameters(1024, 4096, gated=False, bias=True)
    part = memory.ffn_parameters(1024, 4096, gated=False, bias=True, tensor_ranks=4)
    assert 4 * part == whole + 3 * 1024


def test_llama_3_8b_stores_139392_bytes_a_token_and_layer() -> None:
    attention = memory.attention_activation_bytes_per_token(4096, 32, 8, 128)
    assert attention + memory.ffn_activation_bytes_per_token(4096, 14336, gated=True) == 139_392


def test_dit_stores_attention_ffn_and_eight_bytes_of_hidden_for_modulation() -> None:
    # h = 1536, a·d = 1536, f = 8960: (4 + 4 + 4)h + 4·12, 4h + 4f, 8h.
    expected = 12 * 1536 + 48 + 4 * 1536 + 4 * 8960 + 8 * 1536
    assert memory.dit_activation_bytes_per_token(1536, 12, 128, 8960) == expected


def test_activations_of_many_layouts_are_one_call() -> None:
    tensor = np.array([1, 2, 4])
    many = memory.attention_activation_bytes_per_token(4096, 32, 8, 128, tensor_ranks=tensor, norm_ranks=tensor)
    alone = [
        memory.attention_activation_bytes_per_token(4096, 32, 8, 128, tensor_ranks=t, norm_ranks=t) for t in (1, 2, 4)
    ]
    assert many.tolist() == alone


def test_full_sharding_divides_states_and_holds_two_units_and_one_of_gradients() -> None:
    # ZeRO-3 of 7.5e9 parameters at 16 bytes over 64 ranks with no unit: 1.875 GB (G1).
    bare = memory.sharded_state_bytes(7.5e9, 16, shard_ranks=64, unit_parameters=0, element_bytes=2)
    held = memory.sharded_state_bytes(7.5e9, 16, shard_ranks=64, unit_parameters=1e8, element_bytes=2)
    alone = memory.sharded_state_bytes(7.5e9, 16, shard_ranks=1, unit_parameters=1e8, element_bytes=2)
    assert bare == 1.875e9
    assert held - bare == 6e8
    assert alone == 120e9
