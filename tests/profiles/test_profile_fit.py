"""Fits give back the law that made the rows, say how far off they are, and name what they cannot know."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles.document import Device, ProfileDocument, Provenance, Table
from profiles.errors import ProfileError, UnknownNameError
from profiles.families import COLLECTIVES
from profiles.fitting import fit_profile, robust
from profiles.fitting.alpha_beta import fit_pieces, priced
from profiles.fitting.document import FitDocument
from profiles.library import load
from profiles.profile import Profile

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
SIZES = 2.0 ** np.arange(10, 30)
DEVICE = Device(
    name="card",
    memory_bandwidth_bytes_per_s=2e12,
    peak_flop_per_s={"bf16": 5e14},
    gpus_per_node=8,
    intra_node_bandwidth_bytes_per_s=4e11,
)


def profile(*tables: Table, device: Device = DEVICE) -> Profile:
    document = ProfileDocument(
        name="made",
        device=device,
        provenance=[Provenance(id="me", title="made", licence="CC0-1.0")],
        tables=list(tables),
    )
    return Profile(document, "0" * 64)


def table(family: str, columns: dict[str, list[int]], seconds: Floats, **more: object) -> Table:
    lists = {axis: [int(value) for value in column] for axis, column in columns.items()}
    fields = {"family": family, "dtype": "bf16", "provenance": "me", "columns": lists, "latency_s": seconds.tolist()}
    return Table.model_validate(fields | more)


def dirty(seconds: Floats, seed: int, noise: float = 0.02) -> Floats:
    """Noise on every row, and every tenth row a spike of 2 to 20 times, every fourth of these downwards."""
    random = np.random.default_rng(seed)
    measured = seconds * np.exp(noise * random.standard_normal(len(seconds)))
    spikes = random.choice(len(seconds), len(seconds) // 10, replace=False)
    size = random.uniform(2.0, 20.0, len(spikes))
    measured[spikes] *= np.where(random.random(len(spikes)) < 0.75, size, 1.0 / size)
    return measured


def near(found: float | None, planted: float, tolerance: float) -> bool:
    return found is not None and abs(found / planted - 1.0) < tolerance


def test_alpha_and_beta_come_back_through_noise_spikes_and_repeats() -> None:
    # Three repeats of 20 sizes at 2 %: the standard error of either number is about 2 % / sqrt(20). 4 % is nine of it.
    size, random = np.repeat(SIZES, 3), np.random.default_rng(0)
    for seed in range(25):
        alpha, beta = np.exp(random.uniform(np.log([2e-6, 5e9]), np.log([2e-4, 1e12])))
        cuts, pieces = fit_pieces(size, dirty(alpha + size / beta, seed))
        assert cuts.tolist() == []
        assert near(pieces[0][0], alpha, 0.04)
        assert near(1.0 / pieces[0][1], beta, 0.04)


@given(st.integers(1, 8), st.integers(11, 18), st.floats(2.0, 20.0), st.booleans())
@settings(max_examples=25, deadline=None)
def test_two_spikes_of_twenty_rows_move_neither_number_and_make_no_piece(
    first: int, second: int, size: float, up: bool
) -> None:
    law = 2e-5 + SIZES / 1e11
    law[[first, second]] *= size if up else 1.0 / size
    cuts, ((alpha, growth), *_) = fit_pieces(SIZES, law)
    assert cuts.tolist() == []
    assert near(alpha, 2e-5, 0.02)
    assert near(1.0 / growth, 1e11, 0.02)


@given(st.integers(5, 14), st.floats(1.5, 3.0), st.booleans(), st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_a_planted_change_of_protocol_is_found_where_it_is(at: int, jump: float, slower: bool, away: int) -> None:
    # alpha x beta is 2 MB: both numbers of the law show. Above size `at` all is `jump` times as dear or as cheap.
    law = (2e-5 + SIZES / 1e11) * np.where(SIZES[at] < SIZES, jump if slower else 1.0 / jump, 1.0)
    law[at - away - 1] *= 5.0  # a spike near it
    cuts, _ = fit_pieces(SIZES, law)
    assert len(cuts) == 1
    assert SIZES[at] < cuts[0] < SIZES[at + 1]


def test_a_planted_change_of_protocol_is_found_through_noise_and_spikes() -> None:
    size = np.repeat(SIZES, 3)
    for seed in range(25):
        at, jump = 6 + seed % 8, 1.7 + seed / 25
        law = (2e-5 + size / 1e11) * np.where(size > SIZES[at], jump if seed % 2 else 1 / jump, 1.0)
        cuts, _ = fit_pieces(size, dirty(law, seed))
        assert len(cuts) == 1
        assert SIZES[at] < cuts[0] < SIZES[at + 1]


def test_pieces_may_jump_and_each_size_is_priced_by_its_own() -> None:
    law = np.where(SIZES <= 2**16, 1e-5, 3e-5) + SIZES / 1e11
    cuts, pieces = fit_pieces(SIZES, law)
    assert cuts.tolist() == [float(f"{2**16.5:.4e}")]  # the geometric mean of 2^16 and 2^17, five digits
    assert priced(cuts, pieces, SIZES) == pytest.approx(law, rel=1e-3)


@pytest.mark.parametrize("operation", COLLECTIVES)
def test_a_ring_over_all_ranks_gives_latency_and_bandwidth(operation: str) -> None:
    ranks = np.repeat([2.0, 4.0, 8.0], len(SIZES))
    size = np.tile(SIZES, 3)
    # The ring by hand: n - 1 steps and (n - 1)/n of the message; all_reduce twice both; a sent message is whole.
    steps, wire = ranks - 1, (ranks - 1) / ranks * size
    if operation == "all_reduce":
        steps, wire = 2 * steps, 2 * wire
    if operation in ("send_recv", "broadcast"):
        wire = size
    if operation == "send_recv":
        steps = np.ones_like(ranks)
    columns = {"nodes": [1] * len(size), "ranks": ranks.tolist(), "message_bytes": size.tolist()}
    made = table(operation, columns, dirty(steps * 3e-6 + wire / 2e11, 7), backend="nccl")
    fits = fit_profile(profile(made)).fits
    assert [fit.form for fit in fits] == ["alpha_beta"] * 3 + ["ring"]
    found = fits[-1].pieces[0].coefficients
    assert near(found["latency_s"], 3e-6, 0.03)
    assert near(found["bandwidth_bytes_per_s"], 2e11, 0.02)
    assert near(fits[-1].derived["utilisation_of_link"], 0.5, 0.02)  # of the 4e11 that the card states
    assert fits[-1].pieces[0].ranges["message_bytes"][0] == 65536  # smaller messages run other protocols


@pytest.mark.parametrize(("family", "flops"), [("encoder_attention", 4 * 64), ("prefill_attention", 2 * 64)])
def test_attention_gives_its_quadratic_for_each_curve_and_over_all_heads(family: str, flops: int) -> None:
    lengths = 2.0 ** np.arange(6, 16)
    heads, length = np.repeat([4.0, 16.0, 64.0], len(lengths)), np.tile(lengths, 3)
    law = 1e-5 + 2e-10 * heads * length + 5e-13 * heads * length**2
    columns = {"head_dim": [64] * len(law), "heads": heads.tolist(), "length": length.tolist()}
    if family == "prefill_attention":
        columns |= {"queries_per_kv_head": [1] * len(law), "batch": [1] * len(law)}
    joint, *curves = fit_profile(profile(table(family, columns, dirty(law, 3, 0.01)))).fits
    found = joint.pieces[0].coefficients
    assert near(found["c0_s"], 1e-5, 0.03)
    assert near(found["c1_s_per_head_token"], 2e-10, 0.1)
    assert near(found["c2_s_per_head_token2"], 5e-13, 0.03)
    assert near(joint.derived["flop_per_s"], flops / 5e-13, 0.03)
    assert [fit.at["heads"] for fit in curves] == [4, 16, 64]
    assert near(curves[2].pieces[0].coefficients["c2_s_per_token2"], 64 * 5e-13, 0.05)


def test_decoding_is_a_line_in_the_tokens_it_attends_to() -> None:
    lengths = 2.0 ** np.arange(6, 18)
    batch, length = np.repeat([1.0, 8.0, 64.0], len(lengths)), np.tile(lengths, 3)
    # 2 x 2 bytes x 128 a head and token at 1e12 B/s: 5.12e-10 s.
    law = 1e-5 + 1e-8 * 8 * batch + 5.12e-10 * 8 * batch * length
    ones = [1] * len(law)
    columns = {"head_dim": [128] * len(law), "queries_per_kv_head": ones, "batch": batch.tolist()}
    columns |= {"heads": [8] * len(law), "kv_length": length.tolist()}
    joint, *curves = fit_profile(profile(table("decode_attention", columns, dirty(law, 5, 0.01)))).fits
    assert near(joint.derived["bytes_per_s"], 1e12, 0.02)
    assert near(joint.derived["utilisation_of_memory"], 0.5, 0.02)
    assert near(curves[1].pieces[0].coefficients["c1_s_per_token"], 5.12e-10 * 64, 0.05)


def gemm_rows(flop_per_s: float) -> tuple[dict[str, list[int]], Floats]:
    """A roofline without offsets: 5 us, `flop_per_s` and 1e12 B/s, bf16."""
    grid = np.array([(m, n, k) for m in 2 ** np.arange(15) for n in (1024, 8192) for k in (1024, 8192)], dtype=float)
    m, n, k = grid.T
    compute, memory = 2 * m * n * k / flop_per_s, 2 * (m * k + k * n + m * n) / 1e12
    return {"m": m.tolist(), "n": n.tolist(), "k": k.tolist()}, 5e-6 + (compute**4 + memory**4) ** 0.25


def test_products_give_the_rates_of_their_roofline_and_how_much_of_the_card_that_is() -> None:
    columns, law = gemm_rows(4e14)
    (fit,) = fit_profile(profile(table("gemm", columns, dirty(law, 11, 0.01)))).fits
    found = fit.pieces[0].coefficients
    assert near(found["flop_per_s"], 4e14, 0.03)
    assert near(found["bytes_per_s"], 1e12, 0.05)
    assert near(found["overhead_s"], 5e-6, 0.2)
    assert near(fit.derived["utilisation_of_peak"], 0.8, 0.03)
    assert near(fit.derived["utilisation_of_memory"], 0.5, 0.05)


def test_no_rate_is_fitted_above_what_the_device_states_and_the_bound_is_named() -> None:
    columns, law = gemm_rows(8e14)
    (fit,) = fit_profile(profile(table("gemm", columns, law))).fits
    assert near(fit.pieces[0].coefficients["flop_per_s"], 5e14, 1e-3)
    assert "flop_per_s" in fit.at_bound


def test_a_device_that_states_nonsense_still_gets_a_fit() -> None:
    columns, law = gemm_rows(8e14)
    slow = Device(name="card", peak_flop_per_s={"bf16": 1.0}, memory_bandwidth_bytes_per_s=1e-3)
    (fit,) = fit_profile(profile(table("gemm", columns, law), device=slow)).fits
    assert set(fit.at_bound) >= {"flop_per_s", "bytes_per_s"}


def test_copies_give_alpha_and_beta() -> None:
    made = table("memory_copy", {"message_bytes": SIZES.tolist()}, 4e-6 + SIZES / 1e12, workload="device_to_device")
    (fit,) = fit_profile(profile(made)).fits
    assert fit.pieces[0].coefficients == {"alpha_s": 4e-6, "beta_bytes_per_s": 1e12}
    assert fit.derived == {"utilisation_of_memory": 0.5}
    assert fit.r_squared == 1.0


def test_a_curve_that_does_not_grow_has_no_beta() -> None:
    made = table("memory_copy", {"message_bytes": SIZES[:6].tolist()}, np.full(6, 4e-6))
    (fit,) = fit_profile(profile(made)).fits
    assert fit.pieces[0].coefficients == {"alpha_s": 4e-6, "beta_bytes_per_s": None}
    assert fit.r_squared is None


def test_errors_are_those_of_the_stated_coefficients() -> None:
    loaded = load("h200-sxm")
    fit = fit_profile(loaded, ["all_gather"]).fits[0]
    rows = loaded.cost_table("all_gather", "fp16", backend="nccl")
    own = (rows.columns["ranks"] == fit.at["ranks"]) & ~rows.estimated
    size, seconds = rows.columns["message_bytes"][own].astype(float), rows.seconds[own]
    which = np.searchsorted(fit.breakpoints_bytes, size)
    alpha = np.array([piece.coefficients["alpha_s"] for piece in fit.pieces])[which]
    beta = np.array([piece.coefficients["beta_bytes_per_s"] for piece in fit.pieces])[which]
    off = np.abs((alpha + size / beta) / seconds - 1.0)
    assert fit.error.rows == len(seconds) == sum(piece.rows for piece in fit.pieces)
    assert fit.error.mape == pytest.approx(off.mean(), rel=1e-2)
    assert fit.error.median == pytest.approx(np.median(off), rel=1e-2)
    assert fit.error.p90 == pytest.approx(np.percentile(off, 90), rel=1e-2)
    assert fit.r_squared is not None
    assert fit.r_squared > 0.999


def test_a_fit_to_noise_shows_on_rows_that_it_did_not_see() -> None:
    # Three rows for two coefficients: one row left out is predicted from a line through the other two.
    made = table("memory_copy", {"message_bytes": [1000, 2000, 3000]}, np.array([1e-5, 3e-5, 2e-5]))
    (fit,) = fit_profile(profile(made)).fits
    assert fit.held_out is not None
    assert fit.held_out.how == "leave one out"
    assert fit.held_out.mape > 2 * fit.error.mape


def test_rows_that_carry_a_neighbours_time_are_not_fitted() -> None:
    seconds = 4e-6 + SIZES / 1e12
    seconds[-1] = seconds[-2]
    made = table("memory_copy", {"message_bytes": SIZES.tolist()}, seconds, estimated_rows=[len(SIZES) - 1])
    (fit,) = fit_profile(profile(made)).fits
    assert fit.error.rows == len(SIZES) - 1
    assert fit.error.p90 < 1e-6


def test_the_same_profile_gives_the_same_document_which_names_it() -> None:
    loaded = load("a100-sxm")
    documents = [fit_profile(loaded, ["all_to_all"]) for _ in range(2)]
    texts = [document.model_dump_json() for document in documents]
    assert texts[0] == texts[1]
    assert (documents[0].profile, documents[0].profile_sha256) == ("a100-sxm", loaded.sha256)
    assert FitDocument.model_validate_json(texts[0]) == documents[0]
    assert json.loads(texts[0])["format_version"] == "1.0"


def test_tables_without_a_fit_are_listed_with_the_reason() -> None:
    few = table("gemm", {"m": [1, 2], "n": [1, 1], "k": [1, 1]}, np.array([1e-5, 2e-5]))
    assert fit_profile(profile(few)).not_fitted == ["gemm/bf16: 2 rows are too few for any fit"]


def gathers(ranks: list[int]) -> Table:
    """Each number of ranks at eight sizes, 1e-5 s and the ring's bytes at 1e11 B/s."""
    sizes = [2**power for power in range(16, 24)]
    rows = [(each, size) for each in ranks for size in sizes]
    seconds = np.array([1e-5 + (each - 1) / each * size / 1e11 for each, size in rows])
    columns = {"nodes": [1] * len(rows), "ranks": [each for each, _ in rows], "message_bytes": [s for _, s in rows]}
    return table("all_gather", columns, seconds, backend="nccl")


