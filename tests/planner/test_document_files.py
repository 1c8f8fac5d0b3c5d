"""Documents at the door: what is read, what is refused and why, and files replaced whole or not at all."""

from __future__ import annotations

import io
import json
import math
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import files, yaml_text
from planner.documents import canonical_bytes, digest, parse_document, read_document
from planner.errors import BadInputError
from planner.files import write_atomically


def refusal(text: str | bytes, name: str = "p.json") -> BadInputError:
    """The error that reading the text raises."""
    with pytest.raises(BadInputError) as caught:
        parse_document(text.encode() if isinstance(text, str) else text, name)
    return caught.value


# --- JSON ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ('{"a": 1, "a": 2}', "duplicate_id", 'the key "a" twice'),
        ('{"deep": [{"b": 1, "c": 2, "b": 1}]}', "duplicate_id", 'the key "b" twice'),
        ('{"a": NaN}', "not_finite", "NaN"),
        ('{"a": Infinity}', "not_finite", "Infinity"),
        ('{"a": -Infinity}', "not_finite", "-Infinity"),
        ('{"a": 1e999}', "not_finite", "1e999"),
        ('{"a": -1e999}', "not_finite", "-1e999"),
        ('{"a": 18446744073709551616}', "out_of_range", "18446744073709551616"),  # 2^64
        ('{"a": -9223372036854775809}', "out_of_range", "-9223372036854775809"),  # -2^63 - 1
        (f'{{"a": 1{"0" * 5000}}}', "out_of_range", "1000"),
        ('{"a": 1,}', "not_json", "line 1, column"),
        ('{"a": \n  tru}', "not_json", "line 2, column 3"),
        ('{"a": 1} x', "not_json", "Extra data"),
        ('{"a": "\\ud800"}', "not_json", "surrogate"),
        ('{"\\uDC00": 1}', "not_json", "surrogate"),
        ("[" * 100_000, "not_json", "nested too deeply"),
        ("[" * 66 + "]" * 66, "not_json", "64 levels"),
        ("", "not_json", "empty"),
        (" \n\t ", "not_json", "empty"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 1\n", "not_json", "Git LFS pointer"),
    ],
)
def test_json_that_is_not_plain_data_is_refused_with_its_place(text: str, code: str, says: str) -> None:
    error = refusal(text)
    assert error.code == code
    assert says in error.message
    assert "p.json" in error.message
    assert len(error.message) < 200


def test_integers_of_64_bits_are_read_exactly() -> None:
    assert parse_document(b"[18446744073709551615, -9223372036854775808]", "p.json") == [2**64 - 1, -(2**63)]


def test_a_byte_order_mark_is_skipped() -> None:
    assert parse_document(b"\xef\xbb\xbf{}", "p.json") == {}


@pytest.mark.parametrize("data", [b'{"a": "\xff"}', "{}".encode("utf-16"), b"\x80"])
def test_text_that_is_not_utf_8_is_refused_with_the_byte(data: bytes) -> None:
    error = refusal(data)
    assert error.code == "not_json"
    assert "not UTF-8" in error.message


def test_a_whole_surrogate_pair_is_one_character() -> None:
    assert parse_document(b'["\\ud83d\\ude00"]', "p.json") == ["\U0001f600"]


def test_documents_over_the_limit_are_refused_before_they_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.json"
    path.write_text(f'{{"notes": "{"x" * 2**20}"}}')
    assert read_document(str(path))
    monkeypatch.setattr(files, "MAX_DOCUMENT_BYTES", 2**20)
    with pytest.raises(BadInputError, match="larger than the 1 MiB limit") as caught:
        read_document(str(path))
    assert caught.value.code == "too_large"


def test_an_endless_input_is_not_read_past_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_DOCUMENT_BYTES", 2**20)
    with pytest.raises(BadInputError, match="larger"):
        read_document("/dev/zero")


