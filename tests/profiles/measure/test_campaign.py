"""A run on a device that obeys a law, on a clock of its own: budget, memory, bends, resuming."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_bench import FakeBench, conditions

from profiles.errors import ProfileError
from profiles.measure import campaign
from profiles.measure.assembling import assemble
from profiles.measure.campaign import Course
from profiles.measure.effort import guessed_seconds, memory_bytes
from profiles.measure.grid import ladders
from profiles.measure.log import FILE_NAME, Log
from profiles.measure.options import Options
from profiles.measure.place import Curve, Ladder, Place, Sample
from profiles.profile import Profile

GEMM = Curve("gemm", "fp32", "", "", (("n", 64), ("k", 64)))
LADDER = Ladder(GEMM, (1, 8, 64, 512, 4096))


def bent(place: Place) -> float:
    """Flat up to 100 rows, then in proportion: a corner between 64 and 512."""
    return max(place.size, 100) * 1e-6


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(folder=tmp_path / "out", ops=("gemm",), budget_s=60)


def run(bench: FakeBench, options: Options, grid: tuple[Ladder, ...] = (LADDER,)) -> tuple[Course, dict[Place, Sample]]:
    with Log(options.folder, bench.conditions, restart=options.restart) as log:
        course = campaign.run(grid, bench, log, options, lambda _done, _what: None, bench.clock)
        return course, dict(log.samples)


def lines(options: Options) -> list[str]:
    return (options.folder / FILE_NAME).read_text().splitlines()


def test_the_ladder_is_climbed_and_then_the_bend_is_refined(options: Options) -> None:
    bench = FakeBench(bent)
    course, samples = run(bench, options)
    assert [place.size for place in bench.asked[:5]] == [1, 8, 64, 512, 4096]
    new = [place.size for place in bench.asked[5:]]
    assert new
    assert all(8 < size < 4096 for size in new)
    assert course.new == len(samples) == len(bench.asked)
    assert "lookups between points agree within 0.05" in course.ended


def test_the_same_samples_lead_to_the_same_places(options: Options, tmp_path: Path) -> None:
    first, second = FakeBench(bent), FakeBench(bent)
    run(first, options)
    run(second, replace(options, folder=tmp_path / "again"))
    assert first.asked == second.asked


def test_a_budget_that_is_used_ends_the_run_and_what_does_not_fit_is_not_begun(options: Options) -> None:
    # 1 ms a row: 4096 rows are guessed from 512 by their work, a little less than 8 x 0.512 s, twice.
    bench = FakeBench(lambda place: place.size * 1e-3)
    course, samples = run(bench, replace(options, budget_s=10))
    assert max(place.size for place in samples) == 512
    assert course.skipped[Place(GEMM, 4096)].startswith("would take about 8.03 s, ")
    assert bench.now <= 10


def test_nothing_is_measured_on_a_budget_that_is_over(options: Options) -> None:
    bench = FakeBench(lambda place: 0.3)
    course, samples = run(bench, replace(options, budget_s=2))
    assert course.ended == "the budget is used" or course.skipped
    assert len(samples) == 1  # 6 runs of 0.3 s; a second place would take 4 x 0.3 of the 0.2 s that are left


def test_places_beyond_memory_are_skipped_with_both_sizes(options: Options) -> None:
    # 4096 rows: 4 B x (4096 x 64 + 64 x 64 + 4096 x 64) = 2,113,536 B.
    assert memory_bytes(Place(GEMM, 4096)) == 2_113_536
    course, samples = run(FakeBench(bent, memory_bytes=2_000_000), options)
    assert course.skipped == {Place(GEMM, 4096): "needs 0.00211 GB, 0.002 GB may be used"}
    assert max(place.size for place in samples) == 512


def test_places_beyond_the_users_bytes_are_skipped_with_both_sizes(options: Options) -> None:
    course, _ = run(FakeBench(bent), replace(options, max_bytes=2_000_000))
    assert course.skipped == {Place(GEMM, 4096): "needs 0.00211 GB, max_bytes allows 0.002 GB"}


def test_as_many_points_as_asked_for_are_the_end(options: Options) -> None:
    course, samples = run(FakeBench(bent), replace(options, max_points=3))
    assert len(samples) == 3
    assert course.ended == "3 points are measured, as many as were asked for"


def test_a_run_goes_on_where_the_last_one_stopped_and_measures_nothing_twice(options: Options, tmp_path: Path) -> None:
    whole = FakeBench(bent)
    run(whole, replace(options, folder=tmp_path / "whole"))
    first, second, third = FakeBench(bent), FakeBench(bent), FakeBench(bent)
    run(first, replace(options, max_points=4))
    course, samples = run(second, options)
    assert first.asked + second.asked == whole.asked
    assert course.new == len(samples) - 4
    assert run(third, options)[0].new == 0
    assert third.asked == []
    assert len(lines(options)) == 1 + len(whole.asked)


def test_an_interrupt_keeps_what_was_measured(options: Options) -> None:
    def interrupted(place: Place) -> float:
        if place.size == 64:
            raise KeyboardInterrupt
        return bent(place)

    with pytest.raises(KeyboardInterrupt):
        run(FakeBench(interrupted), options)
    assert len(lines(options)) == 3  # the header, and sizes 1 and 8
    bench = FakeBench(bent)
    run(bench, options)
    assert bench.asked[0].size == 64


def test_a_torn_last_line_is_dropped_with_a_note_and_measured_again(options: Options) -> None:
    run(FakeBench(bent), replace(options, max_points=3))
    path = options.folder / FILE_NAME
    path.write_bytes(path.read_bytes()[:-20])
    bench = FakeBench(bent)
    with Log(options.folder, bench.conditions) as log:
        assert "the last line was cut off" in log.note
        assert [place.size for place in log.samples] == [1, 8]
    run(bench, replace(options, max_points=3))
    assert [place.size for place in bench.asked] == [64]
    assert all(json.loads(line) for line in lines(options))


def test_a_torn_header_begins_anew(options: Options) -> None:
    options.folder.mkdir()
    (options.folder / FILE_NAME).write_bytes(b'{"format_ver')
    with Log(options.folder, conditions()) as log:
        assert log.note
        assert not log.samples
    assert len(lines(options)) == 1


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"device": {"name": "Other"}}, "device.name Fake there, Other here"),
        ({"software": {"numpy": "3.0"}}, "software.numpy 2.0 there, 3.0 here"),
        ({"software": {"numpy": "2.0", "torch": "2.9"}}, "software.torch None there, 2.9 here"),
        ({"dtypes": ["bf16"]}, "dtypes ['fp32'] there, ['bf16'] here"),
        ({"ranks": 2}, "ranks 1 there, 2 here"),
        ({"threads": 4}, "threads 1 there, 4 here"),
    ],
)
def test_a_log_of_other_conditions_is_refused_by_name(options: Options, changes: dict[str, object], named: str) -> None:
    run(FakeBench(bent), replace(options, max_points=2))
    before = lines(options)
    with pytest.raises(ProfileError) as raised:
        Log(options.folder, conditions(**changes))
    assert named in raised.value.message
    assert "--restart" in raised.value.message
    assert lines(options) == before


def test_another_amount_of_memory_is_no_other_device(options: Options) -> None:
    run(FakeBench(bent), replace(options, max_points=2))
    with Log(options.folder, conditions(device={"name": "Fake", "memory_bytes": 5})) as log:
        assert len(log.samples) == 2


def test_restart_forgets(options: Options) -> None:
    run(FakeBench(bent), replace(options, max_points=2))
    other = FakeBench(bent)
    other.conditions = conditions(threads=4)
    _, samples = run(other, replace(options, max_points=1, restart=True))
    assert len(samples) == 1
    assert len(lines(options)) == 2


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ('{"family": "gemm"', "not_json", "line 2 is not JSON"),
        ("[]", "wrong_type", "line 2: expected an object"),
        ('{"family": "gem"}', "out_of_range", "line 2"),
        ('{"familly": "gemm"}', "unknown_field", "did you mean 'family'"),
        (
            '{"family":"gemm","dtype":"fp32","axes":{"m":1},"median_s":1.0,"spread":0.0,"count":1,"kernel":"x"}',
            "out_of_range",
            "expected the axes n, k, m of gemm",
        ),
        (
            '{"family":"gemm","dtype":"fp32","axes":{"m":1,"n":1,"k":1},"median_s":NaN,"spread":0.0,"count":1,"kernel":""}',
            "not_finite",
            "line 2",
        ),
        ('{"format_version":"2.0"}', "unsupported_version", "format_version '2.0' is not supported"),
    ],
)
def test_a_line_that_is_wrong_is_refused_with_its_number(options: Options, line: str, code: str, message: str) -> None:
    with Log(options.folder, conditions()):
        pass
    with (options.folder / FILE_NAME).open("a") as stream:
        stream.write(line + "\n")
    with pytest.raises(ProfileError) as raised:
        Log(options.folder, conditions())
    assert raised.value.code == code
    assert message in str(raised.value)


FOREIGN = (b"my notes", b"my notes\nof today\n", b"\n", b"{}\n", b'{"family": "gemm"}\r', b"\xff\xfe\n", b"[1]\r\n")


@pytest.mark.parametrize("data", FOREIGN)
def test_a_file_that_is_no_log_is_refused_and_left_as_it_is(options: Options, data: bytes) -> None:
    options.folder.mkdir()
    path = options.folder / FILE_NAME
    path.write_bytes(data)
    with pytest.raises(ProfileError, match="--restart begins anew"):
        Log(options.folder, conditions())
    assert path.read_bytes() == data
    with Log(options.folder, conditions(), restart=True) as log:
        assert not log.samples


@pytest.mark.parametrize("end", [b"\r", b"\r\n", b"\n"])
@pytest.mark.parametrize("last", [True, False])
def test_a_whole_log_loses_no_row_whatever_ends_its_lines(options: Options, end: bytes, last: bool) -> None:
    run(FakeBench(bent), replace(options, max_points=3))
    path = options.folder / FILE_NAME
    data = path.read_bytes().replace(b"\n", end)
    path.write_bytes(data if last else data.removesuffix(end))
    with Log(options.folder, conditions()) as log:
        assert [place.size for place in log.samples] == [1, 8, 64]
        assert log.note == ""
        log.record(Place(GEMM, 512), Sample(1e-3, 0.0, 5, "fake"))
    with Log(options.folder, conditions()) as log:
        assert [place.size for place in log.samples] == [1, 8, 64, 512]


def row(**changes: object) -> str:
    """A line that a run under `conditions()` may have written, with changes."""
    facts: dict[str, object] = {"family": "gemm", "dtype": "fp32", "axes": {"m": 1, "n": 64, "k": 64}, "median_s": 1e-4,
                                "spread": 0.0, "count": 5, "kernel": "fake"}  # fmt: skip
    return json.dumps(facts | changes)


RING = {"family": "all_gather", "backend": "shared_memory", "axes": {"nodes": 1, "ranks": 2, "message_bytes": 4096}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": "bf16"}, "expected dtype fp32 of gemm as the header says, got bf16"),
        ({"backend": "gloo"}, "expected backend '' of gemm as the header says, got 'gloo'"),
        (RING | {"backend": "gloo"}, "expected backend 'shared_memory' of all_gather"),
        (RING | {"dtype": "bf16"}, "expected dtype fp32 of all_gather"),
        (RING | {"axes": {"nodes": 1, "ranks": 4, "message_bytes": 4096}}, "expected 2 to 2 ranks"),
        (RING | {"axes": {"nodes": 1, "ranks": 1, "message_bytes": 4096}}, "expected 2 to 2 ranks"),
        (RING | {"axes": {"nodes": 1, "ranks": 2, "message_bytes": 4097}}, "message_bytes to be a multiple of 8"),
        ({"family": "engine_prefill", "axes": {"length": 1}}, "engine_prefill is not measured here; known: gemm"),
        ({"family": "broadcast", "axes": RING["axes"]}, "broadcast is not measured here"),
        ({"workload": "skewed"}, "expected workload '' of gemm, got 'skewed'"),
        ({"family": "memory_copy", "dtype": "int8", "axes": {"message_bytes": 64}, "workload": "device_to_host"},
         "expected workload 'host_to_host' of memory_copy"),
        ({"median_s": 36443.0}, "expected a median of 1e-10 to 10000 s, got 36443"),
        ({"median_s": 1e-300}, "expected a median of 1e-10 to 10000 s, got 1e-300"),
        ({"kernel": "\x1b[2J"}, "expected printable characters"),
    ],
)  # fmt: skip
def test_a_row_that_no_run_under_the_header_wrote_is_refused_by_number(
    options: Options, changes: dict[str, object], message: str
) -> None:
    two = conditions(ranks=2)
    with Log(options.folder, two):
        pass
    path = options.folder / FILE_NAME
    path.write_bytes(path.read_bytes() + f"{row()}\n{row(**changes)}\n".encode())
    before = path.read_bytes()
    with pytest.raises(ProfileError) as raised:
        Log(options.folder, two)
    assert message in raised.value.message
    assert "line 3" in str(raised.value)
    assert path.read_bytes() == before


def test_of_two_rows_of_one_place_the_later_counts_and_that_is_said(options: Options) -> None:
    with Log(options.folder, conditions()):
        pass
    with (options.folder / FILE_NAME).open("a") as stream:
        stream.write(f"{row()}\n{row(median_s=2e-4)}\n")
    with Log(options.folder, conditions()) as log:
        assert [sample.median_s for sample in log.samples.values()] == [2e-4]
        assert "line 3: gemm fp32 n 64, k 64, m 1 was measured before; the later row counts" in log.note


def test_a_time_that_no_clock_measures_is_no_row(options: Options) -> None:
    course, samples = run(FakeBench(lambda place: 1e-12), replace(options, max_points=2))
    assert samples == {}
    assert course.skipped[Place(GEMM, 1)] == "expected a median of 1e-10 to 10000 s, got 1e-12"


def test_the_budget_begins_when_the_bench_has_started(options: Options) -> None:
    class Slow(FakeBench):
        def start(self) -> None:
            self.now += 1000.0

    bench = Slow(bent)
    _, samples = run(bench, replace(options, max_points=3))
    assert len(samples) == 3
    assert run(bench, replace(options, max_points=3))[0].new == 0
    assert 1000.0 <= bench.now < 1001.0  # the second run had nothing to measure and started nothing


def test_two_runs_never_write_one_log(options: Options) -> None:
    with Log(options.folder, conditions()), pytest.raises(ProfileError, match="another measurement is writing"):
        Log(options.folder, conditions())


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ProfileError, match=r"cannot write measurements\.jsonl"):
        Log(tmp_path / "file" / "folder", conditions())


def test_the_profile_of_a_run_prices_what_was_measured_and_what_lies_between(options: Options) -> None:
    bench = FakeBench(bent)
    _, samples = run(bench, options)
    document = assemble(samples, bench, options)
    assert document.name == "fake"
    assert document.provenance[0].licence == "CC0-1.0"
    assert document.tables[0].kernels == ["fake"]
    assert document.tables[0].policy[0] == "gemm by a law"
    profile = Profile(document, sha256="")
    sizes = np.array([1, 64, 200, 1000, 4096])
    priced = profile.gemm(sizes, 64, 64, dtype="fp32")
    assert np.allclose(priced.seconds, np.maximum(sizes, 100) * 1e-6, rtol=0.06)


def test_a_guess_lies_between_neighbours_and_grows_with_work() -> None:
    own = {GEMM: {8: Sample(1.0, 0, 5, ""), 32: Sample(4.0, 0, 5, "")}}
    assert guessed_seconds(Place(GEMM, 16), own, "cpu") == pytest.approx(2.0)
    assert guessed_seconds(Place(GEMM, 8), own, "cpu") == 1.0
    # Ten times the rows from 32: more than the largest sample, at most ten times it.
    assert 4.0 < guessed_seconds(Place(GEMM, 320), own, "cpu") <= 40.0
    # Fewer rows than the smallest are never guessed to be quicker.
    assert guessed_seconds(Place(GEMM, 1), own, "cpu") == 1.0
    # Another curve of the family with twice n: near twice the time of the sample with the nearest work.
    twice = Curve("gemm", "fp32", "", "", (("n", 128), ("k", 64)))
    assert 4.0 < guessed_seconds(Place(twice, 32), own, "cpu") <= 8.0
    assert guessed_seconds(Place(GEMM, 8), {}, "cpu") > 0


def experts(count: int) -> Place:
    """One token for each of so many experts of the smallest size."""
    fixed = {"hidden": 1, "ffn": 1, "experts": count, "top_k": count, "tensor_ranks": 1, "expert_ranks": 1}
    return Place(Curve("moe_gemm", "fp32", "", "balanced", tuple(fixed.items())), 1)


def test_a_guess_counts_two_products_for_each_expert() -> None:
    # 2 x 4096 calls of 2 us, whatever little they compute.
    assert guessed_seconds(experts(4096), {}, "cpu") > 2 * 4096 * 2e-6
    known = {experts(4).curve: {1: Sample(1e-3, 0, 5, "")}}
    assert guessed_seconds(experts(4096), known, "cpu") >= 1e-3 * 4096 / 4


def test_making_the_operands_of_many_experts_counts_against_the_budget(options: Options) -> None:
    # 2 x 4096 products, 50 us each to prepare, are 0.41 s.
    bench = FakeBench(bent)
    course, _ = run(bench, replace(options, budget_s=0.3), (Ladder(experts(4096).curve, (1,)),))
    assert bench.asked == []
    assert course.skipped[experts(4096)].startswith("would take about ")


def every_place() -> Iterator[Place]:
    for device in ("cpu", "cuda"):
        options = Options(folder=Path(), device=device)
        for ladder in ladders(options, "nccl", [(1, 2), (1, 3), (2, 16)]):
            yield from (Place(ladder.curve, size) for size in ladder.sizes)


def test_every_place_of_the_grids_has_work_and_memory_and_whole_messages() -> None:
    for place in every_place():
        assert memory_bytes(place) > 0
        assert guessed_seconds(place, {}, "cpu") > 0
        if "message_bytes" in place.axes and place.curve.family != "memory_copy":
            assert place.size % (4 * place.axes["ranks"]) == 0 or place.curve.dtype != "fp32"


def test_what_carries_no_bf16_is_measured_with_fp32(tmp_path: Path) -> None:
    options = Options(folder=tmp_path, ops=("all_reduce",), dtypes=("bf16",))
    assert [ladder.curve.dtype for ladder in ladders(options, "shared_memory", [(1, 2)])] == ["fp32"]
    assert [ladder.curve.dtype for ladder in ladders(options, "gloo", [(1, 2)])] == ["bf16"]
    fast = Options(folder=tmp_path, device="cuda", ops=("all_reduce",), dtypes=("fp8",))
    assert [ladder.curve.dtype for ladder in ladders(fast, "nccl", [(1, 2)])] == ["bf16"]


def fixed_axes(options: Options, family: str) -> set[tuple[int, ...]]:
    return {
        tuple(value for _, value in ladder.curve.fixed)
        for ladder in ladders(options, "", [])
        if ladder.curve.family == family
    }


def test_a_model_says_what_is_measured_and_shapes_come_on_top(tmp_path: Path) -> None:
    options = Options(folder=tmp_path, shapes=((96, 32),), models=("wan2.1-1.3b",))
    # Wan2.1-1.3B: hidden 1536, ffn 8960, 12 heads of 128, no causal attention and no experts.
    assert fixed_axes(options, "gemm") == {(96, 32), (1536, 1536), (8960, 1536), (1536, 8960)}
    assert fixed_axes(options, "encoder_attention") == {(128, 1), (128, 12)}
    assert fixed_axes(options, "prefill_attention") == fixed_axes(options, "moe_gemm") == set()


def test_a_language_model_asks_for_causal_attention_and_experts(tmp_path: Path) -> None:
    options = Options(folder=tmp_path, models=("mixtral-8x7b",))
    # Mixtral 8x7B: hidden 4096, 32 heads over 8 of 128, 8 experts of 14336, top 2, 32000 words.
    assert fixed_axes(options, "gemm") == {(4096, 4096), (1024, 4096), (8, 4096), (32000, 4096)}
    assert fixed_axes(options, "prefill_attention") == {(128, 4, 1, 32)}
    assert fixed_axes(options, "decode_attention") == {(128, 4, 1, 32), (128, 4, 8, 32)}
    assert fixed_axes(options, "moe_gemm") == {(4096, 14336, 8, 2, 1, 1)}
    assert fixed_axes(options, "encoder_attention") == set()


def test_shapes_alone_replace_the_grid_of_their_family_only(tmp_path: Path) -> None:
    options = Options(folder=tmp_path, shapes=((96, 32),))
    assert fixed_axes(options, "gemm") == {(96, 32)}
    assert len(fixed_axes(options, "encoder_attention")) == 4


def test_an_unknown_model_lists_both_kinds(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"unknown model 'wan'.*wan2\.1-14b.*mixtral-8x7b"):
        ladders(Options(folder=tmp_path, models=("wan",)), "", [])
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(ProfileError):
        ladders(Options(folder=tmp_path, models=(str(tmp_path / "bad.json"),)), "", [])
