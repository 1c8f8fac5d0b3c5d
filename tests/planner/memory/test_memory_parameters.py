"""Parameters of a rank add up to what is published, and are cut as launchers cut them (memory page, 3.3 and 10)."""

from __future__ import annotations

import numpy as np
import pytest
from memory_models import gpt, mixture

from planner.memory.parameters import embedding, head, layer, of_rank, units_of_rank
from planner.memory.split import layers_of_rank
from profiles.errors import ProfileError
from profiles.geometry import find_geometry, load_model
from profiles.geometry.diffusion_blocks import DiffusionBlock, adaln_ends

G8 = {
    # arXiv 2311.05610's neighbours in llm-foundry's throughput tables: vocabulary 50,368, 2,048 positions, biases.
    (2048, 24, 16): 1_315_950_592,
    (4096, 32, 32): 6_658_859_008,
    (5120, 40, 40): 12_853_954_560,
    (7168, 48, 56): 29_975_214_080,
    (8192, 80, 64): 64_862_437_376,
}


@pytest.mark.parametrize(("shape", "published"), G8.items(), ids=["1b", "7b", "13b", "30b", "70b"])
def test_mpt_has_its_published_parameters_on_one_rank(shape: tuple[int, int, int], published: int) -> None:
    assert of_rank(gpt(*shape, vocab=50368), 0) == (published, 0)


def test_gpt_175b_has_its_published_parameters() -> None:
    assert of_rank(gpt(12288, 96, 96), 0) == (174_615_846_912, 0)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("llama-3.1-405b", 405_853_388_800),
        ("qwen3-235b-a22b", 235_093_634_560),
        ("deepseek-v3", 671_026_419_200),
        ("mixtral-8x7b", 46_702_792_704),
    ],
)
def test_one_rank_holds_the_whole_model(name: str, published: int) -> None:
    assert sum(of_rank(load_model(name), 0)) == published


def test_dit_xl_2_has_its_published_parameters() -> None:
    # 32x32 latent of 4 channels in 2x2 patches: 256 fixed positions, 16 values in and 32 (mean, variance) out.
    ends = adaln_ends(1152, patch_values=16, output_values=32, positions=256, labels=1001)
    block = DiffusionBlock(1152, 16, 4608, "adaln")
    assert 28 * block.parameters + sum(weight.parameters for weight in ends) == 675_129_632


@pytest.mark.parametrize(
    ("name", "published"),
    [("wan2.1-1.3b", 1_418_996_800), ("wan2.1-14b", 14_288_491_584), ("flux", 11_901_408_320)],
)
def test_diffusion_transformers_have_the_parameters_of_their_checkpoints(name: str, published: int) -> None:
    # fp32 files: diffusion_pytorch_model.safetensors of Wan-AI/Wan2.1-T2V-1.3B has 5,676,070,424 bytes, 4 a parameter
    # and 83,224 of header; the index of the 14B transformer states a total_size of 57,153,966,336, 4 a parameter.
    # flux1-dev.safetensors of black-forest-labs/FLUX.1-dev has 23,802,932,552 bytes: bf16, and 115,912 of header.
    assert of_rank(find_geometry(name), 0) == (published, 0)


def test_rank_0_of_gpt_175b_holds_12_layers_embedding_and_positions() -> None:
    # G9: t 8, p 8, v 3.
    found = of_rank(gpt(12288, 96, 96), 0, num_stages=8, chunks_per_rank=3, tensor_ranks=8)
    assert found == (2_822_731_776, 0)


def test_deepseek_v3_over_64_expert_ranks() -> None:
    assert of_rank(load_model("deepseek-v3"), 0, expert_ranks=64) == (17_117_648_384, 10_217_324_544)