@pytest.mark.parametrize(("path", "says"), [("no/such/file.json", "No such file"), (".", "directory")])
def test_a_file_that_cannot_be_read_is_bad_input(path: str, says: str) -> None:
    with pytest.raises(BadInputError, match=says) as caught:
        read_document(path)
    assert caught.value.exit_code == 2


def test_standard_input_is_called_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{")))
    with pytest.raises(BadInputError, match="standard input is not JSON"):
        read_document("-")


def test_a_closed_standard_input_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BadInputError, match="closed"):
        read_document("-")


# --- YAML ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1e9", 1e9),
        ("a: 2.5e-3", 2.5e-3),
        ("a: .5", 0.5),
        ("a: 7", 7),
        ("a: -7", -7),
        ("a: true", True),
        ("a: null", None),
        ("a:", None),
        ("a: 2024-01-31", "2024-01-31"),
        ("a: 2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z"),
        ("a: no", "no"),  # YAML 1.1: false
        ("a: 012", "012"),  # YAML 1.1: 10
        ("a: 1:30", "1:30"),  # YAML 1.1: 90
        ("a: 1_000", "1_000"),  # YAML 1.1: 1000
        ("a: '1'", "1"),
        ("a: [1, {b: c}]", [1, {"b": "c"}]),
    ],
)
def test_yaml_words_are_read_as_json_would(text: str, value: object) -> None:
    read = parse_document(text.encode(), "p.yaml")["a"]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("a: &x [1]\nb: *x", "not_json", "alias"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "not_json", "alias"),
        ("a: 1\na: 2", "duplicate_id", '"a" twice'),
        ("1: one", "wrong_type", "line 1: key 1 is not a string"),
        ("x: 1\ntrue: one", "wrong_type", "line 2: key True is not a string"),
        ("? [1, 2]\n: x", "wrong_type", "is not a string"),
        ("a: .nan", "not_finite", "nan"),
        ("a: -.inf", "not_finite", "-inf"),
        ("a: 1e999", "not_finite", "inf"),
        (f"a: 1{'0' * 30}", "out_of_range", "64-bit"),
        (f"a: 1{'0' * 5000}", "not_json", "p.yaml"),
        ("a: !!python/object/apply:os.system ['false']", "not_json", "python/object"),
        ("a: !!python/name:os.system", "not_json", "python/name"),
        ("a: !mine 3", "not_json", "!mine"),
        ("a: !!timestamp 2024-01-31", "wrong_type", "YAML date"),
        ("a: !!binary aGVsbG8=", "wrong_type", "YAML bytes"),
        ("a: !!set {b}", "wrong_type", "YAML set"),
        ('a: "\\ud800"', "not_json", "surrogate"),
        ("a: [1", "not_json", "line"),
        ("a: 1\n---\nb: 2", "not_json", "document"),
        ("[" * 5000, "not_json", "64 levels"),
    ],
)
def test_yaml_that_is_more_than_json_is_refused(text: str, code: str, says: str) -> None:
    error = refusal(text, "p.yaml")
    assert error.code == code
    assert says in error.message


def test_yaml_needs_no_suffix() -> None:
    assert parse_document(b"# a comment\npaper: zellige\n", "-") == {"paper": "zellige"}


def test_json_under_a_yaml_name_is_read() -> None:
    assert parse_document(b'{"a": [1, 2.5, "x"]}', "p.yml") == {"a": [1, 2.5, "x"]}


def test_yaml_of_too_many_nodes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "MAX_NODES", 10)
    error = refusal("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]", "p.yaml")
    assert error.code == "too_large"
    assert "use JSON" in error.message


# --- canonical bytes ----------------------------------------------------------------------------------------------

numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(value=st.lists(values, max_size=4) | st.dictionaries(st.text("ab\u00e9\u20ac", max_size=4), values, max_size=4))
@settings(max_examples=60, deadline=None)
def test_canonical_bytes_are_read_back_to_the_same_value_and_the_same_bytes(value: Any) -> None:
    data = canonical_bytes(value)
    read = parse_document(data, "p.json")
    assert canonical_bytes(read) == data
    assert _exactly(read, value)


