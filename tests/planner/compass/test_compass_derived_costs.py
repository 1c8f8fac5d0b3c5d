"""The derived form of Compass: what chunks cost, by degree, by lines, over a ring, fused; and the step around them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compass_derived import LINK, accounts, derived, document, operators, refused, table

from planner.papers.compass.cautions import warnings
from planner.papers.compass.engines import solve
from planner.papers.compass.problem import AG_NAMES
from profiles.experts import ExpertRows, launch_seconds, whole_products
from profiles.library import load
from solvers.report import Limits

H100 = load("h100-sxm")
VOLUME = 8192 * 8192 * 2
"""Bytes of the activation of 8,192 tokens of Llama-3.1-70B."""
DEEPSEEK = {"model": "deepseek-v3", "extrapolate": "roofline", "sequence_tokens": 4096, "expert_parallel_size": 8}


def gemm(m: float, n: float, k: float) -> float:
    return float(H100.gemm(m, n, k).seconds)


def collective(operation: str, message_bytes: float, ranks: int = 8) -> float:
    return float(H100.collective(operation, message_bytes, ranks).seconds)


# --- by degree ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("contention", [None, {"comm": 1.3, "gemm": 1.1}])
def test_a_table_is_equation_2_on_the_prices_of_chunks(contention: dict[str, float] | None) -> None:
    operator = operators(document(contention=contention))["fc1_fprop"]
    mu_c, mu_g = (contention or {}).get("comm", 1.0), (contention or {}).get("gemm", 1.0)
    for degree, seconds in table(operator).items():
        t_c, t_g = collective("all_gather", VOLUME / degree), gemm(8192 / degree, 7168, 8192)
        assert seconds == pytest.approx(t_c + t_g + (degree - 1) * max(mu_c * t_c, mu_g * t_g), rel=1e-7)
    assert set(table(operator)) == {2, 4, 8, 16, 32}
    assert operator.sequential_time_s == pytest.approx(
        collective("all_gather", VOLUME) + gemm(8192, 7168, 8192), rel=1e-7
    )


@pytest.mark.parametrize(
    ("name", "sequence_parallel", "operation", "n", "k"),
    [
        ("qkv_fprop", True, "all_gather", 1280, 8192),
        ("proj_fprop", True, "reduce_scatter", 8192, 1024),
        ("fc1_dgrad", True, "reduce_scatter", 8192, 7168),
        ("fc2_dgrad", True, "all_gather", 3584, 8192),
        ("fc2_fprop", False, "all_reduce", 8192, 3584),
    ],
)
def test_every_pair_is_priced_by_its_own_collective_and_product(
    name: str, sequence_parallel: bool, operation: str, n: int, k: int
) -> None:
    operator = operators(document(sequence_parallel=sequence_parallel))[name]
    t_c, t_g = collective(operation, VOLUME / 4), gemm(2048, n, k)
    assert table(operator)[4] == pytest.approx(t_c + t_g + 3 * max(t_c, t_g), rel=1e-7)


def test_what_is_gathered_in_fewer_bits_is_a_smaller_message_and_what_is_reduced_stays() -> None:
    found = accounts(document(gather_dtype="fp8"))
    assert found["fc1_fprop"]["message_bytes"] == VOLUME / 2
    assert found["fc2_fprop"]["message_bytes"] == VOLUME


def test_rows_of_a_chunk_divide_among_ranks() -> None:
    # tiles of 96 rows over 8 ranks: chunks are multiples of lcm(96, 8) = 96; of 100: lcm(100, 8) = 200
    found = operators(document(split_multiple=100, sequence_tokens=8000))
    assert found["fc1_fprop"].split_multiple == 200
    assert set(table(found["fc1_fprop"])) == {2, 4, 5, 8, 10, 20}
    whole = operators(document(split_multiple=100, sequence_tokens=8000, sequence_parallel=False))
    assert whole["fc2_fprop"].split_multiple == 100


def test_an_extent_that_cannot_be_cut_is_sequential_with_its_price() -> None:
    # 8,200 tokens are no multiple of 128
    operator = operators(document(sequence_tokens=8200, split_multiple=128))["fc1_fprop"]
    assert operator.inter_decom_table is None
    assert operator.sequential_time_s == pytest.approx(
        collective("all_gather", 8200 * 8192 * 2) + gemm(8200, 7168, 8192), rel=1e-7
    )


# --- launcher rules -----------------------------------------------------------------------------------------------


def ring(
    volume: float, shape: tuple[int, int], rows: int = 8192, mu: tuple[float, float] = (1.0, 1.0)
) -> dict[int, float]:
    """Seconds of 8 and of 4 steps over 8 ranks; a hop is a seventh of an all-gather whose shards are as large."""
    one, two = collective("all_gather", volume) / 7, collective("all_gather", 2 * volume) / 7
    g1, g2 = gemm(rows / 8, *shape), gemm(rows / 4, *shape)
    return {
        8: g1 + 7 * max(mu[1] * g1, mu[0] * one),
        4: one + g2 + 3 * max(mu[1] * g2, mu[0] * two),
    }


@pytest.mark.parametrize("contention", [None, {"comm": 1.3, "gemm": 1.1}])
@pytest.mark.parametrize(
    ("name", "shape", "comm_bound"), [("fc1_fprop", (7168, 8192), False), ("proj_dgrad", (1024, 8192), True)]
)
def test_a_ring_hides_all_but_one_step(
    name: str, shape: tuple[int, int], comm_bound: bool, contention: dict[str, float] | None
) -> None:
    found = table(operators(document("transformer_engine", contention=contention))[name])
    mu = (1.3, 1.1) if contention else (1.0, 1.0)
    assert found == pytest.approx(ring(VOLUME, shape, mu=mu), rel=1e-7)
    assert (collective("all_gather", VOLUME) / 7 > gemm(1024, *shape)) == comm_bound


def test_a_ring_of_two_has_a_step_for_each_shard() -> None:
    # (32 query heads, 4 and 4 key and value heads) of 128
    found = table(operators(document("transformer_engine", tp_size=2))["qkv_fprop"])
    g, hop = gemm(4096, 40 * 128, 8192), collective("all_gather", VOLUME, 2)
    assert found == {2: pytest.approx(g + max(g, hop), rel=1e-7)}


def test_a_user_buffer_of_two_widths_takes_the_mean_time_at_every_degree() -> None:
    # DeepSeek-V3: 3 dense layers of 18432 and shared experts of 2048 in 58, gate and up over 8 ranks
    given = document("transformer_engine", model="deepseek-v3", extrapolate="roofline", sequence_tokens=4096)
    found = table(operators(given)["fc1_fprop"])
    dense, shared = (ring(4096 * 7168 * 2, (2 * ffn // 8, 7168), rows=4096) for ffn in (18432, 2048))
    assert found == pytest.approx({d: (3 * dense[d] + 58 * shared[d]) / 61 for d in (4, 8)}, rel=1e-7)


def test_a_pipeline_multiplies_all_rows_by_a_part_of_the_features() -> None:
    found = table(operators(document("transformer_engine"))["fc2_fprop"])
    t_c, t_g = collective("reduce_scatter", VOLUME / 8), gemm(8192, 1024, 3584)
    assert found[8] == pytest.approx(t_c + t_g + 7 * max(t_c, t_g), rel=1e-7)


# --- lines --------------------------------------------------------------------------------------------------------


def test_lines_stand_for_both_stages_when_asked_for() -> None:
    operator = operators(document(fit="line"))["fc2_fprop"]
    off = accounts(document(fit="line"))["fc2_fprop"]["lines_off"]
    assert operator.inter_decom_table is None
    assert operator.sequential_time_s is None
    assert operator.comm is not None
    assert operator.gemm is not None
    worst = 0.0
    for d in (1, 2, 4, 8, 16, 32):
        for stage, price in (
            (operator.comm, collective("reduce_scatter", VOLUME / d)),
            (operator.gemm, gemm(8192 / d, 8192, 3584)),
        ):
            worst = max(worst, abs((stage.startup_s + stage.payload_s / d) / price - 1))
    assert worst == pytest.approx(off, rel=1e-3)
    assert "lines a + v / d decide" in (derived(document(fit="line")).problem.cautions or {})["affine_fit"]


def test_where_rows_end_lines_decide_and_where_they_do_not_the_table_stays() -> None:
    # 32,768 tokens of DeepSeek-V3 on 8 H100: 448 MiB of activation, inside; 65,536: 896 MiB, beyond 512 MiB. Latents
    # of 1,536 and 512 stay inside
    given = document(model="deepseek-v3", extrapolate="roofline", sequence_tokens=32768)
    assert all(operator.inter_decom_table for operator in operators(given).values())
    given = document(model="deepseek-v3", extrapolate="roofline", sequence_tokens=65536)
    found = operators(given)
    assert found["proj_fprop"].inter_decom_table is None
    assert found["proj_fprop"].comm is not None
    affine = (derived(given).problem.cautions or {})["affine_fit"]
    assert "proj_fprop" in affine


# --- fused kernels ------------------------------------------------------------------------------------------------


def test_fused_rings_follow_equation_7() -> None:
    ring = {"bandwidth_bytes_per_s": 1e11, "hop_s": 2e-6, "tile_s": 4e-6, "single_ring_slowdown": 1.5}
    found = {kernel.id: kernel.time_s for kernel in operators(document(fused=ring))["fc2_fprop"].fused}
    whole = gemm(8192, 8192, 3584)
    for kernel, slowdown, directions in (("single_ring", 1.5, 1), ("double_ring", 1.25, 2)):
        g, c = slowdown * whole / 8 + 4e-6, 2e-6 + VOLUME / (directions * 8 * 1e11)
        assert found[kernel] == pytest.approx(g + 7 * max(g, c), rel=1e-7)


def test_a_hop_is_a_part_of_the_collective_where_gpus_have_one_port() -> None:
    found = operators(document(fused={"tile_s": 0.0}))["proj_dgrad"].fused
    single, double = (1.12, 1.25)
    g, hop = gemm(8192, 1024, 8192) / 8, collective("all_gather", VOLUME) / 7
    # 57 us a hop beside 20 us of GEMM, and no less both ways
    assert hop > double * g
    assert {kernel.id: kernel.time_s for kernel in found} == pytest.approx(
        {"single_ring": single * g + 7 * hop, "double_ring": double * g + 7 * hop}, rel=1e-7
    )
    # a node's own bandwidth says no more than the rows of its profile
    node = {"name": "one", "nodes": 1, "tiers": {"node": {"gpus": 8, "bandwidth_bytes_per_s": 20e9}}}
    assert operators(document(fused={"tile_s": 0.0}, cluster=node))["proj_dgrad"].fused == found


@pytest.mark.parametrize(
    ("tp_size", "bandwidth", "double_directions"),
    [
        (8, 31.5e9, 2),  # crosses PCIe; a GPU's neighbours are behind its bridge and its slot
        (2, 56.25e9, 1),  # a pair on its bridge: both directions lead to the same neighbour
    ],
)
def test_nvlink_pairs_over_pcie_have_the_ring_of_their_cluster(
    tp_size: int, bandwidth: float, double_directions: int
) -> None:
    given = document(fused={"tile_s": 0.0, "hop_s": 0.0}, cluster="a6000-node", tp_size=tp_size)
    found = {kernel.id: kernel.time_s for kernel in operators(given)["proj_dgrad"].fused}
    g = gemm(8192, 8192 // tp_size, 8192) / tp_size
    for kernel, slowdown, directions in (("single_ring", 1.12, 1), ("double_ring", 1.25, double_directions)):
        hop = VOLUME / tp_size / directions / bandwidth
        expected = slowdown * g + (tp_size - 1) * max(slowdown * g, hop)
        assert found[kernel] == pytest.approx(expected, rel=1e-7)


def test_no_fused_kernel_is_offered_unasked_nor_for_sums_on_all_ranks() -> None:
    made = derived(document()).problem
    assert all(not operator.fused for operator in made.operators)
    assert "derive.fused" in (made.cautions or {})["fused_missing"]
    reduced = derived(document(fused={}, sequence_parallel=False)).problem
    assert all(not operator.fused for operator in reduced.operators)
    asked = derived(document(fused={"kernels": ["double_ring"]})).problem
    assert {kernel.id for operator in asked.operators for kernel in operator.fused} == {"double_ring"}
    assert "fused_modelled" in (asked.cautions or {})


# --- experts ------------------------------------------------------------------------------------------------------


def test_experts_take_a_ranks_share_of_all_of_them_beyond_a_launch() -> None:
    # the 4,096 tokens of 8 shards of 512 reach the experts of 8 ranks
    priced = accounts(document(**DEEPSEEK))["experts_fprop"]
    rows = ExpertRows(H100, 7168, 2048, 256, 8)
    whole = float(whole_products(rows, np.array([4096.0]), "roofline").seconds[0])
    launch = launch_seconds(rows)
    assert priced["gemm_s"] == pytest.approx(launch + (whole - launch) / 8, rel=1e-6)
    assert priced["collective_s"] == pytest.approx(collective("all_to_all", 512 * 8 * 7168 * 2), rel=1e-6)


def test_experts_on_other_nodes_are_reached_over_the_clusters_link() -> None:
    cluster = {"num_ranks": 16, "gpus_per_node": 8, "inter_node": LINK}
    made = derived(document(**{**DEEPSEEK, "expert_parallel_size": 16}, cluster=cluster))
    priced = made.derive["resolved"]["operators"]["experts_fprop"]
    # a ring over 16 ranks: 15 steps of 5 us, 15/16 of the message at 50 GB/s
    message = 512 * 8 * 7168 * 2
    assert priced["collective_s"] == pytest.approx(15 * 5e-6 + 15 / 16 * message / 50e9, rel=1e-6)
    operator = next(operator for operator in made.problem.operators if operator.id == "experts_fprop")
    assert operator.comm is not None
    assert operator.comm.sources is not None
    assert operator.comm.sources.stated == 1.0


# --- sources, error, step -----------------------------------------------------------------------------------------


def test_composed_times_are_modelled_and_sequential_ones_as_looked_up() -> None:
    operator = operators(document())["fc2_fprop"]
    assert operator.table_sources is not None
    assert operator.table_sources.modelled == 1.0
    assert operator.sequential_sources is not None
    # 128 MiB is a row of the reduce-scatter; (8192, 8192, 3584) lies between rows of the GEMM
    t_c, t_g = collective("reduce_scatter", VOLUME), gemm(8192, 8192, 3584)
    assert operator.sequential_sources.measured == pytest.approx(t_c / (t_c + t_g), abs=1e-6)
    assert operator.sequential_sources.interpolated == pytest.approx(t_g / (t_c + t_g), abs=1e-6)


def test_the_error_is_that_of_the_families_weighted_by_their_time() -> None:
    made = derived(document())
    assert made.cost_error is not None
    medians = [H100.cost_error(family)[0] for family in ("gemm", "all_gather", "reduce_scatter")]
    assert min(medians) < made.cost_error["median"] < max(medians)


def test_a_stated_slow_down_needs_no_warning() -> None:
    assert "contention_unmeasured" in (derived(document()).problem.cautions or {})
    made = derived(document(contention={"comm": 1.1, "gemm": 1.2})).problem
    assert "contention_unmeasured" not in (made.cautions or {})
    assert {(operator.contention.comm, operator.contention.gemm) for operator in made.operators} == {(1.1, 1.2)}


def test_the_rest_of_a_step_is_told_beside_the_operators() -> None:
    beside = derived(document(micro_batches=2)).problem.beside_s
    assert beside is not None
    # (n, M) by (M, k) of the four products, 80 layers, twice
    shapes = ((1280, 8192), (8192, 1024), (7168, 8192), (8192, 3584))
    gradients = sum(gemm(n, k, 8192) for n, k in shapes)
    assert beside["weight gradients"] == pytest.approx(2 * 80 * gradients, rel=1e-6)
    kernel = float(H100.prefill_attention(8192, 1, 8, 1, 128).seconds)
    assert beside["attention kernels"] == pytest.approx(2 * 80 * 3.5 * kernel, rel=1e-6)
    assert set(beside) == {"attention kernels", "weight gradients"}
    assert set(derived(document(passes="forward")).problem.beside_s or {}) == {"attention kernels"}


def test_products_in_no_pair_are_part_of_the_rest() -> None:
    # without shards of the sequence qkv and fc1 forward, proj and fc2 backward have no collective
    beside = derived(document(sequence_parallel=False)).problem.beside_s or {}
    alone = sum(gemm(8192, n, k) for n, k in ((1280, 8192), (7168, 8192), (1024, 8192), (3584, 8192)))
    assert beside["other GEMMs"] == pytest.approx(80 * alone, rel=1e-6)
    # TransformerEngine overlaps the gradients of qkv's and fc1's inputs in bulk
    bulk = derived(document("transformer_engine")).problem.beside_s or {}
    assert bulk["other GEMMs"] == pytest.approx(80 * (gemm(8192, 8192, 1280) + gemm(8192, 8192, 7168)), rel=1e-6)


def test_results_of_experts_travel_back_unhidden() -> None:
    beside = derived(document(**DEEPSEEK)).problem.beside_s or {}
    assert beside["expert results"] == pytest.approx(2 * 58 * collective("all_to_all", 512 * 8 * 7168 * 2), rel=1e-6)


def test_what_no_row_reaches_of_the_rest_is_said() -> None:
    # no rows of latent attention, and refuse forbids its formula
    made = derived(document(model="deepseek-v3", sequence_tokens=4096)).problem
    assert "attention kernels" not in (made.beside_s or {})
    assert "no rows of attention kernels" in (made.cautions or {})["left_out"]


def test_overlap_holds_the_activation_in_a_buffer_of_its_own() -> None:
    made = derived(document()).problem
    assert {str(operator.overlap_bytes) for operator in made.operators} == {str({"user buffer": float(VOLUME)})}
    assert made.memory_capacity_bytes == H100.device.memory_bytes


def test_experts_that_are_slower_in_a_narrow_dtype_are_said() -> None:
    # Rows of Qwen3-235B on H200: 16,384 tokens (8 shards of 2,048) take 17.28 ms in fp8 and 9.03 ms in bf16. Its
    # attention over 2 ranks is faster in fp8
    experts = {"model": "qwen3-235b-a22b", "tp_size": 2, "expert_parallel_size": 8, "sequence_tokens": 4096}
    said = derived(document(profile="h200-sxm", dtype="fp8", **experts)).problem.cautions or {}
    assert "experts are priced 1.9 times slower in fp8 than in bf16" in said["narrow_dtype_slower"]


def test_a_narrow_dtype_that_is_slower_is_said_from_a_profile_of_ones_own(tmp_path: Path) -> None:
    sizes = [256, 1024, 4096, 32768]
    grid = [(m, n, k) for n in (256, 65536) for k in (256, 65536) for m in sizes]

    def products(dtype: str, flop_per_s: float) -> dict[str, Any]:
        m, n, k = (list(column) for column in zip(*grid, strict=True))
        seconds = [5e-6 + 2.0 * a * b * c / flop_per_s for a, b, c in grid]
        return {
            "family": "gemm",
            "dtype": dtype,
            "provenance": "me",
            "columns": {"m": m, "n": n, "k": k},
            "latency_s": seconds,
        }

    def moved(family: str) -> dict[str, Any]:
        message = [2**exponent for exponent in range(16, 30)]
        columns = {"nodes": [1] * 14, "ranks": [8] * 14, "message_bytes": message}
        seconds = [1e-5 + size / 1e11 for size in message]
        return {
            "family": family,
            "dtype": "bf16",
            "backend": "nccl",
            "provenance": "me",
            "columns": columns,
            "latency_s": seconds,
        }

    profile = {
        "format_version": "1.0",
        "name": "mine",
        "device": {"name": "mine", "memory_bytes": 8e10},
        "provenance": [{"id": "me", "title": "made up", "licence": "CC0-1.0"}],
        "tables": [products("bf16", 4e14), products("fp8", 2e14), moved("all_gather"), moved("reduce_scatter")],
    }
    (tmp_path / "mine.json").write_text(json.dumps(profile))
    made = derived(document(profile="./mine.json", dtype="fp8"), base_folder=str(tmp_path))
    said = (made.problem.cautions or {})["narrow_dtype_slower"]
    assert "slower in fp8 than in bf16" in said
    assert made.derive["profile"] == "mine.json"
    narrow = operators(document(profile="./mine.json", dtype="bf16"), base_folder=str(tmp_path))
    # t = 5 us + 2 m n k / 4e14 between rows is log-log, so a line through chunks is near but not on it
    assert narrow["fc1_fprop"].gemm is not None
    assert narrow["fc1_fprop"].gemm.payload_s == pytest.approx(2 * 8192 * 7168 * 8192 / 4e14, rel=0.35)
    assert math.isfinite(narrow["fc1_fprop"].gemm.startup_s)


# --- tiles --------------------------------------------------------------------------------------------------------


def test_a_tile_that_is_not_stated_is_the_largest_that_leaves_a_degree() -> None:
    # 8,200 = 8 x 1025: tiles of 8 rows are the largest; 8,192 takes 128; 7,808 = 128 x 61 has no degree but by 64
    tiles = {8200: (8, {5, 25}), 8192: (128, {2, 4, 8, 16, 32}), 7808: (64, {2})}
    for tokens, (tile, degrees) in tiles.items():
        operator = operators(document(sequence_tokens=tokens))["fc1_fprop"]
        assert operator.split_multiple == tile
        assert set(table(operator)) == degrees


def test_a_ring_has_a_tile_that_divides_its_shards() -> None:
    # 5,000 / 8 = 625 rows of a shard: only single rows divide it, while 8 divides all rows
    given = document("transformer_engine", model="qwen3-32b", sequence_tokens=5000)
    found = operators(given)
    assert {name: (found[name].split_multiple, set(table(found[name]))) for name in AG_NAMES} == dict.fromkeys(
        AG_NAMES, (1, {4, 8})
    )
    # 5,120 output features are 40 tiles of 128
    assert found["fc2_fprop"].split_multiple == 128


def test_features_that_128_does_not_divide_take_a_smaller_tile() -> None:
    # gpt-oss-120b: 2,880 = 45 x 64
    given = document(
        "transformer_engine", model="gpt-oss-120b", tp_size=2, sequence_tokens=16384, extrapolate="roofline"
    )
    found = operators(given)["proj_fprop"]
    assert (found.split_extent, found.split_multiple) == (2880, 64)
    assert set(table(found)) == {3, 5, 9, 15}


def test_an_operator_without_a_degree_is_warned_of_with_what_helps() -> None:
    def said(**changes: Any) -> dict[str, str]:
        given = derived(document(**changes)).problem
        return {warned.code: warned.message for warned in warnings(given, solve(given, None, Limits())[0])}

    # 128 rows and 8 ranks; of these 8 divides 8,200
    told = said(sequence_tokens=8200, split_multiple=128)["no_legal_degree"]
    assert "split_multiple 128 does not divide split_extent 8200; 8 does" in told
    assert "likewise" in told
    assert "no_legal_degree" not in said()


# --- devices ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cluster", "profile", "said"),
    [
        ("a6000-node", "a100-sxm", "NVIDIA RTX A6000"),
        ("a800-node", "a100-sxm", "NVIDIA A800-SXM4-80GB"),
        ("dgx-h100", "h100-sxm", None),  # H100-SXM5-80GB and H100 80GB HBM3 are one
        ("dgx-b200", "b200-sxm", None),
        ({"num_ranks": 8, "gpus_per_node": 8}, "h200-sxm", None),  # says no device
    ],
)
def test_rows_of_another_device_than_the_clusters_are_said(cluster: Any, profile: str, said: str | None) -> None:
    given = document(cluster=cluster, profile=profile, model="llama-3.1-8b", tp_size=4, fused={})
    cautions = derived(given).problem.cautions or {}
    assert ("other_device" in cautions) == (said is not None)
    if said is not None:
        assert said in cautions["other_device"]
        assert "hops of fused kernels are of the cluster's own links" in cautions["other_device"]


def test_one_node_is_not_told_to_describe_links_between_nodes() -> None:
    error = refused(document(tp_size=16, cluster={"num_ranks": 16, "gpus_per_node": 16}))
    assert "between nodes" not in error.message
    assert "tp_size that was measured" in error.message
