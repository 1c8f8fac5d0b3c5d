"""The built-in profiles: what they hold, how they refuse, and what the roofline makes of what was never measured."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles.errors import ProfileError, UnknownNameError
from profiles.library import load, names
from profiles.priced import MEASURED, MODELLED, SOURCES

ALL = ["a100-sxm", "b200-sxm", "h100-sxm", "h200-sxm", "l40s"]
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
lengths = st.integers(1, 500_000)


def test_five_devices_are_built_in() -> None:
    assert names() == ALL


@pytest.mark.parametrize("name", ALL)
def test_every_profile_has_the_families_it_promises(name: str) -> None:
    document = load(name).document
    families = {table.family for table in document.tables}
    assert {"gemm", "prefill_attention", "decode_attention", "moe_gemm", *COLLECTIVES} <= families
    assert ("encoder_attention" in families) == (name != "a100-sxm")
    assert any("no encoder" in note for note in document.notes) == (name == "a100-sxm")
    assert {entry.licence for entry in document.provenance} == {"Apache-2.0"}
    assert len(load(name).sha256) == 64


@pytest.mark.parametrize("name", ALL)
def test_every_table_says_its_error_its_policy_and_its_counts(name: str) -> None:
    for table in load(name).document.tables:
        assert table.errors[0].rows > 0
        assert 0 < table.errors[0].median <= table.errors[0].p90
        assert table.policy
        counts = table.counts
        gone = counts.repeats_merged + counts.not_monotone_dropped + counts.thinned + counts.refused
        assert counts.read - gone + counts.filled == len(table.latency_s)


@pytest.mark.parametrize("name", ALL)
def test_no_measured_product_is_faster_than_the_device(name: str) -> None:
    device = load(name).device
    for table in load(name).document.tables:
        if table.family == "gemm":
            m, n, k = (np.array(table.columns[axis], float) for axis in ("m", "n", "k"))
            rate = 2 * m * n * k / np.array(table.latency_s)
            assert rate.max() < device.peak_flop_per_s[table.dtype]
            assert rate.max() > 0.5 * device.peak_flop_per_s[table.dtype]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("operation", COLLECTIVES)
def test_collectives_count_bytes_so_that_the_wire_is_busy_but_not_beyond_the_link(name: str, operation: str) -> None:
    # If message_size were read as bytes the wire would look half as busy; if all_gather's size were one rank's part,
    # eight times as busy. NVLink switches that reduce in flight let all_reduce pass the ring's limit by a little.
    profile = load(name)
    link = profile.device.intra_node_bandwidth_bytes_per_s
    assert link is not None
    rounds = 2 if operation == "all_reduce" else 1
    wire = rounds * (2 - 1) / 2 * 512 * 2**20 / float(profile.collective(operation, 512 * 2**20, 2).seconds)
    assert 0.35 < wire / link < 1.0
    wire = rounds * (8 - 1) / 8 * 512 * 2**20 / float(profile.collective(operation, 512 * 2**20, 8).seconds)
    assert wire / link < 1.1


@pytest.mark.parametrize("name", ALL)
def test_every_row_comes_back_exactly_and_measured(name: str) -> None:
    table = load(name).cost_table("gemm")
    rows = np.flatnonzero(~table.estimated)[::37]
    price = load(name).gemm(*(table.columns[axis][rows] for axis in ("m", "n", "k")))
    assert np.array_equal(price.seconds, table.seconds[rows])
    assert set(price.source.tolist()) == {MEASURED}
    assert price.shares() == {"measured": 1.0, "interpolated": 0.0, "modelled": 0.0, "stated": 0.0}


def test_lookups_broadcast_and_keep_their_shape() -> None:
    price = load("h200-sxm").gemm(np.array([[1024], [2048]]), np.array([1536, 3072, 5120]), 1536)
    assert price.seconds.shape == price.source.shape == (2, 3)
    assert load("h200-sxm").gemm(1024, 1024, 1024).seconds.shape == ()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (
            lambda p: p.gemm(40_000, 1536, 1536),
            r"gemm/bf16 of profile h200-sxm: m 40000 is outside .*1\.\.32768.*roofline",
        ),
        (lambda p: p.gemm([64, 64], [1536, 7], 1536), r"n 7 is outside the measured 32\.\.65536"),
        (lambda p: p.gemm(64, 64, 64, dtype="fp32"), r"no gemm/fp32 rows \(it has gemm/bf16, gemm/fp8\)"),
        (lambda p: p.attention(100, 100, 12, 128), r"head_dim 128 was not measured \(measured: 64, 72, 80\)"),
        (lambda p: p.attention(70_000, 70_000, 12, 64), r"length 70000 is outside the measured 1\.\.65536"),
        (lambda p: p.collective("all_reduce", 100, 8), r"message_bytes 100 is outside the measured 512\.\."),
        (lambda p: p.moe_gemm(8, hidden=4096, ffn=3, experts=8, top_k=2), r"ffn 3 was not measured"),
        (lambda p: p.prefill_attention(512, 1, 8, 8, 96), r"head_dim 96 was not measured"),
    ],
)
def test_outside_is_refused_with_family_axis_value_range_and_advice(ask: object, words: str) -> None:
    with pytest.raises(ProfileError, match=words) as caught:
        ask(load("h200-sxm"))  # type: ignore[operator]
    assert caught.value.code == "outside_measured_range"
    assert "\n" not in caught.value.message


def test_a_refusal_of_unequal_lengths_speaks_of_them_and_not_of_heads_alone() -> None:
    with pytest.raises(
        ProfileError, match=r"q_len 5e\+06 with kv_len 512 counts as heads x q_len .* heads 117188 is outside"
    ):
        load("h200-sxm").attention([512, 5_000_000], 512, 12, 64)


def test_a_device_without_encoder_rows_says_so() -> None:
    with pytest.raises(ProfileError, match=r"a100-sxm has no encoder_attention/bf16 rows .*roofline"):
        load("a100-sxm").attention(1024, 1024, 12, 128)
    with pytest.raises(ProfileError, match="head_dim 80 could stand in but are missing"):
        load("a100-sxm").attention(1024, 1024, 12, 80, extrapolate="roofline")


@pytest.mark.parametrize("extrapolate", ["refuse", "roofline"])
def test_more_ranks_than_a_node_are_never_priced_from_inside_one(extrapolate: str) -> None:
    with pytest.raises(ProfileError, match=r"ranks 16 is outside the measured 2\.\.8\. Describe the link"):
        load("h200-sxm").collective("all_gather", 2**20, 16, extrapolate=extrapolate)  # type: ignore[arg-type]
    with pytest.raises(ProfileError, match="nodes 2 was not measured"):
        load("h200-sxm").collective("all_gather", 2**20, 8, nodes=2, extrapolate=extrapolate)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "code"), [(0, "out_of_range"), (-4, "out_of_range"), (float("nan"), "not_finite"), ("x", "wrong_type")]
)
def test_sizes_are_checked_at_the_door(value: object, code: str) -> None:
    with pytest.raises(ProfileError, match="m") as caught:
        load("h200-sxm").gemm(value, 64, 64)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.where) == (code, "m")


def test_an_unknown_extrapolation_is_refused() -> None:
    with pytest.raises(ProfileError, match="refuse or roofline"):
        load("h200-sxm").gemm(64, 64, 64, extrapolate="guess")  # type: ignore[arg-type]


def test_an_unknown_profile_is_never_substituted() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'h200-sxm'\? Known: a100-sxm, .*l40s") as caught:
        load("H200")
    assert caught.value.code == "unknown_profile"
    with pytest.raises(UnknownNameError, match=r"^unknown profile 'mi300x'; known: a100-sxm, "):
        load("mi300x")
    with pytest.raises(UnknownNameError, match=r"^unknown profile 'z{77}\.\.\.'; known: "):
        load("z" * 100_000)


def test_an_unknown_collective_lists_the_known() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'all_reduce'"):
        load("h200-sxm").collective("allreduce", 1024, 2)


@pytest.mark.parametrize("name", ALL)
def test_the_roofline_leaves_measured_rows_alone_and_tags_the_rest(name: str) -> None:
    price = load(name).gemm([4096, 4100, 100_000], 4096, 4096, extrapolate="roofline")
    inside = load(name).gemm([4096, 4100], 4096, 4096)
    assert price.seconds[:2].tolist() == inside.seconds.tolist()
    assert [SOURCES[index] for index in price.source.tolist()][1:] == ["interpolated", "modelled"]


@pytest.mark.parametrize("name", ALL)
def test_the_roofline_is_continuous_at_the_edge(name: str) -> None:
    profile = load(name)
    edge, beyond = profile.gemm([32_768, 32_769], 5120, 5120, extrapolate="roofline").seconds.tolist()
    assert beyond == pytest.approx(edge, rel=1e-3)
    edge, beyond = profile.attention([65_536, 65_537], [65_536, 65_537], 24, 128, extrapolate="roofline").seconds
    assert beyond == pytest.approx(edge, rel=1e-3)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=60, deadline=None)
@given(tokens=st.tuples(lengths, lengths).map(sorted), heads=st.sampled_from([1, 3, 6, 12, 24, 40]))
def test_more_tokens_are_never_cheaper(name: str, tokens: list[int], heads: int) -> None:
    profile = load(name)
    length = np.array(tokens)
    for price in (
        profile.attention(length, length, heads, 128, extrapolate="roofline"),
        profile.attention(length, 512, heads, 128, extrapolate="roofline"),
        profile.gemm(length, 8960, 1536, extrapolate="roofline"),
        profile.gemm(length, 5120, 5120, extrapolate="roofline"),
    ):
        assert price.seconds[0] <= price.seconds[1] * (1 + 1e-9)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=40, deadline=None)
@given(sizes=st.tuples(st.integers(1, 2**34), st.integers(1, 2**34)).map(sorted), ranks=st.integers(2, 8))
def test_more_bytes_are_never_cheaper(name: str, sizes: list[int], ranks: int) -> None:
    for operation in COLLECTIVES:
        price = load(name).collective(operation, np.array(sizes), ranks, extrapolate="roofline").seconds
        assert price[0] <= price[1] * (1 + 1e-9)


@pytest.mark.parametrize("name", [name for name in ALL if name != "a100-sxm"])
def test_attention_beyond_the_table_grows_with_the_square_of_the_length(name: str) -> None:
    price = load(name).attention([131_072, 262_144], [131_072, 262_144], 24, 128, extrapolate="roofline").seconds
    assert price[1] / price[0] == pytest.approx(4.0, rel=0.02)


@pytest.mark.parametrize("name", ALL)
def test_head_dim_128_is_modelled_within_what_the_device_can_do(name: str) -> None:
    price = load(name).attention(75_600, 75_600, 40, 128, extrapolate="roofline")
    share = 4 * 75_600**2 * 40 * 128 / float(price.seconds) / load(name).device.peak_flop_per_s["bf16"]
    assert int(price.source) == MODELLED
    assert 0.35 < share < 0.85


def test_attention_of_unequal_lengths_is_a_composition_and_says_so() -> None:
    profile = load("h200-sxm")
    square = profile.attention(4096, 4096, 16, 64)
    half = profile.attention(2048, 4096, 16, 64)
    assert int(square.source) == MEASURED
    assert int(half.source) == MODELLED
    assert 0.4 < float(half.seconds / square.seconds) < 0.8


def test_collectives_of_an_unmeasured_rank_count_lie_between_their_neighbours() -> None:
    four, six, eight = load("h200-sxm").collective("all_to_all", 2**26, [4, 6, 8]).seconds
    assert min(four, eight) <= six <= max(four, eight)


def test_graph_and_eager_rows_are_told_apart_by_backend() -> None:
    eager = load("h200-sxm").collective("all_reduce", 4096, 8, backend="vllm_eager").seconds
    graph = load("h200-sxm").collective("all_reduce", 4096, 8, backend="vllm_graph").seconds
    assert eager > 1.5 * graph


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, profiles; print([m for m in ('numpy', 'pydantic', 'scipy', 'pyarrow') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_loading_a_profile_needs_no_pyarrow_and_no_scipy() -> None:
    code = (
        "import sys; from profiles.library import load; load('l40s').gemm(64, 64, 64);"
        "print([m for m in ('scipy', 'pyarrow', 'pandas', 'yaml', 'planner', 'solvers') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("head_dim", "message"),
    [
        (0, "head_dim >= 1, got 0"),
        (-64, "head_dim >= 1"),
        ("64", "whole number"),
        (64.5, "whole number"),
        (True, "whole"),
    ],
)
def test_a_head_dimension_is_one_positive_whole_number(head_dim: object, message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        load("h200-sxm").attention(4096, 4096, 12, head_dim, extrapolate="roofline")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["5", 2 + 3j, np.datetime64("2026-01-01"), 10**400, None, [1, [2]]])
def test_only_numbers_are_sizes(value: object) -> None:
    with pytest.raises(ProfileError, match="expected m as a number"):
        load("h200-sxm").gemm(value, 512, 512)  # type: ignore[arg-type]


def test_shapes_that_do_not_broadcast_are_named() -> None:
    with pytest.raises(ProfileError, match=r"m \(3,\), n \(2,\), k \(\)"):
        load("h200-sxm").gemm([1, 2, 3], [512, 512], 512)


def test_an_operation_that_is_no_name_is_unknown() -> None:
    with pytest.raises(ProfileError, match="unknown collective 'None'"):
        load("h200-sxm").collective(None, 1024, 2)  # type: ignore[arg-type]


def test_a_folder_in_place_of_a_profile_is_told_the_file_to_name(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "mygpu").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProfileError, match=r"mygpu is a folder: name its file, \./mygpu/profile\.json"):
        load("mygpu")
