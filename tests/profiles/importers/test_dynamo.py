"""Dynamo's profiler results: npz and JSON, units checked, and archives that would harm refused before they unpack."""

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from profiles.errors import ProfileError
from profiles.importers import run
from profiles.importers.npz import MAX_MEMBER_BYTES
from profiles.profile import Profile

# Eight GPUs: 1024 tokens in 14 ms at 9143 tokens/s a GPU; 3.2 sequences at 1 ms a token on one GPU.
PREFILL = {"prefill_isl": [128, 256, 512, 1024], "prefill_ttft": [4.0, 6.0, 9.0, 14.0],
           "prefill_thpt_per_gpu": [4000.0, 5333.3, 7111.1, 9142.9]}  # fmt: skip
DECODE = {
    "x_kv_usage": [0.1, 0.5, 0.9, 0.1, 0.5, 0.9], "y_context_length": [128, 128, 128, 256, 256, 256],
    "z_itl": [1.0, 1.2, 1.4, 1.3, 1.5, 1.7], "z_thpt_per_gpu": [3200, 13333, 20571, 1230, 5333, 8470],
    "max_kv_tokens": [4096],
}  # fmt: skip


def npz(path: Path, arrays: dict[str, list[float]]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{name: np.array(values) for name, values in arrays.items()})
    return str(path)


def as_json(path: Path, arrays: dict[str, object]) -> str:
    path.write_text(json.dumps(arrays), encoding="utf-8")
    return str(path)


def test_milliseconds_become_seconds_along_the_prompt(tmp_path: Path) -> None:
    document, report = run("dynamo", [npz(tmp_path / "raw_data.npz", PREFILL)])
    assert report.refused == ()
    (table,) = document.tables
    assert (table.family, table.columns["length"]) == ("engine_prefill", [128, 256, 512, 1024])
    assert table.latency_s == [4e-3, 6e-3, 9e-3, 14e-3]


def test_usage_becomes_cached_tokens_by_the_capacity(tmp_path: Path) -> None:
    (table,) = run("dynamo", [npz(tmp_path / "raw_data.npz", DECODE)]).document.tables
    # 0.1, 0.5 and 0.9 of 4096 tokens.
    assert table.columns["kv_tokens"] == [410, 2048, 3686] * 2
    assert table.columns["kv_length"] == [128] * 3 + [256] * 3
    profile = Profile(run("dynamo", [npz(tmp_path / "raw_data.npz", DECODE)]).document, "")
    assert profile.operation("engine_decode", {"kv_length": 128, "kv_tokens": 2048}).seconds == 1.2e-3


def test_json_says_the_same_as_npz_and_a_number_may_stand_for_a_list_of_one(tmp_path: Path) -> None:
    first = run("dynamo", [npz(tmp_path / "raw_data.npz", DECODE)]).document
    second = run("dynamo", [as_json(tmp_path / "decode_raw_data.json", {**DECODE, "max_kv_tokens": 4096})]).document
    assert first.tables == second.tables


def test_the_profilers_folder_can_be_given_whole(tmp_path: Path) -> None:
    npz(tmp_path / "selected_prefill_interpolation/raw_data.npz", PREFILL)
    npz(tmp_path / "selected_decode_interpolation/raw_data.npz", DECODE)
    document, _ = run("dynamo", [str(tmp_path)])
    assert [table.family for table in document.tables] == ["engine_decode", "engine_prefill"]
    with pytest.raises(ProfileError, match=r"holds none of selected_prefill_interpolation/raw_data.npz"):
        run("dynamo", [str(tmp_path / "selected_decode_interpolation")])


def test_an_engine_is_never_extrapolated_and_the_message_does_not_advise_it(tmp_path: Path) -> None:
    profile = Profile(run("dynamo", [npz(tmp_path / "raw_data.npz", PREFILL)]).document, "")
    with pytest.raises(ProfileError, match="engine_prefill has no formula to extrapolate with") as caught:
        profile.operation("engine_prefill", {"length": 4096}, extrapolate="roofline")
    assert "extrapolate: roofline" not in caught.value.message


