"""From raw rows to a table: repeats, spikes, steps that get faster, thinning, and errors that are true."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles.families import FAMILIES
from profiles.making.building import RawRows, build_table
from profiles.making.monotone import heaviest_rising, hold_ends, longest_rising
from profiles.making.repeats import merge_repeats
from profiles.making.thin import thinned_rows
from profiles.pace import Pacing
from profiles.roofline import MODELS, fit_roofline, modelled_seconds, wire_bytes

positive = st.floats(1e-6, 1e2)


def raw(along: list[int], seconds: list[float]) -> RawRows:
    columns = {"m": np.array(along), "n": np.full(len(along), 64), "k": np.full(len(along), 64)}
    return RawRows("gemm", "bf16", columns, np.array(seconds), "test")


def test_repeats_become_their_median_and_their_spread_is_kept() -> None:
    # Three repeats of one key, one of them a 4.2-fold slow run: the median does not see it.
    table = build_table(raw([8, 16, 16, 16, 32], [1.0, 2.0, 2.1, 8.4, 4.0]))
    assert table.latency_s == [1.0, 2.1, 4.0]
    assert table.counts.repeats_merged == 2
    assert table.repeat_spread is not None
    assert table.repeat_spread.rows == 3
    assert table.repeat_spread.p90 > 1


def test_two_repeats_become_their_mean() -> None:
    columns, seconds, centre = merge_repeats({"m": np.array([4, 4, 2])}, np.array([1.0, 3.0, 0.5]), ["m"])
    assert columns["m"].tolist() == [2, 4]
    assert seconds.tolist() == [0.5, 2.0]
    assert centre[:2].tolist() == [2.0, 2.0]
    assert np.isnan(centre[2])


@pytest.mark.parametrize("spike", [16.0, 1 / 16])
def test_a_lone_spike_up_or_down_does_not_survive(spike: float) -> None:
    sizes = [2**e for e in range(8)]
    seconds = [1e-6 * size for size in sizes]
    seconds[4] *= spike
    table = build_table(raw(sizes, seconds))
    assert 16 not in table.columns["m"]
    assert table.counts.not_monotone_dropped == 1
    assert len(table.latency_s) == 7


def test_steps_back_that_are_small_stay_at_a_kept_neighbours_time_and_kept_rows_are_as_measured() -> None:
    # 2.0 before 1.9 and 3.0 before 2.9 are 5 and 3 % off: they stay, as estimates, at the time of the row behind.
    table = build_table(raw([1, 2, 3, 4, 5, 6], [1.0, 2.0, 1.9, 3.0, 2.9, 4.0]))
    assert table.latency_s == [1.0, 1.9, 1.9, 2.9, 2.9, 4.0]
    assert table.estimated_rows == [1, 3]
    assert (table.counts.replaced, table.counts.not_monotone_dropped) == (2, 0)


def test_steps_back_that_are_large_are_left_out() -> None:
    table = build_table(raw([1, 2, 3, 4, 5, 6], [1.0, 2.5, 1.9, 3.9, 2.9, 4.0]))
    assert table.latency_s == [1.0, 1.9, 2.9, 4.0]
    assert (table.counts.replaced, table.counts.not_monotone_dropped) == (0, 2)


def test_a_curve_spans_all_that_was_measured_even_if_its_ends_are_spikes() -> None:
    table = build_table(raw([1, 2, 4, 8], [9.0, 2.0, 3.0, 2.5]))
    assert table.columns["m"] == [1, 2, 8] or table.columns["m"] == [1, 2, 4, 8]
    assert table.latency_s[0] == 2.0
    assert 0 in table.estimated_rows
    assert table.cost_table().estimated.tolist()[0]


@given(st.lists(positive, max_size=40))
def test_the_longest_rising_part_rises_and_nothing_can_be_added(values: list[float]) -> None:
    keep = longest_rising(np.array(values))
    kept = np.array(values)[keep]
    assert (np.diff(kept) >= 0).all()
    for index in np.flatnonzero(~keep):
        extended = keep.copy()
        extended[index] = True
        assert (np.diff(np.array(values)[extended]) < 0).any()


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 9)), min_size=1, max_size=9))
def test_the_heaviest_rising_part_weighs_as_much_as_the_best_of_all_subsets(rows: list[tuple[int, int]]) -> None:
    values, weight = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    keep = heaviest_rising(values, weight)
    assert (np.diff(values[keep]) >= 0).all()
    subsets = (np.array(mask) for mask in itertools.product((False, True), repeat=len(rows)))
    assert weight[keep].sum() == max(weight[mask].sum() for mask in subsets if (np.diff(values[mask]) >= 0).all())


@given(st.lists(positive, min_size=1, max_size=30))
def test_held_ends_keep_the_curve_rising(values: list[float]) -> None:
    seconds = np.array(values)
    columns = {"m": np.arange(1, len(values) + 1)}
    held_seconds, keep, held = hold_ends(columns, seconds, "m", longest_rising(seconds))
    assert keep[0]
    assert keep[-1]
    assert (np.diff(held_seconds[keep]) >= 0).all()
    assert np.array_equal(held_seconds[~held], seconds[~held])


@settings(max_examples=50)
@given(st.lists(st.floats(-0.4, 0.4), min_size=3, max_size=40), st.floats(0.001, 0.2))
def test_thinned_rows_give_the_dropped_ones_back_within_the_tolerance(noise: list[float], tolerance: float) -> None:
    x = 2 ** np.arange(len(noise))
    seconds = 1e-6 * x * np.exp(noise)
    columns = {"m": x, "n": np.ones_like(x), "k": np.ones_like(x)}
    keep = thinned_rows(columns, seconds, Pacing(FAMILIES["gemm"]), tolerance)
    assert keep[0]
    assert keep[-1]
    back = np.exp(np.interp(np.log(x), np.log(x[keep]), np.log(seconds[keep])))
    assert np.abs(np.log(back / seconds)).max() <= np.log1p(tolerance) * (1 + 1e-9)


def test_the_stored_error_is_that_of_leaving_each_row_out() -> None:
    # t = m^2 at 1, 2, 4 and 10 % more at 2: neighbours predict 2 as 4 / 4.4, so |4 / 4.4 - 1| = 1 / 11.
    table = build_table(raw([1, 2, 4], [1.0, 4.4, 16.0]))
    assert table.errors[0].rows == 1
    assert table.errors[0].median == pytest.approx(1 / 11, rel=1e-3)


def test_spikes_count_in_the_stored_error_although_they_are_not_in_the_table() -> None:
    sizes = [2**e for e in range(8)]
    seconds = [1e-6 * size for size in sizes]
    seconds[4] *= 16
    errors = build_table(raw(sizes, seconds)).errors[0]
    assert errors.rows == 6
    assert errors.p90 > 0.4


@pytest.mark.parametrize("family", sorted(MODELS))
def test_a_model_finds_its_own_coefficients_again_despite_spikes(family: str) -> None:
    rng = np.random.default_rng(5)
    axes = {
        axis: np.exp(rng.uniform(np.log(8), np.log(8192), 400)).round()
        for axis in ("m", "n", "k", "heads", "length", "kv_length", "batch", "tokens", "message_bytes", "head_dim",
                     "hidden", "ffn", "experts", "top_k", "width")
    }  # fmt: skip
    axes["message_bytes"] = axes["message_bytes"] ** 2
    axes["head_dim"] = np.full(400, 64.0)
    axes.update({axis: np.full(400, 1.0) for axis in ("queries_per_kv_head", "tensor_ranks", "expert_ranks", "nodes")})
    axes["ranks"] = rng.integers(2, 9, 400).astype(float)
    truth = {name: value * 1.7 for name, value in MODELS[family].start.items()}
    seconds = modelled_seconds(family, axes, truth, 2.0)
    spiked = seconds.copy()
    spiked[::40] *= 16
    found = fit_roofline(family, axes, spiked, 2.0)
    again = modelled_seconds(family, axes, found, 2.0)
    assert np.median(np.abs(again / seconds - 1)) < 0.02


@pytest.mark.parametrize("family", sorted(MODELS))
@given(data=st.data())
def test_no_model_makes_more_work_cheaper(family: str, data: st.DataObject) -> None:
    from profiles.families import FAMILIES

    axes = {axis: float(data.draw(st.integers(1, 10_000), label=axis)) for axis in FAMILIES[family].axes}
    along = FAMILIES[family].along
    more = {**axes, along: axes[along] + data.draw(st.integers(1, 10_000))}
    coefficients = {name: data.draw(st.floats(0.1, 10.0)) * value for name, value in MODELS[family].start.items()}
    price = [
        float(modelled_seconds(family, {a: np.array([v]) for a, v in point.items()}, coefficients, 2.0)[0])
        for point in (axes, more)
    ]
    assert price[0] <= price[1] * (1 + 1e-12)


def test_wire_bytes_follow_the_ring() -> None:
    message, ranks = np.array([800.0]), np.array([8.0])
    assert wire_bytes("all_gather", message, ranks) == 700
    assert wire_bytes("reduce_scatter", message, ranks) == 700
    assert wire_bytes("all_to_all", message, ranks) == 700
    assert wire_bytes("all_reduce", message, ranks) == 1400
    assert wire_bytes("send_recv", message, ranks) == 800