@pytest.mark.filterwarnings("error")
def test_collectives_of_one_rank_are_left_out_and_that_is_said() -> None:
    document = fit_profile(profile(gathers([1, 2, 4])))
    assert [fit.at for fit in document.fits] == [{"nodes": 1, "ranks": 2}, {"nodes": 1, "ranks": 4}, {"nodes": 1}]
    assert document.not_fitted == ["all_gather/bf16/nccl: 8 of 24 rows have ranks 1, where nothing is sent"]
    # The same numbers as without these rows.
    assert document.fits == fit_profile(profile(gathers([2, 4]))).fits
    alone = fit_profile(profile(gathers([1])))
    assert alone.fits == []
    assert alone.not_fitted[0] == "all_gather/bf16/nccl: 8 of 8 rows have ranks 1, where nothing is sent"


LENGTHS = [2**power for power in range(7, 15)]
HEADS = [8] * len(LENGTHS)
EXTREME = {
    "gemm": {"m": LENGTHS, "n": HEADS, "k": HEADS},
    "moe_gemm": {"hidden": HEADS, "ffn": HEADS, "experts": HEADS, "top_k": HEADS, "tensor_ranks": HEADS,
                 "expert_ranks": HEADS, "tokens": LENGTHS},
    "encoder_attention": {"head_dim": HEADS, "heads": HEADS, "length": LENGTHS},
    "prefill_attention": {"head_dim": HEADS, "queries_per_kv_head": HEADS, "batch": HEADS, "heads": HEADS,
                          "length": LENGTHS},
    "decode_attention": {"head_dim": HEADS, "queries_per_kv_head": HEADS, "batch": HEADS, "heads": HEADS,
                         "kv_length": LENGTHS},
    "memory_copy": {"message_bytes": LENGTHS},
    "all_reduce": {"nodes": [1] * len(LENGTHS), "ranks": HEADS, "message_bytes": LENGTHS},
}  # fmt: skip
LEAST = Device(name="card", memory_bandwidth_bytes_per_s=5e-324, peak_flop_per_s={"bf16": 5e-324},
               intra_node_bandwidth_bytes_per_s=5e-324)  # fmt: skip
