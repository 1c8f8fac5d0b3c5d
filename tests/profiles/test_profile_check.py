"""A profile's check finds units, spikes, holes and contradictions, each where it is, and nothing in sound profiles."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from profiles.checks import check_profile
from profiles.checks.bookkeeping import contradicted_counts
from profiles.checks.completion import completed
from profiles.checks.dtypes import unknown_peaks
from profiles.checks.finding import CODES, Finding
from profiles.checks.floors import unlikely_starts
from profiles.checks.messages import odd_messages
from profiles.checks.physics import beyond_physics
from profiles.checks.ranks import impossible_ranks
from profiles.checks.stated import contradicted_errors
from profiles.document import Counts, Device, HeldOut, ProfileDocument, Provenance, Table
from profiles.families import COLLECTIVES
from profiles.files import document_bytes, parse_document
from profiles.importers import run
from profiles.library import load, names

DATA = Path(__file__).parents[1] / "data" / "nccl_logs"
SIZES = [2**power for power in range(12, 30)]
DEVICE = Device(
    name="card",
    memory_bytes=96 * 10**9,
    memory_bandwidth_bytes_per_s=2e12,
    peak_flop_per_s={"bf16": 5e14},
    gpus_per_node=2,
    intra_node_bandwidth_bytes_per_s=4e11,
)


def document(*tables: Table, device: Device = DEVICE) -> ProfileDocument:
    source = Provenance(id="me", title="made", licence="CC0-1.0")
    return ProfileDocument(name="made", device=device, provenance=[source], tables=list(tables))


def made(family: str, columns: dict[str, list[int]], seconds: list[float], **more: object) -> Table:
    fields = {"family": family, "dtype": "bf16", "provenance": "me", "columns": columns, "latency_s": seconds}
    return Table.model_validate(fields | more)


def ring(family: str = "all_gather", *, factor: float = 1.0, ranks: int = 2, sizes: list[int] = SIZES) -> Table:
    """One node, 10 us and half of the message at 2e11 B/s, which is half of what the card states."""
    seconds = [factor * (1e-5 + size / 2 / 2e11) for size in sizes]
    columns = {"nodes": [1] * len(sizes), "ranks": [ranks] * len(sizes), "message_bytes": sizes}
    return made(family, columns, seconds, backend="nccl")


def gemm(seconds: Callable[[int], float] = lambda m: 5e-6 + 2 * m * 4096 * 4096 / 4e14, **more: object) -> Table:
    """A product of m rows with a 4096 x 4096 matrix at 80 % of the card's peak."""
    sizes = [2**power for power in range(4, 16)]
    columns = {"m": sizes, "n": [4096] * len(sizes), "k": [4096] * len(sizes)}
    return made("gemm", columns, [seconds(m) for m in sizes], **more)


def copies(workload: str = "device_to_device", factor: float = 1.0) -> Table:
    return made("memory_copy", {"message_bytes": SIZES}, [factor * (4e-6 + s / 1e12) for s in SIZES], workload=workload)


def changed(table: Table, row: int, factor: float) -> Table:
    seconds = list(table.latency_s)
    seconds[row] *= factor
    return table.model_copy(update={"latency_s": seconds})


def scaled(table: Table, factor: float) -> Table:
    """The same rows in another unit, without the formula that would give it away."""
    return table.model_copy(update={"latency_s": [s * factor for s in table.latency_s], "roofline": None})


