"""``plan profile fit`` and ``plan profile check`` as a user meets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profiles.library import load

Plan = Callable[..., Any]
DOC = Path(__file__).parents[2] / "docs" / "profiles.md"


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """The profile written by hand in docs/profiles.md."""
    text = DOC.read_text(encoding="utf-8")
    path = tmp_path / "my-card.json"
    path.write_text(text.split("```json\n")[1].split("```")[0], encoding="utf-8")
    return path


def in_milliseconds(card: Path) -> str:
    """The same profile with every time in milliseconds, as a mistaken reader of the format would write it."""
    value = json.loads(card.read_text())
    for table in value["tables"]:
        table["latency_s"] = [1e3 * seconds for seconds in table["latency_s"]]
    value["device"]["peak_flop_per_s"] = {"bf16": 1e15}
    path = card.with_name("ms.json")
    path.write_text(json.dumps(value))
    return str(path)


def test_fit_shows_alpha_beta_and_where_the_protocol_changes(plan: Plan) -> None:
    ran = plan("profile", "fit", "h200-sxm", "--family", "all_gather")
    assert ran.code == 0
    assert "all_gather/fp16/nccl" in ran.out
    assert "alpha_beta: t = alpha_s + message_bytes / beta_bytes_per_s" in ran.out
    assert "protocol changes between" in ran.out
    assert "(leave one out)" in ran.out
    assert "gemm" not in ran.out


def test_fit_writes_a_document_that_names_the_profile_and_is_the_same_twice(plan: Plan, tmp_path: Path) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in files:
        assert plan("profile", "fit", "a100-sxm", "--family", "all_to_all", "-o", str(path)).code == 0
    data = files[0].read_bytes()
    assert data == files[1].read_bytes()
    value = json.loads(data)
    assert (value["profile"], value["profile_sha256"]) == ("a100-sxm", load("a100-sxm").sha256)
    assert {fit["form"] for fit in value["fits"]} == {"alpha_beta", "ring"}
    assert plan("profile", "fit", "a100-sxm", "--family", "all_to_all", "--format", "json").output == data
    assert plan("profile", "fit", "a100-sxm", "--family", "all_to_all", "-o", "-").output == data


def test_many_curves_are_summed_up_and_the_joint_fit_is_shown(plan: Plan) -> None:
    out = plan("profile", "fit", "h200-sxm", "--family", "encoder_attention").out
    assert "    head_dim 64\n      c0_s" in out
    assert "utilisation_of_peak" in out
    assert "curves: median error" in out
    assert "heads 2\n" not in out


def test_fit_says_what_is_too_little(plan: Plan, card: Path) -> None:
    assert "not fitted: gemm/bf16: 3 rows are too few for any fit" in plan("profile", "fit", str(card)).out


def test_an_unknown_family_is_bad_input(plan: Plan) -> None:
    ran = plan("profile", "fit", "h200-sxm", "--family", "gem", "--error-format", "json")
    assert (ran.code, ran.error["code"]) == (2, "out_of_range")


def test_check_says_what_it_found_and_how_far_prices_are_off(plan: Plan) -> None:
    ran = plan("profile", "check", "h200-sxm")
    assert ran.code == 0
    assert ran.out.startswith("h200-sxm: 0 errors, ")
    assert "  gemm/bf16: one value of m, " in ran.out
    assert ran.err == ""


def test_the_profile_of_the_documentation_is_sound(plan: Plan, card: Path) -> None:
    assert plan("profile", "check", str(card), "--strict").code == 0


def test_what_was_not_checked_is_said(plan: Plan, card: Path) -> None:
    value = json.loads(card.read_text())
    value["device"].pop("peak_flop_per_s", None)
    card.write_text(json.dumps(value))
    out = plan("profile", "check", str(card)).out
    assert "not checked: the rates of gemm/bf16, encoder_attention/bf16; device.peak_flop_per_s.bf16 is not" in out


def test_errors_are_computed_only_where_they_are_written(
    plan: Plan, card: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[object] = []

    def seen(document: object, _progress: object) -> object:
        looked.append(document)
        return document

    monkeypatch.setattr("profiles.checks.completion.completed", seen)
    out = plan("profile", "check", str(card)).out
    assert looked == []
    assert "against rows left out, which they do not state" in out
    assert "prices against rows that were left out" not in out
    plan("profile", "check", str(card), "-o", str(tmp_path / "whole.json"))
    assert len(looked) == 1


def test_a_collective_of_one_rank_is_refuted_by_check_and_left_out_by_fit(plan: Plan, card: Path) -> None:
    value = json.loads(card.read_text())
    table = next(table for table in value["tables"] if table["family"] == "all_gather")
    table["columns"]["ranks"] = [1 if ranks == 2 else ranks for ranks in table["columns"]["ranks"]]
    card.write_text(json.dumps(value))
    ran = plan("profile", "check", str(card), "--error-format", "json")
    assert (ran.code, ran.error["code"]) == (5, "impossible_ranks")
    fitted = plan("profile", "fit", str(card))
    assert (fitted.code, fitted.err) == (0, "")
    assert "rows have ranks 1, where nothing is sent" in fitted.out


def test_an_error_refutes_the_profile_with_code_and_place(plan: Plan, card: Path) -> None:
    ran = plan("profile", "check", in_milliseconds(card), "--error-format", "json", "--format", "json")
    assert ran.code == 5
    assert ran.error["kind"] == "refuted"
    assert (ran.error["code"], ran.error["where"]) == ("slower_than_plausible", "tables.0.latency_s.2")
    (result,) = json.loads(ran.output)
    assert result["ok"] is False
    assert result["findings"][0]["severity"] == "error"
    assert "milliseconds" in result["findings"][0]["fix"]


def test_strict_counts_warnings(plan: Plan) -> None:
    assert plan("profile", "check", "l40s").code == 0
    ran = plan("profile", "check", "l40s", "--strict")
    assert ran.code == 5
    assert "warning unsure_prices" in ran.err


def test_check_completes_a_profile_by_hand(plan: Plan, card: Path, tmp_path: Path) -> None:
    target = tmp_path / "whole.json"
    assert plan("profile", "check", str(card), "-o", str(target)).code == 0
    assert all(not table.errors for table in load(card).document.tables)
    assert all(table.errors for table in load(target).document.tables)
    assert load(target).document.device == load(card).document.device


def test_a_refuted_profile_is_not_written(plan: Plan, card: Path, tmp_path: Path) -> None:
    target = tmp_path / "whole.json"
    ran = plan("profile", "check", in_milliseconds(card), "-o", str(target))
    assert ran.code == 5
    assert "was not written" in ran.err
    assert not target.exists()


def test_many_profiles_are_checked_and_one_is_written(plan: Plan, card: Path) -> None:
    assert plan("profile", "check", "l40s", str(card)).out.count("errors, ") == 2
    assert plan("profile", "check", "l40s", str(card), "-o", "x.json").code == 2


def test_a_file_that_is_no_profile_is_bad_input_with_its_place(plan: Plan, card: Path) -> None:
    text = card.read_text().replace("1.2e-5, 5.2e-5", '1.2e-5, "5.2e-5"')
    card.write_text(text)
    ran = plan("profile", "check", str(card), "--error-format", "json")
    assert (ran.code, ran.error["where"]) == (2, "tables.0.latency_s.1")