def test_seconds_in_place_of_milliseconds_would_need_a_thousand_gpus_and_are_refused(tmp_path: Path) -> None:
    seconds = {**PREFILL, "prefill_ttft": [time / 1000 for time in PREFILL["prefill_ttft"]]}
    with pytest.raises(ProfileError, match=r"would mean 8000 GPUs .* these look like seconds"):
        run("dynamo", [as_json(tmp_path / "prefill_raw_data.json", seconds)])
    decode = {**DECODE, "z_itl": [time / 1e5 for time in DECODE["z_itl"]]}
    with pytest.raises(ProfileError, match="z_itl would mean"):
        run("dynamo", [as_json(tmp_path / "decode_raw_data.json", decode)])


def test_points_that_are_no_measurement_are_refused_by_place_and_the_good_ones_stay(tmp_path: Path) -> None:
    bad = {**DECODE, "x_kv_usage": [0.1, 0.5, 0.9, 0.0, 1.7, 0.9], "z_itl": [1.0, 1.2, float("nan"), 1.3, 1.5, 1.7]}
    document, report = run("dynamo", [npz(tmp_path / "raw_data.npz", bad)])
    assert len(document.tables[0].latency_s) == 3
    assert sorted(report.refused) == [
        "raw_data.npz:2: expected z_itl > 0, got nan",
        "raw_data.npz:3: expected x_kv_usage > 0, got 0",
        "raw_data.npz:4: x_kv_usage 1.7 is above 1",
    ]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"prefill_isl": [1, 2], "prefill_ttft": [1.0]}, "lacks prefill_thpt_per_gpu"),
        ({**PREFILL, "prefill_ttft": [1.0]}, "different lengths: prefill_isl 4, prefill_ttft 1"),
        ({**DECODE, "max_kv_tokens": [1, 2]}, "expected max_kv_tokens as one number >= 1"),
        ({"prefill_isl": [1], "prefill_ttft_ms": [[1.0]], "decode_active_kv_tokens": [1]}, "lacks prefill_ttft"),
        ({"prefill_ttft_ms": [[1.0]], "decode_active_kv_tokens": [1]}, "fitted curves and not measurements"),
        ({"speed": [1.0]}, "holds speed; expected prefill_isl"),
    ],
)  # fmt: skip
def test_other_contents_are_refused_by_name(tmp_path: Path, arrays: dict[str, list[float]], message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        run("dynamo", [npz(tmp_path / "raw_data.npz", arrays)])


def test_text_in_a_list_and_two_engines_in_one_profile_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="prefill_ttft: expected a list of numbers"):
        run("dynamo", [as_json(tmp_path / "a.json", {**PREFILL, "prefill_ttft": ["4.0"] * 4})])
    both = [npz(tmp_path / name / "raw_data.npz", PREFILL) for name in ("a", "b")]
    with pytest.raises(ProfileError, match="two of the files hold engine_prefill"):
        run("dynamo", both)


class _Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (open, ("/nonexistent",))