def test_a_tied_head_is_a_copy_on_the_last_rank_and_nothing_on_the_only_one() -> None:
    model = gpt(1024, 8, 16)
    assert head(model, alone=True) == 2 * 1024
    assert head(model) == 2 * 1024 + 51200 * 1024
    alone = of_rank(model, 0).dense
    assert sum(of_rank(model, rank, num_stages=4).dense for rank in range(4)) == alone + 51200 * 1024


def test_an_untied_head_is_its_own_matrix_on_one_rank_too() -> None:
    model = load_model("llama-3.1-8b")
    assert head(model, alone=True) == head(model) == 4096 + 128_256 * 4096


def test_tensor_ranks_copy_norms_positions_and_output_biases() -> None:
    model = gpt(1024, 8, 16)
    kind = model.runs[0].kind
    # Copied: two layer norms (4h), the biases of the attention's and the FFN's outputs (2h).
    assert 4 * layer(kind, 4).dense == layer(kind).dense + 3 * 6 * 1024
    assert 4 * embedding(model, 4) == embedding(model) + 3 * 2048 * 1024


def test_key_value_heads_fewer_than_tensor_ranks_are_copied() -> None:
    kind = load_model("llama-3.1-70b").runs[0].kind  # 8 key-value heads
    one_head = 2 * 128 * 8192
    assert layer(kind, 16).dense - layer(kind, 8).dense // 2 == one_head // 2 + 2 * 8192 // 2


def test_a_vocabulary_that_ranks_do_not_divide_is_padded() -> None:
    model = gpt(1024, 8, 16, vocab=50257)
    assert embedding(model, 8) == 6283 * 1024 + 2048 * 1024  # 50,264 rows


def test_experts_are_cut_by_their_own_ranks_alone() -> None:
    kind = load_model("mixtral-8x7b").runs[0].kind
    whole = layer(kind)
    assert layer(kind, 1, 4, 2) == (whole.dense, whole.experts // 8)
    assert layer(kind, 8).experts == whole.experts


def test_the_largest_unit_is_a_layer_or_an_end() -> None:
    model = load_model("llama-3.1-8b")
    kind = model.runs[0].kind
    assert units_of_rank(model, 0) == (128_256 * 4096 + 4096, 0)
    assert units_of_rank(model, 1, num_stages=4) == (kind.parameters, 0)
    assert units_of_rank(load_model("deepseek-v3"), 0, expert_ranks=64).experts == 4 * 3 * 7168 * 2048


def test_pipeline_ranks_take_every_pth_part_of_the_layers() -> None:
    # 2 dense and 6 moe layers in 4 stages of 2: rank 0 has stages 0 and 2, rank 1 has 1 and 3.
    model = mixture(dense=2, layers=8)
    ranks = [[(kind.name, count) for kind, count in layers_of_rank(model, rank, 2, 2)] for rank in (0, 1)]
    assert ranks == [[("dense", 2), ("moe", 2)], [("moe", 2), ("moe", 2)]]


def test_stages_that_do_not_divide_the_layers_are_refused() -> None:
    with pytest.raises(ProfileError, match="expected stages times chunks to divide the 32 layers of llama"):
        of_rank(load_model("llama-3.1-8b"), 0, num_stages=5)


def test_counts_of_many_layouts_are_those_of_each() -> None:
    kind = load_model("deepseek-v3").runs[1].kind
    t, e, u = np.array([[1], [2], [8]]), np.array([1, 64, 8, 256]), np.array([1, 2, 4, 1])
    many = layer(kind, t, e, u)
    assert many.dense.shape == (3, 1)
    assert many.dense[:, 0].tolist() == [layer(kind, ranks).dense for ranks in (1, 2, 8)]
    assert many.experts.tolist() == [layer(kind, 1, x, y).experts for x, y in zip(e.tolist(), u.tolist(), strict=True)]


def test_a_number_that_does_not_divide_experts_is_refused_in_an_array_too() -> None:
    with pytest.raises(ProfileError, match="expert_ranks"):
        layer(load_model("deepseek-v3").runs[1].kind, 1, np.array([64, 3]))
