"""Seconds of what one rank computes of a layer in training: products, attention, experts, what lies between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from training_cases import DENSE, GROUPED, H100, LATENT, MOE, device, grid

from planner.derivation.training.calibration import Calibration, calibrated
from planner.derivation.training.cuts import Cuts, one_cut
from planner.derivation.training.ends import end_times
from planner.derivation.training.layer import layer_times
from planner.derivation.training.parts import COMPONENTS, LayerTimes
from profiles import Profile, ProfileError
from profiles.experts import ExpertRows, launch_seconds, whole_products
from profiles.geometry import LayerRun, ModelGeometry
from profiles.geometry.attention import Indexer
from profiles.geometry.feed_forward import Dense, Experts
from profiles.geometry.model import LayerKind
from profiles.latent import latent_prefill
from profiles.priced import MODELLED


def gemm(m: float, n: float, k: float, dtype: str = "bf16") -> float:
    return float(H100.gemm(m, n, k, dtype=dtype, extrapolate="roofline").seconds)


def causal(length: int, batch: float, heads: int, kv_heads: int) -> float:
    return float(H100.prefill_attention(length, batch, heads, kv_heads, 128).seconds)


def seconds(times: LayerTimes, way: str, component: str) -> float:
    return float(times.by_component(way)[component][0])  # type: ignore[arg-type,index]


# --- products -----------------------------------------------------------------------------------------------------


def test_products_are_a_ranks_share_of_each_and_gradients_are_those_of_input_and_weight() -> None:
    # Over 4 ranks: 8 query and 2 key-value heads of 128, that is 1024 + 2 x 256 features; 3584 of the ffn.
    times = layer_times(device(), DENSE, one_cut(4096, tp=4))
    shapes = [(1536, 4096), (4096, 1024), (7168, 4096), (4096, 3584)]
    assert seconds(times, "forward", "gemm") == pytest.approx(sum(gemm(4096, n, k) for n, k in shapes))
    backward = sum(gemm(4096, k, n) + gemm(n, k, 4096) for n, k in shapes)
    assert seconds(times, "backward", "gemm") == pytest.approx(backward)


def test_what_every_rank_holds_whole_works_on_its_own_tokens_alone() -> None:
    # Latent attention's compressions (1536 + 576) are whole: with sequence parallelism a rank has 1024 of 4096 tokens.
    layer = LayerKind(5120, LATENT, Dense(12288))
    apart = layer_times(device(), layer, one_cut(4096, tp=4, sequence_parallel=True))
    together = layer_times(device(), layer, one_cut(4096, tp=4))
    saved = gemm(4096, 2112, 5120) - gemm(1024, 2112, 5120)
    assert seconds(together, "forward", "gemm") - seconds(apart, "forward", "gemm") == pytest.approx(saved)


def test_a_gradient_beyond_the_rows_takes_what_the_forward_takes_where_models_are_refused() -> None:
    # dW of the head is (50000, 4096) by (4096, 4096): rows end at 32,768. dX is (4096, 50000) by (50000, 4096).
    model = ModelGeometry("m", 4096, 50_000, (LayerRun(DENSE, 1),))
    times = end_times(device("refuse"), model, "head", one_cut(4096))
    forward = gemm(4096, 50_000, 4096)
    assert seconds(times, "backward", "gemm") == pytest.approx(gemm(4096, 4096, 50_000) + forward)
    assert not times.missing.any()
    modelled = [part for part in times.backward if part.component == "gemm" and part.source[0] == MODELLED]
    assert float(sum(part.seconds[0] for part in modelled)) == pytest.approx(forward)


def test_the_router_multiplies_in_the_activations_dtype_and_all_else_in_the_products() -> None:
    times = layer_times(device(dtype="fp8"), MOE, one_cut(4096))
    shapes = [(6144, 4096), (4096, 4096)]
    expected = sum(gemm(4096, n, k, "fp8") for n, k in shapes) + gemm(4096, 8, 4096)
    assert seconds(times, "forward", "gemm") == pytest.approx(expected)


def test_the_head_multiplies_a_ranks_rows_of_the_padded_vocabulary() -> None:
    model = ModelGeometry("m", 4096, 50_257, (LayerRun(DENSE, 1),))
    times = end_times(device(), model, "head", one_cut(4096, tp=8))
    assert seconds(times, "forward", "gemm") == pytest.approx(gemm(4096, 6283, 4096))  # 50257 / 8, rounded up


# --- attention ----------------------------------------------------------------------------------------------------


def test_attention_is_whole_sequences_of_a_ranks_heads_and_the_backward_two_and_a_half_times_it() -> None:
    times = layer_times(device(), DENSE, one_cut(4096, 2, tp=4))
    assert seconds(times, "forward", "attention") == pytest.approx(causal(4096, 2, 8, 2))
    assert seconds(times, "backward", "attention") == pytest.approx(2.5 * causal(4096, 2, 8, 2))


def test_ranks_of_a_context_group_do_equal_shares_which_is_modelled() -> None:
    times = layer_times(device(), DENSE, one_cut(8192, cp=4))
    assert seconds(times, "forward", "attention") == pytest.approx(causal(8192, 1, 32, 8) / 4)
    [attention] = [part for part in times.forward if part.component == "attention"]
    assert attention.source.tolist() == [MODELLED]


def test_more_ranks_than_key_value_heads_hold_copies_of_them() -> None:
    few = LayerKind(4096, replace(GROUPED, kv_heads=2), Dense(14336))
    times = layer_times(device(), few, one_cut(4096, tp=8))
    assert seconds(times, "forward", "attention") == pytest.approx(causal(4096, 1, 4, 1))
    # queries 512, keys and values 128 each
    shapes = [(768, 4096), (4096, 512), (3584, 4096), (4096, 1792)]
    assert seconds(times, "forward", "gemm") == pytest.approx(sum(gemm(4096, n, k) for n, k in shapes))


def test_attention_is_never_narrower_than_activations() -> None:
    narrow = layer_times(device(dtype="fp8"), DENSE, one_cut(4096))
    assert seconds(narrow, "forward", "attention") == pytest.approx(causal(4096, 1, 32, 8))


def test_a_window_counts_as_causal_pieces_of_twice_its_keys() -> None:
    sliding = LayerKind(4096, replace(GROUPED, window=1024), Dense(14336))
    times = layer_times(device(), sliding, one_cut(8192))
    assert seconds(times, "forward", "attention") == pytest.approx(causal(2048, 4, 32, 8))


def test_latent_attention_has_keys_and_values_expanded() -> None:
    layer = LayerKind(5120, LATENT, Dense(12288))
    times = layer_times(device(), layer, one_cut(4096, tp=2))
    expected = latent_prefill(H100, 4096, 1.0, 8, dtype="bf16", extrapolate="roofline")
    assert seconds(times, "forward", "attention") == pytest.approx(float(expected.seconds))


def test_sparse_attention_has_no_price_whatever_may_be_modelled() -> None:
    sparse = LayerKind(5120, replace(LATENT, indexer=Indexer(64, 128, 2048)), Dense(12288))
    times = layer_times(device(), sparse, grid(experts=False))
    assert times.missing.all()
    assert "sparse attention" in times.reasons["mla_prefill/bf16"]


# --- experts ------------------------------------------------------------------------------------------------------

MIXTRAL = ExpertRows(H100, 4096, 14336, 8, 2)


def whole(tokens: float) -> float:
    return float(whole_products(MIXTRAL, np.array([tokens]), "roofline").seconds[0])


def test_a_ranks_experts_take_their_share_of_what_all_take_beyond_a_launch() -> None:
    times = layer_times(device(), MOE, one_cut(4096, ep=4))
    launch = launch_seconds(MIXTRAL)
    expected = launch + (whole(4 * 4096) - launch) / 4  # four ranks send their 4,096 tokens each
    assert seconds(times, "forward", "experts") == pytest.approx(expected)
    assert seconds(times, "backward", "experts") == pytest.approx(2 * expected)


def test_ranks_that_share_each_expert_have_the_copies_of_all_of_them_and_a_part_of_the_weights() -> None:
    times = layer_times(device(), MOE, one_cut(2048, ep=4, etp=2))
    launch = launch_seconds(MIXTRAL)
    assert seconds(times, "forward", "experts") == pytest.approx(launch + (whole(8 * 2048) - launch) / 8)


def test_the_fullest_rank_of_experts_has_as_many_more_copies() -> None:
    fuller = layer_times(device(load_factor=1.5), MOE, one_cut(4096, ep=4))
    even = layer_times(device(), MOE, one_cut(6144, ep=4))
    assert seconds(fuller, "forward", "experts") == pytest.approx(seconds(even, "forward", "experts"))


def test_experts_of_two_products_are_products_one_after_the_other() -> None:
    plain = LayerKind(4096, GROUPED, Experts(count=8, top_k=2, ffn=8192, gated=False))
    times = layer_times(device(), plain, one_cut(4096, ep=2))
    # 2 ranks x 4096 tokens x 2 copies over 8 experts are 2,048 rows each, and a rank has four experts
    expected = 4 * (gemm(2048, 8192, 4096) + gemm(2048, 4096, 8192))
    assert seconds(times, "forward", "experts") == pytest.approx(expected)


# --- between products ---------------------------------------------------------------------------------------------


def test_norms_sums_rotary_embeddings_and_activation_move_their_bytes_at_the_speed_of_memory() -> None:
    # Values a token: two norms read and written, two sums of three 4096 each; queries and keys (32 + 8) x 128 read and
    # written; gate, up and their product 14336. Backward: norms three, sums three, the activation five.
    times = layer_times(device(), DENSE, one_cut(4096))
    rotary = 2 * 40 * 128
    forward = 2 * 2 * 4096 + 2 * 3 * 4096 + rotary + 3 * 14336
    backward = 2 * 3 * 4096 + 2 * 3 * 4096 + rotary + 5 * 14336
    speed = 3.35e12
    assert seconds(times, "forward", "elementwise") == pytest.approx(4096 * forward * 2 / speed)
    assert seconds(times, "backward", "elementwise") == pytest.approx(4096 * backward * 2 / speed)


def test_sequence_parallelism_shares_norms_and_sums_and_tensor_ranks_the_rest() -> None:
    apart = layer_times(device(), DENSE, one_cut(4096, tp=4, sequence_parallel=True))
    alone = layer_times(device(), DENSE, one_cut(4096))
    assert seconds(apart, "forward", "elementwise") == pytest.approx(seconds(alone, "forward", "elementwise") / 4)


def test_selective_recomputation_runs_the_modules_again_that_are_named() -> None:
    core = layer_times(device(), DENSE, one_cut(4096))
    assert calibrated(core, Calibration()).selective_s[0] == pytest.approx(causal(4096, 1, 32, 8))
    light = layer_times(device(), DENSE, one_cut(4096), ("norms", "ffn_activation"))
    moved = 2 * 2 * 4096 + 3 * 14336
    assert calibrated(light, Calibration()).selective_s[0] == pytest.approx(4096 * moved * 2 / 3.35e12)
    one = layer_times(device(), DENSE, one_cut(4096), ("ffn_norm",))
    assert calibrated(one, Calibration()).selective_s[0] == pytest.approx(4096 * 2 * 4096 * 2 / 3.35e12)
    # Two copies of each token, of gate, up and product 14,336 wide; the fullest rank half as many more.
    for modules in (("expert_activation",), ("ffn_activation",)):
        routed = layer_times(device(load_factor=1.5), MOE, one_cut(4096), modules)
        expected = 1.5 * 2 * 4096 * 3 * 14336 * 2 / 3.35e12
        assert calibrated(routed, Calibration()).selective_s[0] == pytest.approx(expected)
    latent = layer_times(device(), LayerKind(5120, LATENT, Dense(12288)), one_cut(4096), ("latent_up",))
    # queries 16 x 192 from 1536, keys and values 16 x 256 from 512
    assert calibrated(latent, Calibration()).selective_s[0] == pytest.approx(
        gemm(4096, 3072, 1536) + gemm(4096, 4096, 512)
    )


def test_without_a_stated_bandwidth_it_is_that_of_the_products_formula() -> None:
    document = H100.document
    unstated = document.device.model_copy(update={"memory_bandwidth_bytes_per_s": None})
    profile = Profile(document.model_copy(update={"device": unstated}), H100.sha256)
    times = layer_times(replace(device(), profile=profile), DENSE, one_cut(4096))
    moved = seconds(layer_times(device(), DENSE, one_cut(4096)), "forward", "elementwise") * 3.35e12
    expected = moved / H100.formula("gemm")["bytes_per_s"]
    assert seconds(times, "forward", "elementwise") == pytest.approx(expected)
    tables = tuple(table for table in document.tables if table.family != "gemm")
    bare = Profile(document.model_copy(update={"device": unstated, "tables": tables}), H100.sha256)
    with pytest.raises(ProfileError, match="memory bandwidth"):
        layer_times(replace(device(), profile=bare), DENSE, one_cut(4096))


# --- arrays -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [DENSE, MOE, LayerKind(5120, LATENT, Experts(160, 6, 1536, shared_ffn=3072))])
def test_many_layouts_at_once_have_the_prices_of_each_alone(kind: LayerKind) -> None:
    cuts = grid()
    many = layer_times(device(), kind, cuts)
    assert not many.missing.any()
    for row in range(0, len(cuts), 7):
        alone = layer_times(device(), kind, cuts.at(np.array([row])))
        for way in ("forward", "backward", "selective"):
            for component in COMPONENTS:
                mine = many.by_component(way)[component][row]  # type: ignore[arg-type]
                assert mine == pytest.approx(seconds(alone, way, component), rel=1e-12), (row, way, component)


def test_only_layouts_beyond_the_rows_are_missing_where_models_are_refused() -> None:
    # A product of 8 x 8192 rows lies beyond 32,768; 4 x 8192 is the last row.
    cuts = Cuts(
        8192,
        *(np.array(column, dtype=np.int64) for column in ([4, 8, 8], [1, 1, 1], [1, 1, 2])),
        np.zeros(3, dtype=bool),
        *(np.ones(3, dtype=np.int64) for _ in range(2)),
    )
    refused = layer_times(device("refuse"), DENSE, cuts)
    assert refused.missing.tolist() == [False, True, False]
    assert "m 65536 is outside" in refused.reasons["gemm/bf16"]
    allowed = layer_times(device("roofline"), DENSE, cuts)
    same = [0, 2]
    for way in ("forward", "backward"):
        for component in ("gemm", "attention", "elementwise"):
            one, other = (found.by_component(way)[component] for found in (refused, allowed))  # type: ignore[arg-type]
            assert one[same].tolist() == pytest.approx(other[same].tolist())


def test_ranks_that_do_not_divide_a_product_are_missing_and_named() -> None:
    odd = LayerKind(4096, GROUPED, Dense(14338))
    times = layer_times(device(), odd, grid(experts=False))
    cuts = grid(experts=False)
    assert times.missing.tolist() == (cuts.tp == 8).tolist()
    assert "14338" in times.reasons["tp"]


def test_a_dtype_without_rows_leaves_no_price_and_says_so() -> None:
    times = layer_times(device(dtype="nvfp4"), DENSE, grid(experts=False))
    assert times.missing.all()
    assert "no gemm/nvfp4 rows" in times.reasons["gemm/nvfp4"]