MOST = Device(name="card", memory_bandwidth_bytes_per_s=1e308, peak_flop_per_s={"bf16": 1e308},
              intra_node_bandwidth_bytes_per_s=1e308)  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("family", EXTREME)
@pytest.mark.parametrize("device", [LEAST, MOST], ids=["least", "most"])
@pytest.mark.parametrize("seconds", [5e-324, 1e-300, 1e-5, 1e6])
def test_numbers_at_the_ends_of_floating_point_are_fitted_or_said_never_raised(
    family: str, device: Device, seconds: float
) -> None:
    flat = np.full(len(LENGTHS), seconds)
    mixed = np.where(np.arange(len(LENGTHS)) % 2, flat, 1e6)
    for rows in (flat, mixed):
        document = fit_profile(profile(table(family, EXTREME[family], rows), device=device))
        assert document.fits or document.not_fitted
        # Whatever was made can be written and read.
        assert FitDocument.model_validate_json(document.model_dump_json()) == document


def test_curves_that_fail_alike_are_one_line() -> None:
    sizes = EXTREME["all_reduce"]["message_bytes"]
    columns = {"nodes": [1] * 16, "ranks": [2] * 8 + [4] * 8, "message_bytes": sizes * 2}
    made = table("all_reduce", columns, np.full(16, 5e-324), backend="nccl")
    lines = [line for line in fit_profile(profile(made)).not_fitted if "alpha_beta" in line]
    assert len(lines) == 1
    assert lines[0].startswith("all_reduce/bf16/nccl: alpha_beta at nodes 1, ranks 2 and 1 more: ")


def test_an_unknown_family_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'gemm'\?"):
        fit_profile(profile(), ["gem"])


def test_without_scipy_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    robust.optimizer.cache_clear()
    monkeypatch.setattr(robust, "import_module", absent)
    with pytest.raises(ProfileError, match=r"pip install 'girih\[fit\]'"):
        fit_profile(load("h200-sxm"), ["all_gather"])
