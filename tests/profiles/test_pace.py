"""Between two rows time moves in the steps of tiles and waves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles.document import Pace, Table
from profiles.families import FAMILIES
from profiles.making.pace_fit import fit_pace
from profiles.pace import COSTS, PLAIN, SIZE, Pacing, known_costs
from profiles.table import CostTable

GEMM, ENCODER = FAMILIES["gemm"], FAMILIES["encoder_attention"]
SMALL = {"head_dim": 64, "queries_per_kv_head": 2, "batch": 3, "heads": 8, "nodes": 1, "ranks": 4, "n": 4096, "k": 512}


@pytest.mark.parametrize("family", sorted(COSTS))
@settings(max_examples=60, deadline=None)
@given(size=st.integers(1, 200_000), step=st.integers(1, 5_000))
def test_no_cost_falls_with_more_work(family: str, size: int, step: int) -> None:
    axes = {axis: np.float64(value) for axis, value in SMALL.items()}
    along = FAMILIES[family].along
    for cost in COSTS[family].values():
        less, more = (cost({**axes, along: np.float64(work)}, 132.0) for work in (size, size + step))
        assert 0 < less <= more


def waves(m: np.ndarray) -> np.ndarray:
    """Whole waves of 128 x 128 tiles of an (m, 4096) product on 132 multiprocessors: ceil(ceil(m / 128) 32 / 132)."""
    return np.ceil(np.ceil(m / 128) * 32 / 132)


def stepped() -> tuple[dict[str, np.ndarray], np.ndarray]:
    m = np.unique(np.geomspace(64, 60_000, 60).astype(np.int64))
    return {"m": m, "n": np.full_like(m, 4096), "k": np.full_like(m, 4096)}, 1e-5 * waves(m)


def test_waves_are_found_where_time_moves_in_waves() -> None:
    columns, seconds = stepped()
    weights = fit_pace(GEMM, columns, seconds, 132)
    assert weights["waves_128x128"] > 0.9
    assert sum(weights.values()) == pytest.approx(1.0, abs=1e-3)
    table = CostTable(GEMM, columns, seconds, (), Pacing(GEMM, weights, 132))
    m = np.arange(9_000, 9_500, dtype=np.float64)
    flat = np.full_like(m, 4096)
    priced = table.look_up({"m": m, "n": flat, "k": flat}).seconds
    plain = CostTable(GEMM, columns, seconds).look_up({"m": m, "n": flat, "k": flat}).seconds
    truth = 1e-5 * waves(m)
    assert np.abs(priced / truth - 1).max() < 0.02
    assert np.abs(plain / truth - 1).max() > 0.02


def test_without_the_number_of_multiprocessors_waves_are_not_counted() -> None:
    assert not any(name.startswith("waves") for name in known_costs("gemm", None))
    columns, seconds = stepped()
    assert not any(name.startswith("waves") for name in fit_pace(GEMM, columns, seconds, None))


def test_smooth_curves_and_few_rows_keep_log_log() -> None:
    m = np.unique(np.geomspace(64, 60_000, 60).astype(np.int64))
    columns = {"m": m, "n": np.full_like(m, 512), "k": np.full_like(m, 512)}
    assert fit_pace(GEMM, columns, 1e-9 * m.astype(np.float64), 132) == PLAIN
    few = {axis: column[:20] for axis, column in columns.items()}
    assert fit_pace(GEMM, few, 1e-5 * waves(m[:20]), 132) == PLAIN


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_prices_stay_between_their_rows_meet_them_and_never_fall(data: st.DataObject) -> None:
    lengths = np.array(sorted(data.draw(st.sets(st.integers(1, 20_000), min_size=2, max_size=8))))
    seconds = np.cumsum(data.draw(st.lists(st.floats(0, 1), min_size=len(lengths), max_size=len(lengths)))) + 1e-6
    chosen = data.draw(st.sets(st.sampled_from(sorted(COSTS["encoder_attention"])), max_size=3))
    weights = {SIZE: 1 - 0.3 * len(chosen), **dict.fromkeys(chosen, 0.3)}
    columns = {"head_dim": np.full_like(lengths, 64), "heads": np.full_like(lengths, 5), "length": lengths}
    table = CostTable(ENCODER, columns, seconds, (), Pacing(ENCODER, weights, 132))
    asked = np.unique(np.linspace(lengths[0], lengths[-1], 400).round())
    query = {"head_dim": np.full_like(asked, 64), "heads": np.full_like(asked, 5), "length": asked}
    priced = table.look_up(query).seconds
    assert (np.diff(priced) >= -1e-12 * priced[1:]).all()
    met = np.isin(asked, lengths)
    assert np.array_equal(priced[met], seconds[np.isin(lengths, asked)])


def test_a_pace_that_no_fit_gives_is_refused() -> None:
    rows = {"m": [1, 2], "n": [8, 8], "k": [8, 8]}
    for pace, message in (
        (Pace(weights={"size": 0.5, "wave_128": 0.5}), "got wave_128"),
        (Pace(weights={"rows_64": 1.0}), "got no size"),
        (Pace(weights={"size": 0.5, "waves_64x64": 0.5}), "got waves_64x64"),  # multiprocessors are not stated
        (Pace(weights={"size": 0.3, "rows_64": 0.3}), "add up to 1"),
        (Pace(weights={"size": 1e-18, "rows_64": 1.0}), "size 1e-18"),
    ):
        with pytest.raises(ValueError, match=message):
            Table(family="gemm", dtype="bf16", provenance="x", pace=pace, columns=rows, latency_s=[1.0, 2.0])
