"""Activations per layer and micro-batch are those of the papers and of the memory page (3.4 and 10)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_models import gpt, mixture

from planner.memory.activations import MODULES, Cut, Kernels, embedding_bytes, head_bytes, kept_by_part, layer_bytes
from planner.memory.in_flight import in_flight_chunks, peak_resident
from planner.memory.parameters import of_rank
from planner.memory.split import layers_of_rank
from planner.memory.states import zero_states
from planner.memory.workspace import head_workspace_bytes, layer_workspace_bytes
from profiles.geometry import find_geometry, load_model

GIB = 2**30
PUBLISHED = Kernels(flash=False, dropout=True)
"""What arXiv 2205.05198 counts."""


# Model (hidden, layers, heads), micro-batch, p, v, GiB with no recomputation, GiB with sequence parallelism and
# selective recomputation, and GiB of model states at 18 bytes: arXiv 2205.05198, figure 1; t is 8.
G7 = [
    ((6144, 48, 64), 4, 1, 1, 59.25, 9.5625, 45.5625),
    ((12288, 96, 96), 1, 8, 3, 66.84375, 12.3515625, 45.5625),
    ((20480, 105, 128), 1, 35, 3, 114.0234375, 23.076171875, 31.640625),
    ((25600, 128, 160), 1, 64, 1, 131.25, 26.5625, 32.958984375),
]


def resident_layers(layers: int, p: int, v: int) -> float:
    """Layers whose activations the first rank holds, with enough micro-batches."""
    schedule = "interleaved" if v > 1 else "1f1b"
    chunks = in_flight_chunks(schedule, 0, num_stages=p, num_micro_batches=8 * p, chunks_per_rank=v)  # type: ignore[arg-type]
    return float(chunks) * layers / (p * v)


@pytest.mark.parametrize(("shape", "b", "p", "v", "none", "least", "states"), G7, ids=["22B", "175B", "530B", "1T"])
def test_activations_and_states_of_the_paper(
    shape: tuple[int, int, int], b: int, p: int, v: int, none: float, least: float, states: float
) -> None:
    model, layers = gpt(*shape), resident_layers(shape[1], p, v)
    kind = model.runs[0].kind
    plain = layer_bytes(kind, Cut(2048 * b, 2048, tensor_ranks=8), PUBLISHED)
    both = layer_bytes(kind, Cut(2048 * b, 2048, tensor_ranks=8, norm_ranks=8), PUBLISHED)
    assert plain.kept * layers / GIB == none
    assert both.selective * layers / GIB == least
    matrices = sum(weight.on_rank(8) for weight in kind.weights if not weight.vector)
    assert 18 * matrices * shape[1] / p / GIB == states


def test_the_share_of_each_technique_at_22b() -> None:
    # arXiv 2205.05198, figure 7, measured: 66.84, 49.42, 16.18 and 7.64 % of none; the formula is within 1.1 %.
    kind = gpt(6144, 48, 64).runs[0].kind
    plain = layer_bytes(kind, Cut(8192, 2048, 8), PUBLISHED)
    shards = layer_bytes(kind, Cut(8192, 2048, 8, 8), PUBLISHED)
    shares = [100 * each / plain.kept for each in (shards.kept, plain.selective, shards.selective, plain.input)]
    assert shares == pytest.approx([66.77, 49.37, 16.14, 7.59], abs=0.005)
    assert shares == pytest.approx([66.84, 49.42, 16.18, 7.64], rel=0.011)


@pytest.mark.parametrize(
    ("shape", "b", "p", "v", "none", "selective"),
    [
        ((6144, 48, 64), 4, 1, 1, 63_820_529_664, 11_165_237_248),
        ((12288, 96, 96), 1, 8, 3, 71_873_593_344, 13_627_293_696),
    ],
    ids=["22B", "175B"],
)
def test_calculon_counts_about_as_much(
    shape: tuple[int, int, int], b: int, p: int, v: int, none: int, selective: int
) -> None:
    # calculon-ai/calculon caa4b11 keeps more under selective recomputation: within 1 % and 9 % (page, section 11).
    layers = resident_layers(shape[1], p, v)
    kind = gpt(*shape).runs[0].kind
    plain = layer_bytes(kind, Cut(2048 * b, 2048, 8), PUBLISHED).kept
    both = layer_bytes(kind, Cut(2048 * b, 2048, 8, 8), PUBLISHED).selective
    assert plain * layers == pytest.approx(none, rel=0.01)
    assert both * layers == pytest.approx(selective, rel=0.09)


def test_rank_0_of_gpt_175b_under_zero_1() -> None:
    # G9: t 8, p 8, v 3, sequence parallel, selective, 64 micro-batches, states 2 + 4 + 12 over 16 ranks, 4 GB beside.
    model, cut = gpt(12288, 96, 96), Cut(2048, 2048, 8, 8)
    kind = model.runs[0].kind
    chunk = 4 * layer_bytes(kind, cut, PUBLISHED).selective
    layers = peak_resident("interleaved", 0, [chunk] * 3, num_stages=8, num_micro_batches=64)
    kept = layers + 8 * embedding_bytes(model.hidden, cut, dropout=True)
    assert kept == 13_287_686_144
    parameters = of_rank(model, 0, num_stages=8, chunks_per_rank=3, tensor_ranks=8).dense
    states = zero_states(1, parameters, shard_ranks=16, unit=0, param_bytes=2, grad_bytes=4, optimizer_bytes=12)
    assert sum(states) + kept + 4e9 == 36_341_125_632


def test_llama_3_8b_on_one_device() -> None:
    # G10: sequence 8,192, micro-batch 1, ends included.
    model = load_model("llama-3.1-8b")
    kind = model.runs[0].kind
    assert layer_bytes(kind, Cut(1)).kept == 139_392
    cut = Cut(8192)
    ends = embedding_bytes(model.hidden, cut) + head_bytes(model.hidden, model.vocab, cut)
    assert 32 * layer_bytes(kind, cut).kept + ends == 40_877_752_320


def test_logits_of_a_padded_vocabulary() -> None:
    # 50,257 tokens over 8 ranks are 6,283 rows each.
    assert head_bytes(1024, 50257, Cut(1, 0, 8)) == 4 * 1024 + 4 * 6283


def test_deepseek_v3_by_kind_of_layer() -> None:
    kinds = [kind for kind, _ in layers_of_rank(load_model("deepseek-v3"), 0, 1, 1)]
    assert [layer_bytes(kind, Cut(1)).kept for kind in kinds] == [340_608, 571_008]


def test_a_diffusion_block_keeps_attention_ffn_and_eight_bytes_of_hidden_for_modulation() -> None:
    # h = 1536, a·d = 1536, f = 8960: (4 + 4 + 4)h + 4·12, 4h + 4f, 8h.
    block = find_geometry("wan2.1-1.3b").runs[0].kind
    own = 12 * 1536 + 48 + 4 * 1536 + 4 * 8960 + 8 * 1536
    assert layer_bytes(block, Cut(1), Kernels(cross_attention=False)).kept == own
    # Cross-attention's norm in and out, its queries and results, and 32-bit statistics of its rows: 8h + 4·12.
    assert layer_bytes(block, Cut(1)).kept == own + 8 * 1536 + 48


def test_flash_attention_leaves_selective_recomputation_of_scores_nothing_to_save() -> None:
    kept, selective, _ = layer_bytes(load_model("llama-3.1-8b").runs[0].kind, Cut(4096, 4096))
    assert selective == kept


@pytest.mark.parametrize(
    ("module", "saved"),
    [
        ("norms", 4 * 7168 / 2),  # of two norms the output, 2h/q each
        ("attention_norm", 2 * 7168 / 2),
        ("ffn_norm", 2 * 7168 / 2),
        ("expert_activation", 8 / 2 * 2 * 2048),  # of routed experts alone
        ("ffn_activation", 8 / 2 * 2 * 2048 + 2 * 2048 / 4),  # 2f of each of 8 copies over q, and of shared experts
        ("latent_up", 128 * (4 * 192 + 2 * 128) / 4),  # query, key and value of 128 heads
        ("core_attention", 0),
    ],
)
def test_each_module_of_selective_recomputation_saves_its_own_tensors(module: str, saved: float) -> None:
    moe = load_model("deepseek-v3").runs[1].kind
    stored = layer_bytes(moe, Cut(1, 1, 4, 2), Kernels(selective=(module,)))  # type: ignore[arg-type]
    assert stored.kept - stored.selective == saved


@pytest.mark.parametrize(
    "kernels", [Kernels(), Kernels(flash=False, dropout=True, selective=("core_attention", "norms"))]
)
def test_parts_of_a_layer_sum_to_what_it_keeps(kernels: Kernels) -> None:
    cut = Cut(4096, 4096, 4, 4)
    for kind in (load_model("deepseek-v3").runs[1].kind, find_geometry("wan2.1-14b").runs[0].kind):
        stored = layer_bytes(kind, cut, kernels)
        assert sum(kept_by_part(kind, cut, kernels).values()) == pytest.approx(stored.kept)
        assert sum(kept_by_part(kind, cut, kernels, selective=True).values()) == pytest.approx(stored.selective)


def test_key_value_heads_fewer_than_tensor_ranks_keep_one_head_each() -> None:
    kind = load_model("llama-3.1-70b").runs[0].kind  # 64 heads of 128, 8 of keys and values
    eight, sixteen = (layer_bytes(kind, Cut(1, 1, ranks)).kept for ranks in (8, 16))
    whole = layer_bytes(kind, Cut(1)).kept
    beside, keys = whole - 8 * 8192 - 4 * 8 * 128, 4 * 8 * 128
    assert eight == 8 * 8192 + beside / 8 + keys / 8
    assert sixteen == 8 * 8192 + beside / 16 + keys / 8


def test_an_uneven_load_multiplies_what_is_kept_of_copies_alone() -> None:
    kind = load_model("mixtral-8x7b").runs[0].kind
    even, twice = (layer_bytes(kind, Cut(1, load_factor=load)).kept for load in (1.0, 2.0))
    assert twice - even == 2 * (2 * 4096 + 6 * 14336 + 2 * 4096)


def test_dropout_keeps_one_byte_a_number_and_softmax_five_a_score() -> None:
    kind = gpt(1024, 8, 16).runs[0].kind
    flash = layer_bytes(kind, Cut(1, 512), Kernels()).kept
    masks = layer_bytes(kind, Cut(1, 512), Kernels(dropout=True)).kept
    plain = layer_bytes(kind, Cut(1, 512), Kernels(flash=False)).kept
    assert masks - flash == 2 * 1024
    assert plain - flash == 2 * 16 * 512 - 4 * 16


def test_shards_of_an_expert_see_the_tokens_of_their_group_and_route_their_own() -> None:
    # 8 experts, 2 a token, width 14,336: over q = 4 ranks each routes T/4 tokens; 2 shards gather 2 inputs of h each.
    kind = load_model("mixtral-8x7b").runs[0].kind
    attention = 8 * 4096 / 4 + (4 * 4096 + 4 * 1024 + 4 * 32) / 4
    copies = 2 / 4 * (2 * 2 * 4096 + 6 * 14336 + 2 * 4096)
    assert layer_bytes(kind, Cut(1, 1, 4, 4, 2)).kept == attention + 4 * 8 / 4 + copies


def test_backward_workspace_of_scores_and_of_latent_heads() -> None:
    # The gradients of scores (16 heads over 4,096 keys), query, key, value and output outweigh those of 4h: 8h.
    gpt_kind = gpt(1024, 8, 16).runs[0].kind
    flash, scores = (layer_workspace_bytes(gpt_kind, Cut(1, 4096), Kernels(flash=flash)) for flash in (True, False))
    assert flash == 2 * (1024 + 8 * 1024)
    assert scores == 2 * (1024 + 16 * 4096 + 4 * 1024)
    # 128 heads of 192 + 128, twice (query and key, value and output), outweigh 3 · 18,432.
    dense = load_model("deepseek-v3").runs[0].kind
    latent = 7168 + 128 * 2 * (192 + 128)
    assert layer_workspace_bytes(dense, Cut(1), Kernels()) == 2 * latent
    assert layer_workspace_bytes(dense, Cut(1, 4096), Kernels(flash=False)) == 2 * (latent + 128 * 4096)


def test_backward_workspace_of_grouped_heads_and_of_copies() -> None:
    # 32 heads of 128 and 4 of keys and values, twice, over 2; 8 copies of 768: gate, up, product, 2 inputs of h each.
    kind = load_model("qwen3-30b-a3b").runs[0].kind
    attention, copies = 2 * (32 + 4) * 128 / 2, 8 / 2 * (2 * 2048 + 3 * 768)
    assert copies > attention
    assert layer_workspace_bytes(kind, Cut(1, 0, 2, 2, 2), Kernels()) == 2 * (2048 / 2 + 2048 + copies)
    small = mixture(dense=1, layers=2).runs[1].kind  # h 64, 4 heads of 16, 2 copies of 64
    assert layer_workspace_bytes(small, Cut(1, load_factor=0.01), Kernels()) == 2 * (64 + 2 * 8 * 16)


def test_backward_workspace_of_a_dense_layer_and_of_the_logits() -> None:
    kind = load_model("llama-3.1-8b").runs[0].kind
    cut = Cut(10, 0, 2, 2)
    # The stream's gradient over 2 ranks, what they gather whole, and the gradients of gate, up and their product.
    assert layer_workspace_bytes(kind, cut, Kernels()) == 10 * 2 * (4096 / 2 + 4096 + 3 * 14336 / 2)
    assert head_workspace_bytes(128_256, cut) == 10 * 6 * 128_256 / 2


SIZES = st.lists(st.sampled_from((1, 2, 4, 8)), min_size=1, max_size=5)


@given(SIZES, st.sampled_from(("deepseek-v3", "llama-3.1-70b", "qwen3-30b-a3b")), st.booleans(), st.booleans())
def test_many_layouts_in_one_call_are_those_of_each(ranks: list[int], name: str, shards: bool, flash: bool) -> None:
    kind, kernels = load_model(name).runs[-1].kind, Kernels(flash=flash, dropout=not flash, selective=MODULES)
    t = np.array(ranks)

    def cut(t: object) -> Cut:
        return Cut(4096, 4096, t, t if shards else 1, t, 1.5)

    many = layer_bytes(kind, cut(t), kernels)
    work = layer_workspace_bytes(kind, cut(t), kernels)
    for place, each in enumerate(ranks):
        alone = layer_bytes(kind, cut(each), kernels)
        assert [np.broadcast_to(level, t.shape)[place] for level in many] == list(alone)
        assert work[place] == layer_workspace_bytes(kind, cut(each), kernels)


@given(SIZES, st.sampled_from(MODULES), st.booleans())
def test_recomputing_more_never_keeps_more(ranks: list[int], module: str, flash: bool) -> None:
    t = np.array(ranks)
    for name in ("deepseek-v3", "llama-3.1-70b"):
        kernels = Kernels(flash=flash, selective=(module,))  # type: ignore[arg-type]
        kept, selective, entered = layer_bytes(load_model(name).runs[-1].kind, Cut(64, 64, t, t), kernels)
        assert np.all(entered <= selective)
        assert np.all(selective <= kept)
