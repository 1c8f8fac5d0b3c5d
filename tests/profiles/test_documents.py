"""Profile files: what is written comes back, and what is wrong is refused with its table, column and row."""

import json
import os
from pathlib import Path

import pytest

from profiles.document import ProfileDocument, profile_schema
from profiles.errors import ProfileError
from profiles.files import document_bytes, parse_document, write_document
from profiles.library import load, names


def small(**changes: object) -> dict[str, object]:
    table = {
        "family": "gemm",
        "dtype": "bf16",
        "provenance": "me",
        "counts": {"read": 3},
        "columns": {"m": [1, 2, 4], "n": [8, 8, 8], "k": [8, 8, 8]},
        "latency_s": [1e-6, 2e-6, 4e-6],
    }
    table.update(changes)
    return {
        "format_version": "1.0",
        "name": "mine",
        "device": {"name": "my card"},
        "provenance": [{"id": "me", "title": "measured here", "licence": "CC0-1.0"}],
        "tables": [table],
    }


def refused(value: object, code: str, words: str) -> ProfileError:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(ProfileError, match=words) as caught:
        parse_document(data, "mine.json")
    assert caught.value.code == code
    assert "\n" not in caught.value.message
    return caught.value


def test_a_hand_written_profile_is_enough_for_lookups(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(small()), encoding="utf-8")
    price = load(path).gemm([2, 3], 8, 8)
    assert price.seconds.tolist() == pytest.approx([2e-6, 3e-6])
    assert price.source.tolist() == [0, 1]


def test_writing_and_reading_gives_the_same_document_and_the_same_bytes(tmp_path: Path) -> None:
    document = ProfileDocument.model_validate(small())
    write_document(document, tmp_path / "a.json")
    again = parse_document((tmp_path / "a.json").read_bytes(), "a.json")
    assert again == document
    assert document_bytes(again) == (tmp_path / "a.json").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("name", names())
def test_the_built_in_files_are_canonical(name: str) -> None:
    document = load(name).document
    data = (Path(__file__).parents[2] / "profiles" / "tables" / f"{name}.json").read_bytes()
    assert document_bytes(document) == data


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        write_document(ProfileDocument.model_validate(small()), tmp_path / "missing" / "a.json")
    target = tmp_path / "taken"
    target.mkdir()
    with pytest.raises(OSError):
        write_document(ProfileDocument.model_validate(small()), target)
    assert list(tmp_path.iterdir()) == [target]


def test_a_git_lfs_pointer_is_recognised() -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    refused(pointer, "not_json", "Git LFS pointer")


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", "not_json", "is empty"),
        (b"{", "not_json", "line 1, column 2"),
        (b"\xff\xfe", "not_json", "UTF-8"),
        (b"[1]", "wrong_type", "expected an object, got list"),
        (b'{"name": "a", "name": "b"}', "not_json", "'name' occurs twice"),
        (b'{"name": NaN}', "not_finite", "NaN"),
        (b'{"name": -Infinity}', "not_finite", "Infinity"),
        (b"[" * 100_000, "not_json", "."),
        (b'{"a": -' + b"9" * 5000 + b"}", "out_of_range", "at most 20 digits, got one of 5000"),
        (b'{"a": ' + b"9" * 21 + b"}", "out_of_range", "got one of 21"),
    ],
)
def test_text_that_is_no_strict_json_is_refused(data: bytes, code: str, words: str) -> None:
    refused(data, code, words)


def test_errors_name_table_column_and_row() -> None:
    error = refused(small(latency_s=[1e-6, -2e-6, 4e-6]), "out_of_range", "greater than 0")
    assert error.where == "tables.0.latency_s.1"
    error = refused(small(columns={"m": [1, 2, "x"], "n": [8] * 3, "k": [8] * 3}), "wrong_type", "integer")
    assert error.where == "tables.0.columns.m.2"
    refused(small(columns={"m": [1, 0, 4], "n": [8] * 3, "k": [8] * 3}), "out_of_range", r"columns.m .*got 0 in row 1")
    refused(small(columns={"m": [1, 2], "n": [8] * 3, "k": [8] * 3}), "out_of_range", "m has 2")
    refused(small(columns={"m": [1, 2, 4], "n": [8] * 3}), "out_of_range", "columns of family gemm are n, k, m")
    refused(small(columns={"m": [1, 2, 2], "n": [8] * 3, "k": [8] * 3}), "out_of_range", "merge repeats")
    refused(small(latency_s=["1", 2, 3]), "wrong_type", "number")


def test_milliseconds_given_for_seconds_are_not_silently_plausible() -> None:
    # 1e6 s is the largest latency a row may state; a table in microseconds runs into it, one in ms into the peak check.
    refused(small(latency_s=[1.0, 2.0, 4e6]), "out_of_range", "less than or equal to 1000000")


