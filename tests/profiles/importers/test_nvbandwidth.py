"""nvbandwidth: matrices to copies, with each trap: units, N/A, sums, two directions, an unstated buffer."""

import json
from pathlib import Path

import pytest

from profiles.errors import ProfileError
from profiles.importers import run
from profiles.importers.nvbandwidth_log import read_text
from profiles.profile import Profile

LOG = Path(__file__).parents[2] / "data" / "nvbandwidth" / "nvbandwidth_results.log"
SIZE = 512 << 20


def block(test: str, title: str, rows: list[list[str]], total: str | None = None) -> str:
    head = " ".join(str(at) for at in range(len(rows[0])))
    body = "\n".join(f" {at} {'    '.join(row)}" for at, row in enumerate(rows))
    cells = [float(cell) for row in rows for cell in row if cell != "N/A"]
    return f"Running {test}.\n{title}\n           {head}\n{body}\n\nSUM {test} {total or f'{sum(cells):.2f}'}\n\n"


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "out.log"
    path.write_text("nvbandwidth Version: v0.6\n\n" + text, encoding="utf-8")
    return str(path)


def test_the_real_log_gives_a_copy_a_test_and_the_median_of_its_pairs() -> None:
    document, _ = run("nvbandwidth", [str(LOG)], buffer_bytes=SIZE)
    assert document.device.name == "NVIDIA GH200 480GB"
    assert len(document.tables) == 14
    table = next(t for t in document.tables if (t.backend, t.workload) == ("ce", "host_to_device"))
    # Six pairs: 269.33, 299.33, 312.11, 323.36, 369.36, 412.11 GB/s; the median of the times is that of the middle two.
    middle = (SIZE / 312.11e9 + SIZE / 323.36e9) / 2
    assert table.latency_s == [pytest.approx(middle, rel=1e-5)]
    assert table.columns == {"message_bytes": [SIZE]}
    assert table.counts.repeats_merged == 5
    assert table.repeat_spread is not None
    assert table.repeat_spread.p90 > 0.1


def test_the_latency_test_and_the_waived_ones_are_said() -> None:
    _, report = run("nvbandwidth", [str(LOG)], buffer_bytes=SIZE)
    assert [line.split(": ", 2)[1] for line in report.refused] == ["host_device_latency_sm"]
    assert report.refused[0].startswith("nvbandwidth_results.log:126: ")
    assert any("17 tests were waived" in note for note in report.notes)


def test_an_unstated_buffer_must_be_told() -> None:
    with pytest.raises(ProfileError, match=r"--buffer-bytes .536870912 is the default of later versions") as caught:
        run("nvbandwidth", [str(LOG)])
    assert caught.value.code == "missing_field"
    with pytest.raises(ProfileError, match="nccl-tests takes no --buffer-bytes: it is for nvbandwidth"):
        run("nccl-tests", [str(LOG)], buffer_bytes=SIZE)


def test_the_price_of_a_copy_can_be_looked_up() -> None:
    document, _ = run("nvbandwidth", [str(LOG)], buffer_bytes=SIZE)
    priced = Profile(document, "").operation(
        "memory_copy", {"message_bytes": SIZE}, dtype="int8", backend="sm", workload="device_to_host"
    )
    assert priced.seconds == pytest.approx(SIZE / 351.93e9, rel=1e-5)


def test_pairs_that_do_not_exist_are_no_zeros(tmp_path: Path) -> None:
    title = "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)"
    path = write(tmp_path, block("device_to_device_memcpy_read_ce", title, [["N/A", "200.00"], ["400.00", "N/A"]]))
    (table,) = run("nvbandwidth", [path], buffer_bytes=SIZE).document.tables
    assert (table.workload, table.counts.read) == ("device_to_device_read", 2)


@pytest.mark.parametrize("word", ["0.00", "-1", "XXX.XX", "nan"])
def test_a_cell_that_is_no_bandwidth_refuses_its_matrix_and_the_others_stay(tmp_path: Path, word: str) -> None:
    title = "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)"
    broken = (
        f"Running host_to_device_memcpy_ce.\n{title}\n 0 1\n 0 55.00 {word}\n\nSUM host_to_device_memcpy_ce 55.00\n\n"
    )
    path = write(tmp_path, broken + block("device_to_host_memcpy_ce", title, [["54.00"]]))
    document, report = run("nvbandwidth", [path], buffer_bytes=SIZE)
    assert [table.workload for table in document.tables] == ["device_to_host"]
    assert "out.log:6: host_to_device_memcpy_ce: expected GB/s > 0 or N/A" in report.refused[0]


def test_cells_that_do_not_add_up_to_the_sum_below_are_refused(tmp_path: Path) -> None:
    title = "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)"
    path = write(tmp_path, block("host_to_device_memcpy_ce", title, [["55.00", "54.00"]], "163.00"))
    with pytest.raises(ProfileError, match=r"the cells do not add up to 163.00: cut or altered"):
        run("nvbandwidth", [path], buffer_bytes=SIZE)


