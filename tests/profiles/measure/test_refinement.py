"""Where to measure next: all curves coarsely, then where they bend, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from profiles.measure.place import Curve, Ladder, Place, Sample
from profiles.measure.refinement import LEAST_RATIO, halved, next_place

GEMM = Curve("gemm", "fp32", "", "", (("n", 64), ("k", 64)))
OTHER = Curve("gemm", "fp32", "", "", (("n", 128), ("k", 64)))
COPY = Curve("memory_copy", "int8", "", "host_to_host", ())


def sample(seconds: float, spread: float = 0.0) -> Sample:
    return Sample(seconds, spread, 5, "test")


def measured_by(law: Callable[[int], float], ladders: list[Ladder], rounds: int) -> list[Place]:
    """The places that are chosen, one after the other, when `law` gives the seconds of a size."""
    measured: dict[Curve, dict[int, Sample]] = {}
    chosen: list[Place] = []
    for _ in range(rounds):
        place = next_place(ladders, measured, (), 0.05)
        if place is None:
            break
        measured.setdefault(place.curve, {})[place.size] = sample(law(place.size))
        chosen.append(place)
    return chosen


def test_families_and_curves_take_turns_from_small_to_large() -> None:
    ladders = [Ladder(GEMM, (1, 10, 100)), Ladder(OTHER, (1, 10, 100)), Ladder(COPY, (4, 8, 16))]
    chosen = measured_by(float, ladders, 9)
    assert [(place.curve, place.size) for place in chosen[:3]] == [(GEMM, 1), (COPY, 4), (OTHER, 1)]
    for curve in (GEMM, OTHER, COPY):
        sizes = [place.size for place in chosen if place.curve == curve]
        assert sizes == sorted(sizes)
        assert len(sizes) == 3


def test_a_straight_curve_is_left_alone() -> None:
    # A power law is straight in the logarithms: every size lies on the line between its neighbours.
    chosen = measured_by(lambda size: 1e-6 * size**1.3, [Ladder(GEMM, (1, 8, 64, 512, 4096))], 100)
    assert [place.size for place in chosen] == [1, 8, 64, 512, 4096]


def test_new_places_gather_where_a_curve_bends() -> None:
    # Flat up to 300, then proportional to size: the corner is at 300, between 64 and 512.
    ladder = Ladder(GEMM, (1, 8, 64, 512, 4096, 32768))
    chosen = measured_by(lambda size: max(size, 300) * 1e-6, [ladder], 100)
    new = [place.size for place in chosen[len(ladder.sizes) :]]
    assert new[0] in range(100, 300) or new[0] in range(300, 600)
    assert np.median(np.abs(np.log2(np.array(new) / 300))) < 1
    sizes = sorted(place.size for place in chosen)
    grid = np.geomspace(1, 32768, 500)
    predicted = np.exp(np.interp(np.log(grid), np.log(sizes), np.log(np.maximum(sizes, 300))))
    assert np.abs(predicted / np.maximum(grid, 300) - 1).max() < 0.1
    # An even grid of as many sizes is two to three times as far off at the corner.
    even = np.geomspace(1, 32768, len(sizes))
    blunt = np.exp(np.interp(np.log(grid), np.log(even), np.log(np.maximum(even, 300))))
    assert np.abs(blunt / np.maximum(grid, 300) - 1).max() > np.abs(predicted / np.maximum(grid, 300) - 1).max()


def test_the_deeper_bend_over_the_wider_gap_comes_first() -> None:
    measured = {
        GEMM: {1: sample(1.0), 8: sample(1.0), 64: sample(8.0)},  # bend of 8**0.5 over a factor of 64
        OTHER: {1: sample(1.0), 2: sample(1.0), 4: sample(2.0)},  # bend of 2**0.5 over a factor of 4
    }
    place = next_place([], measured, (), 0.05)
    assert place is not None
    assert place.curve == GEMM


def test_a_place_that_scatters_as_much_as_it_bends_draws_no_more() -> None:
    # At 8 the neighbours predict sqrt(1 x 4) = 2 and 2.4 was measured: 18 % off, within its own spread of 20 %.
    steady = {GEMM: {1: sample(1.0), 8: sample(2.4), 64: sample(4.0)}}
    noisy = {GEMM: {1: sample(1.0), 8: sample(2.4, spread=0.2), 64: sample(4.0)}}
    assert next_place([], steady, (), 0.05) is not None
    assert next_place([], noisy, (), 0.05) is None


def test_what_was_skipped_is_not_asked_for_again_and_the_other_gap_is() -> None:
    measured = {GEMM: {1: sample(1.0), 8: sample(1.0), 128: sample(8.0)}}
    first = next_place([], measured, (), 0.05)
    assert first is not None
    assert 8 < first.size < 128  # the wider gap
    second = next_place([], measured, {first}, 0.05)
    assert second is not None
    assert 1 < second.size < 8
    assert next_place([], measured, {first, second}, 0.05) is None


def test_the_choice_depends_on_the_samples_alone() -> None:
    measured = {
        OTHER: {64: sample(9.0), 1: sample(1.0), 8: sample(1.0)},
        GEMM: {8: sample(1.0), 64: sample(9.0), 1: sample(1.0)},
    }
    other_way = {curve: dict(sorted(measured[curve].items())) for curve in sorted(measured)}
    assert next_place([], measured, (), 0.05) == next_place([], other_way, (), 0.05) is not None


@pytest.mark.parametrize("step", [1, 8, 12])
def test_a_halved_gap_gives_a_whole_multiple_between_its_ends(step: int) -> None:
    for low in range(step, 200 * step, step):
        for factor in (1.01, 1.5, 2, 3, 8):
            high = int(low * factor) // step * step
            middle = halved((low, high), step)
            if middle is not None:
                assert low < middle < high
                assert middle % step == 0
            elif high / low >= LEAST_RATIO**2:
                assert high - low <= 2 * step  # no multiple lies near the middle