def archive(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in members.items():
            out.writestr(name, data)
    return stream.getvalue()


def npy(array: object) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def claims(rows: int) -> bytes:
    """The header of an array of `rows` numbers, and eight bytes of them."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (rows,)})
    return stream.getvalue() + b"\0" * 8


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (archive({"prefill_isl.npy": npy(np.array([_Evil()], dtype=object))}), "expected plain numbers"),
        (archive({"prefill_isl.npy": npy(["a"])}), "expected plain numbers"),
        (archive({"prefill_isl.npy": b"\0" * (MAX_MEMBER_BYTES + 1)}), f"at most {MAX_MEMBER_BYTES} are read"),
        (archive({"prefill_isl.npy": claims(10**12)}), r"claims the shape \(1000000000000,\)"),
        (archive({f"a{at}.npy": b"" for at in range(100)}), "holds 100 arrays; at most 64"),
        (archive({"prefill_isl.npy": b"hello"}), "is not a NumPy array"),
        (archive({"prefill_isl.npy": npy([1, 2])})[:60], "is not a readable npz archive"),
    ],
    ids=["object", "text", "bomb", "claim", "many", "garbage", "cut"],
)
def test_an_archive_is_never_unpickled_nor_trusted(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "raw_data.npz"
    path.write_bytes(data)
    with pytest.raises(ProfileError, match=message):
        run("dynamo", [str(path)])


@pytest.mark.parametrize("gpus", [1, 8, 500])
@pytest.mark.parametrize(("factor", "unit"), [(1e-3, "seconds"), (1e3, "microseconds")])
def test_no_engine_passes_in_a_unit_a_thousand_times_off(tmp_path: Path, gpus: int, factor: float, unit: str) -> None:
    length, first = np.array([128.0, 1024.0]), np.array([4.0, 14.0])
    arrays = {"prefill_isl": length.tolist(), "prefill_thpt_per_gpu": (length / (first * 1e-3) / gpus).tolist()}
    run("dynamo", [as_json(tmp_path / "a.json", {**arrays, "prefill_ttft": first.tolist()})])
    if (gpus, unit) == (500, "microseconds"):
        gpus = 499  # half a GPU at the least
    arrays["prefill_thpt_per_gpu"] = (length / (first * 1e-3) / gpus).tolist()
    with pytest.raises(ProfileError, match=f"expected milliseconds, these look like {unit}"):
        run("dynamo", [as_json(tmp_path / "a.json", {**arrays, "prefill_ttft": (first * factor).tolist()})])


def test_times_whose_throughput_is_nowhere_a_number_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="prefill_ttft cannot be checked to be milliseconds"):
        run("dynamo", [as_json(tmp_path / "a.json", {**PREFILL, "prefill_thpt_per_gpu": [0.0] * 4})])


def test_a_pickle_is_refused_as_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.pkl"
    for protocol in (0, 2, 5):
        path.write_bytes(pickle.dumps(PREFILL, protocol))
        with pytest.raises(ProfileError, match="a Python pickle, and nothing is unpickled") as caught:
            run("dynamo", [str(path)])
        assert "import it as" not in caught.value.message


def header(text: str) -> bytes:
    data = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(data).to_bytes(2, "little") + data + b"\0" * 8


@pytest.mark.parametrize(
    "text",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (True,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1" + "0" * 400 + ",)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1" + "0" * 200 + ", 1" + "0" * 200 + ")}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9" + "0" * 30 + ")}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': 1}",
        "{'descr': 'nonsense', 'fortran_order': False, 'shape': (1,)}",
        "{[]: 1}",
        "{1: 1, 'a': 2}",
        "(" * 9000,
        "-" * 9000 + "1",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}" + " " * 20000,
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}",
    ],
)
def test_a_crafted_header_is_refused_in_one_line_and_nothing_advises_to_trust_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "raw_data.npz"
    path.write_bytes(archive({"prefill_isl.npy": header(text)}))
    with pytest.raises(ProfileError, match=r"raw_data.npz: prefill_isl.npy (?:is not a NumPy|claims|holds)") as caught:
        run("dynamo", [str(path)])
    assert "pickle" not in caught.value.message
    assert len(caught.value.message) < 300


def test_a_member_whose_packed_bytes_are_broken_is_refused(tmp_path: Path) -> None:
    data = bytearray(archive({"prefill_isl.npy": npy(np.arange(1000.0))}))
    at = 30 + len("prefill_isl.npy")
    data[at : at + 40] = b"\xff" * 40
    path = tmp_path / "raw_data.npz"
    path.write_bytes(bytes(data))
    with pytest.raises(ProfileError, match="is not a readable npz archive"):
        run("dynamo", [str(path)])