def in_elements(table: Table) -> Table:
    """The sizes of a 2-byte dtype counted in elements: half the number takes the same time."""
    columns = {**table.columns, "message_bytes": [size // 2 for size in table.columns["message_bytes"]]}
    return table.model_copy(update={"columns": columns})


def grid(cells: list[tuple[int, int]], longest: int = 4) -> Table:
    rows = [(m, n, k) for n, k in cells for m in (16, 32, 64, 128)[:longest]]
    columns = {axis: [row[place] for row in rows] for place, axis in enumerate("mnk")}
    return made("gemm", columns, [5e-6 + 2 * m * n * k / 4e14 for m, n, k in rows])


def held(median: float, rows: int = 20) -> HeldOut:
    return HeldOut(held_out="one value of m", rows=rows, median=median, p90=2 * median)


UNKNOWN = Device(name="card", memory_bytes=96 * 10**9, gpus_per_node=2)
RATES = completed(document(gemm())).tables[0]

# Each fault once: the document, and the severity and place that its finding must have.
FAULTS: dict[str, tuple[ProfileDocument, str, str]] = {
    "faster_than_device": (document(scaled(gemm(), 1e-3)), "error", "tables.0.latency_s."),
    "faster_than_any_device": (document(scaled(gemm(), 1e-3), device=UNKNOWN), "error", "tables.0.latency_s."),
    "slower_than_plausible": (document(ring(), scaled(gemm(), 1e3)), "error", "tables.1.latency_s."),
    "below_launch": (document(ring(factor=1e-3)), "error", "tables.0.latency_s.0"),
    "slow_start": (document(ring(factor=1e3)), "warning", "tables.0.latency_s.0"),
    "message_unit": (
        document(ring(), ring("all_to_all"), in_elements(ring("reduce_scatter"))),
        "warning",
        "tables.2.columns.message_bytes",
    ),
    "faster_with_size": (document(changed(gemm(), 11, 0.4)), "warning", "tables.0.latency_s.11"),
    "spike": (document(changed(gemm(), 5, 9.0)), "warning", "tables.0.latency_s.5"),
    "jump": (document(changed(gemm(), 11, 100.0)), "warning", "tables.0.latency_s.11"),
    "missing_cells": (document(grid([(64, 64), (64, 128), (128, 64)])), "note", "tables.0.columns"),
    "short_curves": (
        document(made("gemm", {"m": [1, 2, 1, 2, 8], "n": [64] * 5, "k": [64, 64, 128, 128, 128]}, [1e-5] * 5)),
        "note",
        "tables.0.columns",
    ),
    "copied_table": (document(ring(), ring("all_to_all")), "warning", "tables.1.latency_s"),
    "repeats_disagree": (document(gemm(repeat_spread=held(0.2))), "warning", "tables.0.repeat_spread"),
    "unsure_prices": (document(gemm(errors=[held(0.1), held(0.4)])), "warning", "tables.0.errors.1"),
    "contradicted_roofline": (
        document(RATES.model_copy(update={"latency_s": [1.2 * s for s in RATES.latency_s]})),
        "error",
        "tables.0.roofline",
    ),
    "impossible_ranks": (document(ring(ranks=1)), "error", "tables.0.columns.ranks.0"),
    "contradicted_counts": (document(gemm(errors=[held(0.1)], counts={"read": 3})), "warning", "tables.0.counts.read"),
    "unknown_dtype": (
        document(gemm(), device=DEVICE.model_copy(update={"peak_flop_per_s": {"bf16": 5e14, "xyz": 1e14}})),
        "warning",
        "device.peak_flop_per_s.xyz",
    ),
    "not_covered": (document(ring()), "note", "tables"),
    "not_checked": (document(ring(), device=UNKNOWN), "note", "device.intra_node_bandwidth_bytes_per_s"),
}


def codes(found: list[Finding], *severities: str) -> set[str]:
    return {finding.code for finding in found if not severities or finding.severity in severities}


@pytest.mark.parametrize("code", CODES)
def test_each_fault_is_found_where_it_is(code: str) -> None:
    faulty, severity, place = FAULTS[code]
    found = [finding for finding in check_profile(faulty) if finding.code == code]
    assert found
    assert found[0].severity == severity
    assert found[0].where.startswith(place)
    assert all((found[0].what, found[0].expected, found[0].fix))


@pytest.mark.parametrize(("nodes", "ranks"), [(1, 1), (8, 2), (2, 3), (2, 1)])
def test_ranks_that_no_cluster_has_are_errors_at_their_first_row(nodes: int, ranks: int) -> None:
    columns = {"nodes": [1, nodes], "ranks": [2, ranks], "message_bytes": [4096, 8192]}
    (found,) = impossible_ranks(0, made("send_recv", columns, [1e-5, 2e-5]))
    assert (found.severity, found.where) == ("error", "tables.0.columns.ranks.1")
    assert f"nodes {nodes}, ranks {ranks}" in found.what


def test_ranks_that_share_out_over_nodes_are_sound() -> None:
    columns = {"nodes": [1, 2, 4], "ranks": [3, 16, 4], "message_bytes": [4096] * 3}
    assert impossible_ranks(0, made("all_reduce", columns, [1e-5] * 3)) == []


@pytest.mark.parametrize(
    ("name", "near"), [("bfloat16", "bf16"), ("float32", "fp32"), ("FP8", "fp8"), ("bf-16", "bf16")]
)
def test_a_peak_of_a_misspelt_dtype_names_the_nearest(name: str, near: str) -> None:
    (found,) = unknown_peaks(Device(name="card", peak_flop_per_s={name: 1e14, "fp16": 1e14}))
    assert found.where == f"device.peak_flop_per_s.{name}"
    assert found.fix == f"name it {near}"


@pytest.mark.parametrize(
    ("more", "where"),
    [
        # Twelve rows are here; three were merged and one refused: at least 16 were read.
        ({"counts": {"read": 15, "repeats_merged": 3, "refused": 1}}, "tables.0.counts.read"),
        ({"estimated_rows": [3, 4, 3]}, "tables.0.estimated_rows"),
        ({"repeat_spread": held(0.1).model_copy(update={"p90": 0.05})}, "tables.0.repeat_spread.p90"),
        ({"errors": [held(0.1), held(0.1).model_copy(update={"p90": 0.05})]}, "tables.0.errors.1.p90"),
    ],
)
def test_counts_that_contradict_themselves_are_odd_where_they_are(more: dict[str, object], where: str) -> None:
    assert [finding.where for finding in contradicted_counts(0, gemm(**more))] == [where]


def test_counts_that_add_up_are_sound() -> None:
    counts = {"read": 16, "repeats_merged": 3, "refused": 1}
    assert contradicted_counts(0, gemm(counts=counts, estimated_rows=[3, 4])) == []
    # Two of the twelve rows were never read but filled in.
    assert contradicted_counts(0, gemm(counts={"read": 10, "filled": 2}, estimated_rows=[3, 4])) == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seconds", [5e-324, 1e-300, 1e6])
def test_seconds_at_the_ends_of_floating_point_are_findings_not_warnings_of_numpy(seconds: float) -> None:
    whole = document(
        gemm(lambda m: seconds), copies(factor=1e-300), changed(ring(), 3, 1e-300),
        gemm(lambda m: seconds if m == 256 else 1e-5 * m, dtype="fp16"),
    )  # fmt: skip
    assert codes(check_profile(whole), "error")
    made_whole = completed(whole)
    assert parse_document(document_bytes(made_whole), "made.json") == made_whole


def test_a_profile_that_does_not_state_its_errors_is_told_how_to_get_them() -> None:
    (note,) = [found for found in check_profile(document(gemm())) if found.where == "tables.0.errors"]
    assert (note.code, note.severity) == ("not_checked", "note")
    assert "-o FILE" in note.fix
    assert not [f for f in check_profile(completed(document(gemm()))) if f.where == "tables.0.errors"]


def test_completing_says_which_table_it_is_at() -> None:
    told: list[tuple[float, str]] = []
    completed(document(gemm(), copies()), lambda done, what: told.append((done, what)))
    assert told == [(0.0, "gemm/bf16"), (0.5, "memory_copy/bf16/device_to_device")]


def test_a_sound_profile_has_no_error_and_no_warning() -> None:
    rings = (ring(), ring("all_to_all", factor=1.1), ring("reduce_scatter", factor=1.2))
    assert codes(check_profile(completed(document(gemm(), copies(), *rings))), "error", "warning") == set()


def test_errors_come_before_warnings_and_these_before_notes() -> None:
    found = check_profile(document(scaled(gemm(), 1e-3), changed(ring(), 5, 9.0), grid([(1, 1), (1, 2), (2, 1)])
                                   .model_copy(update={"dtype": "fp16"})))  # fmt: skip
    severities = [finding.severity for finding in found]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert len(set(severities)) == 3


@pytest.mark.parametrize("name", names())
def test_built_in_profiles_contradict_neither_physics_nor_themselves(name: str) -> None:
    found = check_profile(load(name).document)
    assert codes(found, "error") == set()
    # L40S cards share PCIe switches: 4 ranks lie far from what 2 and 8 predict, as docs/profiles.md says.
    assert codes(found, "warning") <= {"unsure_prices"}


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_a_unit_of_time_off_by_a_thousand_is_an_error_in_every_built_in_table(name: str, factor: float) -> None:
    whole = load(name).document
    for number, table in enumerate(whole.tables):
        off = scaled(table, factor)
        found = beyond_physics(number, off, whole.device) + unlikely_starts(number, off)
        assert codes(found, "error"), f"{table.key} times {factor}"


def test_a_thousand_shows_without_any_number_about_the_device_too() -> None:
    for table in load("h200-sxm").document.tables:
        quick = beyond_physics(0, scaled(table, 1e-3), UNKNOWN) + unlikely_starts(0, scaled(table, 1e-3))
        slow = beyond_physics(0, scaled(table, 1e3), UNKNOWN) + unlikely_starts(0, scaled(table, 1e3))
        assert codes(quick, "error"), table.key
        assert codes(slow, "warning"), table.key


def test_smaller_factors_show_where_the_device_leaves_no_room_for_them() -> None:
    # The best bf16 product of the H200 uses 95 % of its peak: half the time is impossible, twice or ten times is not;
    # a fiftieth of the device (2 %) is odd.
    whole = load("h200-sxm").document
    table = next(table for table in whole.tables if table.key == ("gemm", "bf16", "", ""))
    found = {f: codes(beyond_physics(0, scaled(table, f), whole.device)) for f in (0.5, 2.0, 10.0, 50.0)}
    assert found == {0.5: {"faster_than_device"}, 2.0: set(), 10.0: set(), 50.0: {"slower_than_plausible"}}


@pytest.mark.parametrize("name", names())
def test_messages_counted_in_elements_show_against_the_other_collectives(name: str) -> None:
    whole = load(name).document
    assert odd_messages(whole) == []
    for number, table in enumerate(whole.tables):
        if table.family not in COLLECTIVES:
            continue
        tables = list(whole.tables)
        tables[number] = in_elements(table)
        found = odd_messages(whole.model_copy(update={"tables": tables}))
        assert [finding.where for finding in found] == [f"tables.{number}.columns.message_bytes"]
        assert "2 bytes" in found[0].fix


def test_messages_of_all_collectives_in_elements_do_not_show() -> None:
    assert odd_messages(document(*(in_elements(ring(family)) for family in ("all_gather", "all_to_all")))) == []


@pytest.mark.parametrize("name", names())
def test_any_change_of_a_tenth_contradicts_a_stored_roofline(name: str) -> None:
    for number, table in enumerate(load(name).document.tables):
        assert contradicted_errors(number, table) == []
        if table.roofline is not None:
            for factor in (1 / 1.15, 1.15):
                off = table.model_copy(update={"latency_s": [factor * s for s in table.latency_s]})
                assert codes(contradicted_errors(number, off)) == {"contradicted_roofline"}


def test_an_error_names_table_row_limit_and_remedy() -> None:
    found = beyond_physics(3, scaled(gemm(), 1e-3), DEVICE)[0]
    # Without the 5 us every row runs at 4e14 x 1000; the largest comes closest to it.
    assert found.where == "tables.3.latency_s.11"
    assert found.table == "gemm/bf16"
    assert found.what.startswith(
        "12 rows above the limit, the worst 799 times it: 3.99e+17 FLOP/s at m 32768: 2.754e-06 s"
    )
    assert found.expected == "at most 5e+14 FLOP/s (device.peak_flop_per_s.bf16)"
    assert "1000 times too small" in found.fix


def test_a_tenth_above_the_stated_peak_is_only_odd() -> None:
    # 80 % of the peak times 1.3 is 4 % above it.
    (found,) = beyond_physics(0, scaled(gemm(), 1 / 1.3), DEVICE)
    assert (found.code, found.severity) == ("faster_than_device", "warning")


def test_copies_from_the_host_are_not_compared_with_the_speed_of_device_memory() -> None:
    assert codes(beyond_physics(0, copies("host_to_device", 100.0), DEVICE)) == set()
    assert codes(beyond_physics(0, copies("device_to_device", 100.0), DEVICE)) == {"slower_than_plausible"}


def test_holes_with_curves_on_both_sides_are_odd_and_corners_are_to_know() -> None:
    full = [(n, k) for n in (64, 128, 256) for k in (64, 128, 256)]
    inner = [cell for cell in full if cell != (128, 128)]
    corner = [cell for cell in full if cell != (256, 256)]
    found = {name: check_profile(document(grid(cells))) for name, cells in (("inner", inner), ("corner", corner))}
    severity = {name: [f.severity for f in each if f.code == "missing_cells"] for name, each in found.items()}
    assert severity == {"inner": ["warning"], "corner": ["note"]}
    (hole,) = [finding for finding in found["inner"] if finding.code == "missing_cells"]
    assert hole.what == "1 of 9 cells of n x k without a curve, 1 of them with curves on both sides; the first at " \
        "n 128, k 128"  # fmt: skip


def test_a_profile_by_hand_gets_its_errors_and_its_formula_and_can_be_read_back() -> None:
    whole = completed(document(gemm()))
    (table,) = whole.tables
    assert (table.errors[0].held_out, table.errors[0].rows) == ("one value of m", 10)
    assert table.roofline is not None
    assert parse_document(document_bytes(whole), "made.json") == whole
    assert completed(whole) == whole


def test_what_is_there_is_not_computed_again() -> None:
    table = gemm(errors=[held(0.1)], counts=Counts(read=99).model_dump())
    assert completed(document(table)).tables[0].errors == [held(0.1)]


@pytest.mark.parametrize("log", sorted(path.name for path in DATA.glob("*nccl_all*.log")))
def test_an_imported_log_is_sound_and_off_by_a_thousand_is_not(log: str) -> None:
    imported, _ = run("nccl-tests", [str(DATA / log)])
    assert codes(check_profile(imported), "error", "warning") == set()
    for number, table in enumerate(imported.tables):
        assert codes(unlikely_starts(number, scaled(table, 1e-3)), "error")
        assert codes(unlikely_starts(number, scaled(table, 1e3)), "warning")


@pytest.mark.skipif("PLAN_REAL_DATA" not in os.environ, reason="PLAN_REAL_DATA is not set")
def test_every_real_log_that_can_be_imported_has_no_error() -> None:
    from profiles.errors import ProfileError

    checked = 0
    for log in sorted((Path(os.environ["PLAN_REAL_DATA"]) / "nccl_logs").glob("*/*.log")):
        try:
            imported, _ = run("nccl-tests", [str(log)])
        except ProfileError:
            continue
        assert codes(check_profile(imported), "error") == set(), log.name
        checked += 1
    assert checked >= 5
