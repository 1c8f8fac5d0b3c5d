"""What a file of measured runs teaches a derived problem."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.derivation.looked_up import looked_up
from planner.derivation.training.calibration import Calibration
from planner.errors import BadInputError
from planner.paper import DeriveOptions
from planner.papers.layout.calibration.capacity import RankAmounts, amounts, fit_reserve, peak_bytes
from planner.papers.layout.calibration.fit import step_times_s
from planner.papers.layout.calibration.learned import _halves, applied, learn
from planner.papers.layout.calibration.pricing import price_runs
from planner.papers.layout.calibration.runs import Run, read_runs
from planner.papers.layout.costs.links import tiers_of
from planner.papers.layout.costs.setting import Setting, setting_of
from planner.papers.layout.derived import LayoutDerivedProblem
from planner.papers.layout.table import Tiers
from planner.validation import validate

HEADER = (
    "num_gpus,sequence_length,global_batch_size,micro_batch,tp,pp,vpp,zero_stage,sequence_parallel,step_time_s,result"
)
MODEL = {"name": "small", "hidden": 2048, "num_layers": 10, "num_heads": 16, "ffn": 5632, "vocab": 32000}
LAYOUTS = [(b, t, p, sp) for b in (1, 2) for t, sp in ((1, 0), (2, 0), (2, 1), (4, 1)) for p in (1, 2)]


def _lines(times: list[float | None]) -> list[str]:
    shown = ["" if time is None else f"{time:.9g}" for time in times]
    return [
        f"8,2048,64,{b},{t},{p},1,1,{sp},{time},{'ok' if time else 'oom'}"
        for (b, t, p, sp), time in zip(LAYOUTS, shown, strict=True)
    ]


def _read(folder: Path, lines: list[str]) -> tuple[Run, ...]:
    path = folder / "runs.csv"
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return read_runs(path, "derive.runs")


@pytest.fixture(scope="module")
def priced_by() -> tuple[Setting, Tiers]:
    """A small model on one node."""
    document = validate(
        LayoutDerivedProblem,
        {
            "paper": "layout",
            "batch": {"global_batch_size": 64, "sequence_length": 2048},
            "derive": {
                "profile": "a100-sxm",
                "extrapolate": "roofline",
                "cluster": {"num_ranks": 8, "gpus_per_node": 8},
                "model": MODEL,
            },
        },
    )
    found = looked_up(document, document.derive, DeriveOptions())
    setting = setting_of(found.given, 2048, found.profile, found.cluster, found.folder)
    return setting, tiers_of(setting, found.written.cluster)


def _true_times(priced_by: tuple[Setting, Tiers], runs: tuple[Run, ...], calibration: Calibration) -> list[float]:
    ((priced, _),) = price_runs(*priced_by, runs, "derive.runs")
    return step_times_s(priced, calibration)


def test_the_calibration_behind_step_times_is_learned_and_errors_are_of_the_other_half(
    priced_by: tuple[Setting, Tiers], tmp_path: Path
) -> None:
    true = Calibration(gemm=1.1, attention=1.0, experts=1.1, elementwise=2.5, communication=1.4)
    runs = _read(tmp_path, _lines([1.0] * len(LAYOUTS)))
    times = _true_times(priced_by, runs, true)
    learned = learn(*priced_by, _read(tmp_path, _lines(list(times))), "derive.runs")
    again = _true_times(priced_by, runs, learned.calibration)
    assert again == pytest.approx(times, rel=0.01)
    assert learned.errors is not None and learned.errors.runs == len(LAYOUTS)
    assert learned.errors.p90 < 0.02
    assert learned.reserved is None and learned.memory is None
    given = applied(priced_by[0].given, learned)
    assert given.calibration == learned.calibration and given.memory == priced_by[0].given.memory


def test_runs_out_of_memory_teach_the_reserve(priced_by: tuple[Setting, Tiers], tmp_path: Path) -> None:
    ((priced, runs),) = price_runs(*priced_by, _read(tmp_path, _lines([1.0] * len(LAYOUTS))), "derive.runs")
    peaks = [peak_bytes(amounts(*each), 0.0) for each in zip(priced.problems, priced.layouts, strict=True)]
    # A card with 1 % more than the second fullest: it fails for what no tensor says.
    limit = sorted(peaks)[-2]
    setting, tiers = priced_by
    memory = setting.given.memory.model_copy(update={"capacity_bytes": 1.01 * limit, "reserve_bytes": 0.0})
    card = replace(setting, given=setting.given.model_copy(update={"memory": memory}))
    lines = _lines([1.0 if peak < limit else None for peak in peaks])
    learned = learn(card, tiers, _read(tmp_path, lines), "derive.runs")
    assert learned.memory is not None and learned.reserved is not None
    assert (learned.memory.failed, learned.memory.ran, learned.memory.wrong) == (2, len(runs) - 2, 0)
    assert learned.reserved.fragmentation == 0.0
    assert applied(card.given, learned).memory.reserve_bytes == learned.reserved.reserve_bytes > 0.01 * limit


def _held(fixed: float, moving: float) -> RankAmounts:
    """A run of two ranks, the second without anything."""
    return RankAmounts(np.array([fixed, 0.0]), np.array([moving, 0.0]))


def test_measured_peaks_teach_the_reserve_and_the_fragmentation() -> None:
    """Runs took 10 % more of what comes and goes, and 2 GB beside: 40 + 20 GB -> 64, 30 + 40 GB -> 76."""
    held = [_held(40e9, 20e9), _held(30e9, 40e9), _held(10e9, 10e9)]
    found = fit_reserve(held, [True, True, True], 80e9, 1e9, [64e9, 76e9, None])
    assert found.fragmentation == pytest.approx(0.1)
    assert (found.reserve_bytes, found.wrong) == (pytest.approx(2e9), 0)


def test_who_ran_out_of_memory_counts_before_measured_peaks() -> None:
    """60 GB ran and 61 GB did not, of 64: the reserve is above 3 GB and at most 4, whatever 1 GB beside it was seen."""
    held = [_held(60e9, 0.0), _held(61e9, 0.0)]
    found = fit_reserve(held, [True, False], 64e9, 1e9, [61e9, None])
    # Reserves are tried in steps of 0.15 x 64 / 240 GB = 40 MB.
    assert (found.reserve_bytes, found.wrong) == (pytest.approx(3.04e9), 0)


def test_without_peaks_and_without_both_kinds_of_run_nothing_is_fitted() -> None:
    found = fit_reserve([_held(60e9, 0.0)], [True], 64e9, 1e9, [None])
    assert (found.fragmentation, found.reserve_bytes) == (0.0, 1e9)


def test_halves_are_mixed_and_the_same_on_every_machine() -> None:
    """By the first bytes of sha256 of "0" to "7", in hexadecimal 5f, 6b, d4, 4e, 4b, ef, e7, 79: 4 3 0 1 7 2 6 5."""
    assert _halves(8) == ({4, 0, 7, 6}, {3, 1, 2, 5})


def test_a_measured_peak_is_enough_to_learn_a_reserve(priced_by: tuple[Setting, Tiers], tmp_path: Path) -> None:
    ((priced, _),) = price_runs(*priced_by, _read(tmp_path, _lines([1.0] * len(LAYOUTS))), "derive.runs")
    modelled = peak_bytes(amounts(priced.problems[0], priced.layouts[0]), 0.0)
    line = f"{_lines([1.0] * len(LAYOUTS))[0]},{(modelled + 3e9) / 2**30!r}"
    path = tmp_path / "measured.csv"
    path.write_text(f"{HEADER},memory_gib\n{line}\n")
    learned = learn(*priced_by, read_runs(path, "derive.runs"), "derive.runs")
    assert learned.reserved is not None
    assert learned.reserved.reserve_bytes == pytest.approx(3e9)
    assert applied(priced_by[0].given, learned).memory.reserve_bytes == learned.reserved.reserve_bytes


def test_layers_are_spread_evenly_with_one_more_on_the_first_stages(
    priced_by: tuple[Setting, Tiers], tmp_path: Path
) -> None:
    runs = _read(tmp_path, ["8,2048,64,1,1,4,1,1,0,1,ok", "8,1024,64,1,1,4,2,1,0,1,ok"])
    parts = price_runs(*priced_by, runs, "derive.runs")
    assert [priced.layouts[0].partition for priced, _ in parts] == [(2, 2, 1, 1, 1, 1, 1, 1), (3, 3, 2, 2)]
    assert [part[0].sequence_length for _, part in parts] == [1024, 2048]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("8,2048,64,1,1,8,2,1,0,1,ok", "line 2: 16 virtual stages for 10 layers"),
        ("8,2048,64,1,8,1,1,1,0,,oom", "nothing to learn"),
        ("16,2048,64,1,16,1,1,1,0,1,ok", "line 2: no price for its"),
    ],
)
def test_a_run_that_teaches_nothing_is_told(
    priced_by: tuple[Setting, Tiers], tmp_path: Path, line: str, said: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        learn(*priced_by, _read(tmp_path, [line]), "derive.runs")
    assert said in caught.value.message and caught.value.where == "derive.runs"