def test_unknown_fields_name_the_nearest() -> None:
    error = refused(small(latencys=[1.0]), "unknown_field", "did you mean 'latency_s'")
    assert error.where == "tables.0.latencys"


def test_missing_fields_and_families_are_named() -> None:
    value = small()
    del value["device"]
    assert refused(value, "missing_field", "Field required").where == "device"
    refused(small(family="gem"), "out_of_range", "'gemm'")
    refused(small(provenance="them"), "out_of_range", "not one of me")


def test_another_major_version_is_refused_by_name_and_another_minor_is_read() -> None:
    refused({**small(), "format_version": "2.0"}, "unsupported_version", "'2.0' is not supported")
    assert parse_document(json.dumps({**small(), "format_version": "1.7"}).encode(), "x").name == "mine"


def test_two_tables_of_one_kind_are_refused() -> None:
    value = small()
    value["tables"] = [*value["tables"], *value["tables"]]  # type: ignore[misc]
    refused(value, "out_of_range", "tables.1 repeats")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profiles.strict_json.MAX_BYTES", 10)
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(small()), encoding="utf-8")
    with pytest.raises(ProfileError, match="at most 10") as caught:
        load(path)
    assert caught.value.code == "too_large"


def test_pipes_and_devices_which_may_never_end_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ProfileError, match=f"{path.name} is not a regular file") as caught:
            load(path)
        assert caught.value.code == "wrong_type"


def test_a_roofline_has_the_coefficients_of_its_family() -> None:
    fit = {"held_out": "m", "rows": 1, "median": 0.1, "p90": 0.1}
    names = ("overhead_s", "flop_per_s", "bytes_per_s", "m_0", "n_0", "k_0")
    whole = small(roofline={"coefficients": dict.fromkeys(names, 1.0), "fit": fit})
    assert parse_document(json.dumps(whole).encode(), "x").tables[0].roofline is not None
    for wrong in (names[:1], (*names, "rows_0"), ()):
        value = small(roofline={"coefficients": dict.fromkeys(wrong, 1.0), "fit": fit})
        error = refused(value, "out_of_range", "roofline.coefficients of family gemm are overhead_s, flop_per_s")
        assert error.where == "tables.0"


def test_a_message_leaves_its_place_to_whoever_prints_it() -> None:
    error = refused(small(counts={"read": -1}), "out_of_range", "greater than or equal to 0")
    assert error.where == "tables.0.counts.read"
    assert "(at " not in error.message
    assert str(error).endswith(" (at tables.0.counts.read)")


def test_an_unknown_field_is_named_before_the_missing_one_it_stands_for() -> None:
    value = small()
    table = value["tables"][0]  # type: ignore[index]
    table["latency_ms"] = table.pop("latency_s")
    error = refused(value, "unknown_field", "unknown field 'latency_ms'; did you mean 'latency_s'")
    assert error.where == "tables.0.latency_ms"


def test_names_from_outside_are_cut() -> None:
    error = refused(small(**{"x" * 5000: 1}), "unknown_field", "unknown field")
    assert len(error.message) < 200
    assert len(error.where or "") < 100
    assert len(str(refused(b'{"%s": 1, "%s": 2}' % ((b"y" * 5000,) * 2), "not_json", "twice"))) < 300


def test_columns_and_seconds_suffice() -> None:
    value = small()
    del value["tables"][0]["counts"]  # type: ignore[index]
    document = parse_document(json.dumps(value).encode(), "x")
    assert document.tables[0].counts.read == 3
    assert document == parse_document(json.dumps(small()).encode(), "x")


def test_whole_bytes_may_be_written_as_a_float() -> None:
    value = {**small(), "device": {"name": "my card", "memory_bytes": 96e9}}
    found = parse_document(json.dumps(value).encode(), "x").device.memory_bytes
    assert (found, type(found)) == (96_000_000_000, int)
    for wrong, code in ((96.5, "wrong_type"), (1e300, "wrong_type"), (-1.0, "out_of_range"), (True, "wrong_type")):
        refused({**small(), "device": {"name": "my card", "memory_bytes": wrong}}, code, "memory_bytes|Input should be")


def test_a_missing_file_is_one_line() -> None:
    with pytest.raises(ProfileError, match=r"cannot read the profile nowhere.json: No such file") as caught:
        load("nowhere.json")
    assert caught.value.code == "unknown_profile"


def test_the_schema_is_2020_12_with_an_id_and_names_every_family() -> None:
    schema = profile_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert str(schema["$id"]).endswith("profile:1.0")
    assert "encoder_attention" in json.dumps(schema)