def _exactly(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_exactly(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_exactly, one, other))
    if isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return type(one) is type(other) and bool(one == other)


@given(names=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), unique=True, max_size=6))
@settings(max_examples=30, deadline=None)
def test_canonical_bytes_do_not_depend_on_the_order_of_keys(names: list[str]) -> None:
    document = {name: position for position, name in enumerate(names)}
    assert canonical_bytes(document) == canonical_bytes(dict(reversed(document.items())))
    assert list(json.loads(canonical_bytes(document))) == sorted(names)


def test_canonical_bytes_are_indented_utf_8_with_shortest_floats_and_a_last_newline() -> None:
    expected = '{\n  "a": "é",\n  "b": 0.1,\n  "c": [\n    3.0\n  ]\n}\n'
    assert canonical_bytes({"b": 0.1, "a": "é", "c": [3.0]}) == expected.encode()


def test_digest_is_of_the_canonical_bytes() -> None:
    # printf '{}\n' | sha256sum
    assert digest({}) == "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356"


@pytest.mark.parametrize("value", [{"a": 2**70}, {1: 2}, {"a": {3}}, {"a": "\ud800"}])
def test_what_json_cannot_hold_is_refused_on_the_way_out(value: Any) -> None:
    with pytest.raises(BadInputError, match="not a JSON value"):
        canonical_bytes(value)


# --- writing ------------------------------------------------------------------------------------------------------


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b"a much longer old content")
    write_atomically(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert names_in(tmp_path) == ["plan.json"]


def test_a_failure_while_writing_keeps_the_old_file_and_leaves_no_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b"old")

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(BadInputError, match=r"cannot write .*plan.json: No space left") as caught:
        write_atomically(str(path), b"new")
    assert caught.value.exit_code == 2
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["plan.json"]


def test_an_interruption_while_writing_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(str(tmp_path / "plan.json"), b"new")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_mode_of_a_replaced_file_is_kept(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_atomically(str(path), b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    previous = os.umask(0o027)
    try:
        write_atomically(str(tmp_path / "plan.json"), b"new")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "plan.json").stat().st_mode) == 0o640


def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "plan.json"
    target.write_bytes(b"old")
    link = tmp_path / "link.json"
    link.symlink_to(target)
    write_atomically(str(link), b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_link_to_itself_is_bad_input(tmp_path: Path) -> None:
    link = tmp_path / "loop.json"
    link.symlink_to(link)
    with pytest.raises(BadInputError, match="cannot write"):
        write_atomically(str(link), b"new")


def test_a_folder_as_target_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="it is a directory") as caught:
        write_atomically(str(tmp_path), b"new")
    assert caught.value.code == "out_of_range"


def test_a_missing_folder_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="No such file or directory"):
        write_atomically(str(tmp_path / "no" / "plan.json"), b"new")


def test_a_file_used_as_a_folder_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(BadInputError, match="Not a directory"):
        write_atomically(str(tmp_path / "file" / "plan.json"), b"new")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only folders")
def test_a_read_only_folder_is_bad_input(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(BadInputError, match="Permission denied"):
        write_atomically(str(tmp_path / "plan.json"), b"new")


@pytest.mark.skipif(not Path("/proc/self/attr").is_dir(), reason="no /proc: no folder that refuses root")
def test_a_folder_that_takes_no_files_is_bad_input() -> None:
    with pytest.raises(BadInputError, match="cannot write"):
        write_atomically("/proc/plan.json", b"new")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_device_is_bad_input() -> None:
    with pytest.raises(BadInputError, match="No space left on device"):
        write_atomically("/dev/full", b"new")


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        write_atomically(str(pipe), b"through the pipe")
        assert reader.stdout is not None
        assert reader.stdout.read() == b"through the pipe"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_dash_is_standard_output(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    write_atomically("-", b"bytes \xe2\x9c\x93\n")
    assert capsysbinary.readouterr().out == b"bytes \xe2\x9c\x93\n"