def test_figures_of_two_directions_at_once_are_not_the_time_of_one_copy(tmp_path: Path) -> None:
    test, ways = "device_to_device_bidirectional_memcpy_read_ce", ("Read1", "Read2", "Total")
    text = f"Running {test}.\n" + "".join(
        f"memcpy CE GPU(row) <-> GPU(column) {way} bandwidth (GB/s)\n"
        f"  0 1\n 0 N/A {rate}\n 1 {rate} N/A\n\nSUM {test} {total}\n\n"
        for way, rate, total in zip(ways, ("380.00", "381.00", "761.00"), ("760.00", "762.00", "1522.00"), strict=True)
    )
    kernel = block(
        "device_to_device_bidirectional_memcpy_write_sm",
        "memcpy SM GPU(row) <-> GPU(column) bandwidth (GB/s)",
        [["700.00"]],
    )
    document, report = run("nvbandwidth", [write(tmp_path, text + kernel)], buffer_bytes=SIZE)
    (table,) = document.tables
    assert (table.workload, table.counts.read) == ("device_to_device_bidirectional_read", 4)
    assert [line.split(": ")[-1] for line in report.refused] == [
        "the sum of both directions is not the time of one copy",
        "it is not the time of one copy",
    ]


def test_another_unit_is_refused(tmp_path: Path) -> None:
    path = write(
        tmp_path, block("host_to_device_memcpy_ce", "memcpy CE CPU(row) -> GPU(column) bandwidth (GiB/s)", [["5.00"]])
    )
    with pytest.raises(ProfileError, match=r"expected a bandwidth in GB/s, got 'memcpy CE .*GiB/s"):
        run("nvbandwidth", [path], buffer_bytes=SIZE)


def test_a_log_without_any_sum_keeps_its_rows_and_says_that_they_were_not_checked() -> None:
    text = (
        "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1\n 0 55.00 54.00\n"
    )
    output = read_text(text, "x")
    assert [matrix.cells for matrix in output.matrices] == [[55.0, 54.0]]
    assert output.remarks == ["x: no matrix has its SUM below: that all cells are there was not checked"]


def test_blocks_of_a_second_run_in_the_same_log_are_repeats(tmp_path: Path) -> None:
    title = "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)"
    text = "".join(block("host_to_device_memcpy_ce", title, [[rate]]) for rate in ("50.00", "60.00"))
    (table,) = run("nvbandwidth", [write(tmp_path, text)], buffer_bytes=SIZE).document.tables
    assert (table.counts.read, table.counts.repeats_merged) == (2, 1)
    assert table.latency_s == [pytest.approx((SIZE / 50e9 + SIZE / 60e9) / 2, rel=1e-5)]


def test_json_output_is_read_and_what_did_not_pass_is_said(tmp_path: Path) -> None:
    title = "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)"
    tests = [
        {"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_description": title,
         "bandwidth_matrix": [["55.5", "N/A"]], "sum": 55.5},
        {"name": "device_to_device_memcpy_read_ce", "status": "Waived"},
        "nonsense",
    ]  # fmt: skip
    path = tmp_path / "out.json"
    path.write_text(json.dumps({"nvbandwidth": {"version": "v0.8", "testcases": tests}}), encoding="utf-8")
    document, report = run("nvbandwidth", [str(path)], buffer_bytes=SIZE)
    assert document.tables[0].latency_s == [pytest.approx(SIZE / 55.5e9, rel=1e-5)]
    assert [line.split(": ", 1)[1] for line in report.refused] == [
        "nvbandwidth.testcases.1: 'device_to_device_memcpy_read_ce': no matrix, status 'Waived'",
        "nvbandwidth.testcases.2: expected an object with a name",
    ]


def test_a_matrix_without_its_sum_is_refused_where_others_have_theirs(tmp_path: Path) -> None:
    title = "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)"
    cut = f"Running device_to_host_memcpy_ce.\n{title}\n  0 1\n 0 50.00 51.00\n"
    whole = block("host_to_device_memcpy_ce", title, [["55.00", "54.00"]])
    for text in (whole + cut, cut + whole):
        document, report = run("nvbandwidth", [write(tmp_path, text)], buffer_bytes=SIZE)
        assert [table.workload for table in document.tables] == ["host_to_device"]
        (line,) = report.refused
        assert line.endswith("device_to_host_memcpy_ce: no SUM below the matrix: cut short")


@pytest.mark.parametrize("total", [155.5, "155.5", None, True, []])
def test_cells_of_json_that_do_not_add_up_to_its_sum_are_refused(tmp_path: Path, total: object) -> None:
    title = "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)"
    one = {"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_description": title,
           "bandwidth_matrix": [["55.5", "50.0"]], "sum": 105.5}  # fmt: skip
    path = tmp_path / "out.json"
    path.write_text(json.dumps({"nvbandwidth": {"testcases": [one, {**one, "sum": total}]}}), encoding="utf-8")
    document, report = run("nvbandwidth", [str(path)], buffer_bytes=SIZE)
    assert document.tables[0].counts.read == 2
    assert len(report.refused) == 1
    assert "the cells do not add up to" in report.refused[0]
