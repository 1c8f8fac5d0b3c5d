"""DeepEP's tables: microseconds only where the table gives them, and the bytes must agree with the bandwidth."""

from pathlib import Path

import pytest

from profiles.errors import ProfileError
from profiles.importers import run
from profiles.importers.deepep import BYTES
from profiles.profile import Profile

DATA = Path(__file__).parents[2] / "data" / "deepep"
HEAD = "Dispatch #EP,Latency,RDMA bandwidth,Combine #EP,Latency,RDMA bandwidth\n"
GOOD = "8,77 us,98 GB/s,8,114 us,127 GB/s\n"


def test_latencies_of_the_low_latency_kernels_become_rows() -> None:
    document, report = run("deepep", [str(DATA / "v1.2.1_README_line30.csv")])
    assert report.refused == ()
    profile = Profile(document, "")
    setting = {"hidden": 7168, "experts": 256, "top_k": 8, "tokens": 128}
    for ranks, there, back in ((8, 77e-6, 114e-6), (256, 194e-6, 360e-6)):
        axes = {"nodes": ranks // 8, "ranks": ranks, **setting}
        dispatch = profile.operation("moe_dispatch", axes, dtype="fp8", backend="deepep_low_latency")
        combine = profile.operation("moe_combine", axes, backend="deepep_low_latency")
        assert dispatch.seconds == pytest.approx(there)
        assert combine.seconds == pytest.approx(back)


def test_what_the_table_does_not_state_is_said_and_kept() -> None:
    document, report = run("deepep", [str(DATA / "v1.2.1_README_line30.csv")])
    assert any("256 experts are assumed" in note for note in report.notes)
    assert "128 tokens a rank, hidden 7168, top-8" in document.provenance[0].note


def test_the_bytes_follow_from_the_setting() -> None:
    # 128 tokens to 8 experts each: 7168 fp8 values, 7168 / 128 scales of 4 bytes and a header of 16; back in bf16.
    assert BYTES["moe_dispatch"] == 1024 * (7168 + 56 * 4 + 16)
    assert BYTES["moe_combine"] == 1024 * 7168 * 2


@pytest.mark.parametrize("name", ["v1.2.1_README_line17.csv", "HEAD_README_line45.csv"])
def test_a_bandwidth_alone_gives_no_time_so_the_normal_kernels_are_refused(name: str) -> None:
    with pytest.raises(ProfileError, match=f"{name}:2: a bandwidth alone gives no time") as caught:
        run("deepep", [str(DATA / name)])
    assert ("bandwidth is logical" in caught.value.message) == name.startswith("HEAD")


def test_good_lines_stay_when_others_are_refused_with_line_and_reason(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    bad = [
        "16,118 ms,63 GB/s,16,195 us,74 GB/s\n",
        "16,118 us,63 GB/s,16,195 us\n",
        "12,118 us,63 GB/s,12,195 us,74 GB/s\n",
        "16,XXX us,63 GB/s,16,195 us,74 GB/s\n",
        "16,236 us,63 GB/s,16,195 us,74 GB/s\n",
    ]
    path.write_text(HEAD + GOOD + "".join(bad), encoding="utf-8")
    document, report = run("deepep", [str(path)])
    assert document.tables[0].columns["ranks"] == [8]
    reasons = [
        "expected a number of us, got '118 ms'",
        "expected 6 cells as in the header, got 5",
        "expected #EP as a multiple of 8 ranks, got '12'",
        "expected a number of us, got 'XXX us'",
        # 1024 x 7408 bytes in 236 us are 32 GB/s.
        "7585792 bytes in 236 us are 32 GB/s, not the 63 GB/s stated",
    ]
    for number, (line, reason) in enumerate(zip(report.refused, reasons, strict=True), start=3):
        assert line.startswith(f"t.csv:{number}: ")
        assert reason in line


def test_the_readme_itself_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    cells = [[cell.strip() for cell in line.split(",")] for line in (HEAD, GOOD)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in (cells[0], ["---"] * 6, cells[1]))
    path.write_text(
        f"# DeepEP\n\nFast, cheap, good, pick three.\n\n{table}\n\nMore, prose, with, commas.\n", encoding="utf-8"
    )
    document, report = run("deepep", [str(path)])
    assert report.refused == ()
    assert document.tables[0].columns["ranks"] == [8]
