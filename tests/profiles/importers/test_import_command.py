"""`plan profile import`: the document on stdout, the talk on stderr, summaries first and not too many refusals."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from profiles.importers import FORMATS

LOG = Path(__file__).parents[2] / "data" / "nccl_logs" / "superbenchmark_nccl_allreduce.log"


def test_the_help_lists_every_format_with_what_it_reads(plan: Callable[..., Any]) -> None:
    ran = plan("profile", "import", "--help")
    assert ran.code == 0
    for name, chosen in FORMATS.items():
        assert f"{name:<14}  {chosen.meaning}" in ran.out


def test_summaries_come_before_refused_lines(plan: Callable[..., Any]) -> None:
    ran = plan("profile", "import", "nccl-tests", str(LOG), "--family", "all_reduce")
    assert ran.code == 0
    assert [table["family"] for table in ran.document["tables"]] == ["all_reduce"] * 2
    lines = ran.err.splitlines()
    assert "64 rows read, 2 lines refused" in lines[-3]
    assert all("size 0 moves nothing" in line for line in lines[-2:])


def test_only_the_first_refused_lines_are_shown(plan: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    good = LOG.read_text(encoding="utf-8")
    zero = " 0 0 float sum 0.26 0.00 0.00 0e+00 0.25 0.00 0.00 0e+00\n"
    path.write_text(good + zero * 100, encoding="utf-8")
    ran = plan("profile", "import", "nccl-tests", str(path))
    refused = [line for line in ran.err.splitlines() if "size 0" in line]
    assert len(refused) == 40
    assert ran.err.splitlines()[-1] == "and 62 more lines refused"


def test_no_row_at_all_is_bad_input_and_writes_nothing(plan: Callable[..., Any], tmp_path: Path) -> None:
    path, out = tmp_path / "page.html", tmp_path / "out.json"
    path.write_text("<html></html>", encoding="utf-8")
    ran = plan("profile", "import", "deepep", str(path), "-o", str(out))
    assert (ran.code, out.exists()) == (2, False)
    assert "it looks like a web page" in ran.err
    assert "Traceback" not in ran.err


def test_an_unknown_format_or_family_lists_the_known(plan: Callable[..., Any]) -> None:
    ran = plan("profile", "import", "nccltests", str(LOG))
    assert (ran.code, "did you mean 'nccl-tests'" in ran.err) == (2, True)
    ran = plan("profile", "import", "nccl-tests", str(LOG), "--family", "gemms")
    assert ran.code == 2
    assert "family 'gemms' does not occur in this format: it has all_gather" in ran.err


def test_what_a_file_says_cannot_steer_the_terminal(plan: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("time_stats.mlp_up_proj.median,n_\x1b[31mhead\n1,2\n", encoding="utf-8")
    ran = plan("profile", "import", "vidur", str(path))
    assert ran.code == 2
    assert "\x1b" not in ran.err
