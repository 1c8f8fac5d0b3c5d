"""Routing, counts and maps from files beside a problem: read within limits, kept by digest, refused by name."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hiermoe_cases import document, problem_of

from planner.beside import Beside
from planner.documents import digest
from planner.envelope import dump_model
from planner.errors import BadInputError
from planner.papers.hiermoe.attach import attach
from planner.papers.hiermoe.instance import Case, Loads, Tokens, compile_case
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.routing.counts_files import read_counts
from planner.routing.token_arrays import read_token_arrays

IDS = np.array([[2, 0], [1, 3], [0, 3], [2, 1]])
ASCENDING = [[0, 2], [1, 3], [0, 3], [1, 2]]
SOURCE = np.array([1, 0, 0, 1])
PLACE = "layers.0.routing.path"


def attached(folder: Path, *routings: dict[str, Any], **changes: Any) -> HiermoeProblem:
    """A problem of two ranks, four experts, K = 2 and a layer for each routing, with its files read."""
    layers = [{"layer_id": index, "routing": routing} for index, routing in enumerate(routings)]
    return attach(problem_of(document(2, 4, 2, {}, layers=layers, **changes)), Beside(str(folder))).problem


def tokens_of(case: Case, index: int = 0) -> Tokens:
    routed = case.layers[index].routed
    assert isinstance(routed, Tokens)
    return routed


def refused(act: Callable[[], object]) -> BadInputError:
    with pytest.raises(BadInputError) as raised:
        act()
    return raised.value


def npz(path: Path, **arrays: Any) -> dict[str, Any]:
    np.savez_compressed(path, **arrays)
    return {"kind": "npz", "path": path.name}


# --- tokens -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["<i8", "<i4", ">i4", "u1", "<u8", "i1"])
def test_an_archive_of_ids_and_sources_is_the_routing(tmp_path: Path, dtype: str) -> None:
    routing = npz(tmp_path / "r.npz", expert_ids=IDS.astype(dtype), source_rank=SOURCE.astype(dtype))
    tokens = tokens_of(compile_case(attached(tmp_path, routing)))
    assert tokens.expert_ids.tolist() == ASCENDING
    assert tokens.expert_ids.dtype == np.int32
    assert tokens.source.tolist() == SOURCE.tolist()


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_plain_array_has_no_sources_so_tokens_come_in_blocks(tmp_path: Path, order: Any) -> None:
    np.save(tmp_path / "r.npy", np.asarray(IDS[:3], order=order))
    tokens = tokens_of(compile_case(attached(tmp_path, {"kind": "npz", "path": "r.npy"})))
    assert tokens.expert_ids.tolist() == ASCENDING[:3]
    assert tokens.source.tolist() == [0, 0, 1]


def test_layers_of_an_array_are_named_by_index(tmp_path: Path) -> None:
    routing = npz(tmp_path / "r.npz", expert_ids=np.stack([IDS, IDS[::-1], IDS]), source_rank=SOURCE)
    case = compile_case(attached(tmp_path, routing | {"layer": 1}, routing | {"layer": 0}))
    assert tokens_of(case, 0).expert_ids.tolist() == ASCENDING[::-1]
    assert tokens_of(case, 1).expert_ids.tolist() == ASCENDING


def test_json_lines_are_a_token_each(tmp_path: Path) -> None:
    lines = [
        {"expert_ids": row.tolist(), "source_rank": int(source), "layer": layer}
        for layer in (0, 1)
        for row, source in zip(IDS[layer:], SOURCE[layer:], strict=True)
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + "\n\n")
    routing = {"kind": "jsonl", "path": "r.jsonl"}
    case = compile_case(attached(tmp_path, routing | {"layer": 1}, routing | {"layer": 0}))
    assert tokens_of(case, 0).expert_ids.tolist() == ASCENDING[1:]
    assert tokens_of(case, 0).source.tolist() == SOURCE[1:].tolist()
    assert tokens_of(case, 1).expert_ids.tolist() == ASCENDING


def test_a_file_of_one_layer_needs_no_layer(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text("".join(json.dumps({"expert_ids": row.tolist()}) + "\n" for row in IDS))
    tokens = tokens_of(compile_case(attached(tmp_path, {"kind": "jsonl", "path": "r.jsonl"})))
    assert tokens.source.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("mark", ["\ufeff", "\ufeff\n"])
def test_token_lines_may_begin_with_a_byte_order_mark(tmp_path: Path, mark: str) -> None:
    text = mark + "".join(json.dumps({"expert_ids": row.tolist()}) + "\n" for row in IDS)
    (tmp_path / "r.jsonl").write_text(text, encoding="utf-8")
    tokens = tokens_of(compile_case(attached(tmp_path, {"kind": "jsonl", "path": "r.jsonl"})))
    assert tokens.expert_ids.tolist() == ASCENDING


def archive(path: Path, **members: bytes) -> dict[str, Any]:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in members.items():
            opened.writestr(f"{name}.npy", data)
    return {"kind": "npz", "path": path.name}


def array_bytes(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def claimed(shape: tuple[int, ...], descr: str = "<i8") -> bytes:
    """The header of an array without its numbers."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"shape": shape, "fortran_order": False, "descr": descr})
    return stream.getvalue()


HOSTILE: dict[str, tuple[bytes, str, str]] = {
    "objects": (array_bytes(np.array([["a", 0]], dtype=object)), "wrong_type", "never unpickled"),
    "fractions": (array_bytes(IDS * 1.0), "wrong_type", "expected integers"),
    "text": (array_bytes(np.array([["0", "1"]])), "wrong_type", "expected integers"),
    "booleans": (array_bytes(IDS > 0), "wrong_type", "expected integers"),
    "one axis": (array_bytes(IDS[0]), "out_of_range", "[tokens, K]"),
    "negative": (array_bytes(-IDS), "expert_out_of_range", "got -2 at [0, 0]"),
    "too wide": (array_bytes(IDS + 2**40), "expert_out_of_range", "at [0, 0]"),
    "no such expert": (array_bytes(IDS + 2), "expert_out_of_range", "got 4 for token 0"),
    "twice": (array_bytes(np.array([[0, 1], [2, 2]])), "duplicate_expert_in_token", "token 1 selects expert 2"),
    "another K": (array_bytes(IDS[:, :1]), "top_k_mismatch", "got 1"),
    "more tokens than bytes": (claimed((4, 2)), "wrong_type", "ends early"),
    "a bomb": (claimed((2**62, 2**10)), "too_large", "1,073,741,824"),
    "a large layer": (claimed((2**24, 64)), "too_large", "ids a layer"),
    "no array": (b"junk", "wrong_type", "no .npz or .npy"),
    "a nested header": (
        b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little") + b"-" * 8998 + b"1\n",
        "wrong_type",
        "no .npz or .npy",
    ),
    "records": (array_bytes(np.zeros(2, dtype=[("a", "<i4")])), "wrong_type", "no plain array"),
    "a header of code": (claimed((4, 2)).replace(b"(4, 2)", b"exit()"), "wrong_type", "no .npz or .npy"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_an_array_that_is_no_routing_is_refused_by_name(tmp_path: Path, case: str) -> None:
    data, code, part = HOSTILE[case]
    error = refused(lambda: attached(tmp_path, archive(tmp_path / "r.npz", expert_ids=data)))
    assert (error.code, error.where) == (code, PLACE), error.message
    assert part in error.message


def test_an_archive_that_is_broken_or_holds_something_else_is_refused(tmp_path: Path) -> None:
    whole = archive(tmp_path / "r.npz", expert_ids=array_bytes(IDS))
    data = (tmp_path / "r.npz").read_bytes()
    (tmp_path / "r.npz").write_bytes(data[: len(data) // 2])
    assert refused(lambda: attached(tmp_path, whole)).code == "wrong_type"
    (tmp_path / "r.npz").write_bytes(data.replace(data[40:60], bytes(20)))
    assert refused(lambda: attached(tmp_path, whole)).code == "wrong_type"
    other = archive(tmp_path / "o.npz", ids=array_bytes(IDS))
    error = refused(lambda: attached(tmp_path, other))
    assert (error.code, "holds ids" in error.message) == ("missing_field", True)


def test_sources_must_fit_the_tokens_and_the_ranks(tmp_path: Path) -> None:
    for source, code in (
        (SOURCE[:3], "out_of_range"),
        (SOURCE + 1, "source_rank_out_of_range"),
        (SOURCE - 1, "source_rank_out_of_range"),
        (SOURCE[:, None], "out_of_range"),
        (SOURCE * 0.5, "wrong_type"),
    ):
        routing = npz(tmp_path / "r.npz", expert_ids=IDS, source_rank=source)
        assert refused(lambda routing=routing: attached(tmp_path, routing)).code == code


def test_the_layer_of_an_array_is_named_where_it_has_several_and_only_there(tmp_path: Path) -> None:
    flat = npz(tmp_path / "flat.npz", expert_ids=IDS)
    deep = npz(tmp_path / "deep.npz", expert_ids=np.stack([IDS, IDS]))
    assert refused(lambda: attached(tmp_path, flat | {"layer": 0})).code == "out_of_range"
    assert refused(lambda: attached(tmp_path, deep)).code == "missing_field"
    assert refused(lambda: attached(tmp_path, deep | {"layer": 2})).code == "out_of_range"
    turned = npz(tmp_path / "turned.npz", expert_ids=np.asfortranarray(np.stack([IDS, IDS])))
    assert "C order" in refused(lambda: attached(tmp_path, turned | {"layer": 0})).message


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        ('{"expert_ids": [0, 1]}\nnonsense', "not_json", "line 2"),
        ('{"expert_ids": [0, 1]}\n{"expert_ids": [0, 1, 2]}', "top_k_mismatch", "line 2"),
        ('{"expert_ids": [0, "1"]}', "wrong_type", "line 1"),
        ('{"expert_ids": [0, true]}', "wrong_type", "line 1"),
        ('{"expert_ids": [0, 1.0]}', "wrong_type", "line 1"),
        ('{"expert_ids": [0, 4294967296]}', "expert_out_of_range", "line 1"),
        ('{"expert_ids": [0, 4]}', "expert_out_of_range", "token 0"),
        ('{"expert_ids": [0, 1], "source": 0}', "unknown_field", "source"),
        ('{"expert_ids": [0, 1], "source_rank": -1}', "source_rank_out_of_range", "line 1"),
        ('{"expert_ids": [0, 1], "source_rank": 0}\n{"expert_ids": [0, 1]}', "missing_field", "line 2"),
        ('{"expert_ids": [0, 1]}\n{"expert_ids": [0, 1], "source_rank": 0}', "missing_field", "line 2"),
        ('{"expert_ids": [0, 1], "layer": 1}', "out_of_range", "layer"),
        ('{"expert_ids": [0, 1], "expert_ids": [0, 1]}', "duplicate_id", "line 1"),
        ("[0, 1]", "wrong_type", "line 1"),
        ("", "out_of_range", "no token"),
        ("\n" + " " * 2**20 + " 7", "too_large", "line 2"),
        ("[" * 100_000, "not_json", "line 1"),
    ],
)
def test_a_line_that_is_no_token_is_refused_by_number(tmp_path: Path, text: str, code: str, part: str) -> None:
    (tmp_path / "r.jsonl").write_text(text)
    error = refused(lambda: attached(tmp_path, {"kind": "jsonl", "path": "r.jsonl"}))
    assert (error.code, error.where) == (code, PLACE), error.message
    assert part in error.message


# --- what a plan keeps of a file ----------------------------------------------------------------------------------


def test_a_problem_keeps_base_name_and_digest_of_its_files_and_never_a_path(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    routing = npz(tmp_path / "inner" / "r.npz", expert_ids=IDS)
    made = attach(
        problem_of(document(2, 4, 2, routing | {"path": str(tmp_path / "inner" / "r.npz")})), Beside("/nowhere")
    )
    sha256 = hashlib.sha256((tmp_path / "inner" / "r.npz").read_bytes()).hexdigest()
    assert made.files == {"r.npz": sha256}
    assert dump_model(made.problem)["layers"][0]["routing"] == {"kind": "npz", "path": "r.npz", "sha256": sha256}
    again = attach(made.problem, Beside(str(tmp_path / "inner"), base_names=True)).problem
    assert digest(dump_model(again)) == digest(dump_model(made.problem))


def test_a_file_is_read_once_and_again_only_where_it_is_another(tmp_path: Path) -> None:
    routing = npz(tmp_path / "r.npz", expert_ids=IDS)
    beside = Beside(str(tmp_path))
    first = attach(problem_of(document(2, 4, 2, routing)), beside).problem
    (tmp_path / "r.npz").unlink()
    second = attach(first, beside).problem
    assert tokens_of(compile_case(second)).expert_ids is tokens_of(compile_case(first)).expert_ids


def test_an_array_of_another_digest_is_refused_by_name(tmp_path: Path) -> None:
    routing = npz(tmp_path / "r.npz", expert_ids=IDS)
    problem = attached(tmp_path, routing)
    npz(tmp_path / "r.npz", expert_ids=IDS[:2])
    error = refused(lambda: attach(problem, Beside(str(tmp_path), base_names=True)))
    assert (error.code, error.where) == ("array_mismatch", PLACE)
    assert error.message.startswith("r.npz is another file: expected sha256 ")


def test_a_file_that_is_not_there_is_named_with_its_digest(tmp_path: Path) -> None:
    routing = npz(tmp_path / "r.npz", expert_ids=IDS)
    problem = attached(tmp_path, routing)
    (tmp_path / "r.npz").unlink()
    sha256 = dump_model(problem)["layers"][0]["routing"]["sha256"]
    error = refused(lambda: attach(problem, Beside(str(tmp_path), base_names=True)))
    assert (error.code, error.where) == ("missing_field", PLACE)
    assert f"r.npz with sha256 {sha256}" in error.message
    assert "--data DIR" in error.message
    bare = problem_of(dump_model(problem))
    assert refused(lambda: compile_case(bare)).code == "missing_field"


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    one = npz(tmp_path / "r.npz", expert_ids=IDS)
    npz(tmp_path / "other" / "r.npz", expert_ids=IDS[:2])
    error = refused(lambda: attached(tmp_path, one, one | {"path": "other/r.npz"}))
    assert (error.code, error.where) == ("duplicate_id", "layers.1.routing.path")


def test_a_plan_reaches_no_file_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    routing = npz(tmp_path / "r.npz", expert_ids=IDS) | {"path": "../r.npz"}
    problem = problem_of(document(2, 4, 2, routing))
    assert attach(problem, Beside(str(tmp_path / "data"))).files
    error = refused(lambda: attach(problem, Beside(str(tmp_path / "data"), base_names=True)))
    assert error.code == "array_mismatch"


@pytest.mark.parametrize("name", ["folder", "fifo", "absent", "nul\0"])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    assert refused(lambda: attached(tmp_path, {"kind": "npz", "path": name})).code == "missing_field"


def test_what_a_message_quotes_of_a_file_is_short(tmp_path: Path) -> None:
    routing = archive(tmp_path / "r.npz", **{"x" * 500: array_bytes(IDS)})
    assert len(refused(lambda: attached(tmp_path, routing)).message) < 400


# --- counts -------------------------------------------------------------------------------------------------------


def counts(folder: Path, content: Any, experts: int = 4) -> list[list[float]]:
    path = folder / "counts.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return [load.tolist() for load in read_counts(path, experts, "here")]


def test_counts_by_expert_name_are_loads_and_absent_experts_got_nothing(tmp_path: Path) -> None:
    assert counts(tmp_path, [{"3": 7, "0": 2}, {"1": 5}]) == [[2, 0, 0, 7], [0, 5, 0, 0]]


def test_counts_of_pairs_of_layers_are_summed_to_loads_of_one_layer_more(tmp_path: Path) -> None:
    # layer 0: expert 0 twice, 1 once; layer 1: 2 three times; layer 2: 3 once, 0 twice
    assert counts(tmp_path, [{"0|2": 2, "1|2": 1}, {"2|3": 1, "2|0": 2}]) == [[2, 1, 0, 0], [0, 0, 3, 0], [2, 0, 0, 1]]
    with pytest.raises(BadInputError, match="layers 0 and 1 count expert 2 of layer 1 3 times, those of"):
        counts(tmp_path, [{"0|2": 2, "1|2": 1}, {"2|3": 1}])


def test_recordings_of_sglang_are_summed_over_their_steps_and_slots(tmp_path: Path) -> None:
    logical = [[40, 10, 20, 30], [5, 5, 70, 20]]
    assert counts(tmp_path, {"logical_count": logical}) == logical
    assert counts(tmp_path, {"logical_count": [logical, logical]}) == [[80, 20, 40, 60], [10, 10, 140, 40]]
    assert counts(tmp_path, logical) == logical
    physical = {"physical_count": [[1, 2, 3, 4, 5, 6]], "physical_to_logical_map": [[0, 3, 1, 0, 3, 2]]}
    assert counts(tmp_path, physical) == [[1 + 4, 3, 6, 2 + 5]]
    path = tmp_path / "counts.npz"
    np.savez(path, **{name: np.array(value) for name, value in physical.items()})
    assert [load.tolist() for load in read_counts(path, 4, "here")] == [[5, 3, 6, 7]]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ([{"4": 1}], "expert_out_of_range"),
        ([{"-1": 1}], "expert_out_of_range"),
        ([{"0": 1, "00": 2}], "expert_out_of_range"),
        ([{"0": -1}], "out_of_range"),
        ([{"0": 1.5}], "out_of_range"),
        ([{"0": "7"}], "out_of_range"),
        ([{"0|4": 1}], "expert_out_of_range"),
        ([{"0|1|2": 1}], "expert_out_of_range"),
        ({"logical_count": [[1, 2, 3]]}, "out_of_range"),
        ({"logical_count": [[1, 2, 3, 4], [1]]}, "out_of_range"),
        ({"logical_count": [[1, 2, 3, -4]]}, "out_of_range"),
        ({"logical_count": [[1, 2, 3, "4"]]}, "wrong_type"),
        ({"logical_count": [[1, 2, 3, True]]}, "wrong_type"),
        ({"logical_count": []}, "out_of_range"),
        ({"physical_count": [[1, 2, 3, 4]]}, "missing_field"),
        ({"physical_count": [[1, 2]], "physical_to_logical_map": [[0]]}, "out_of_range"),
        ({"physical_count": [[1, 2]], "physical_to_logical_map": [[0, 4]]}, "expert_out_of_range"),
        ({"loads": [1]}, "missing_field"),
        ("7", "wrong_type"),
        ("[]", "out_of_range"),
        ('[{"0": 1, "0": 2}]', "duplicate_id"),
        ('[{"0": NaN}]', "not_finite"),
    ],
)
def test_a_file_without_counts_is_refused(tmp_path: Path, content: Any, code: str) -> None:
    with pytest.raises(BadInputError) as raised:
        counts(tmp_path, content)
    assert (raised.value.code, raised.value.where) == (code, "here"), raised.value.message


def test_counts_in_a_plain_array_are_told_what_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "counts.npy", np.ones((2, 4)))
    with pytest.raises(
        BadInputError, match=r"counts.npy: counts are read as JSON or .npz; save the array so"
    ) as raised:
        read_counts(tmp_path / "counts.npy", 4, PLACE)
    assert raised.value.where == PLACE


def test_a_recording_of_torch_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "recorder.pt"
    path.write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(BadInputError, match="pickles are never read"):
        read_counts(path, 4, "here")
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
    with pytest.raises(BadInputError, match="pickles are never read"):
        read_counts(path, 4, "here")


def test_counts_are_written_into_the_problem_and_their_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "counts.json").write_text(json.dumps([{"3": 7, "0": 2}, {"1": 5, "2": 3}]))
    routing = {"kind": "loads", "path": "counts.json", "layer": 1}
    made = attach(problem_of(document(2, 4, 2, routing)), Beside(str(tmp_path)))
    assert list(made.files) == ["counts.json"]
    [layer] = dump_model(made.problem)["layers"]
    assert layer["routing"] == {"kind": "loads", "expert_load": (0.0, 5.0, 3.0, 0.0)}
    routed = compile_case(made.problem).layers[0].routed
    assert isinstance(routed, Loads)
    assert routed.tokens == 4.0
    assert not attach(made.problem, Beside("/nowhere")).files


def test_a_layer_of_counts_that_is_not_there_or_not_named_is_refused(tmp_path: Path) -> None:
    (tmp_path / "counts.json").write_text(json.dumps([{"3": 7}, {"1": 5}]))
    routing = {"kind": "loads", "path": "counts.json"}
    for given in (routing, routing | {"layer": 2}):
        error = refused(lambda given=given: attached(tmp_path, given))
        assert (error.code, error.where) == ("out_of_range", "layers.0.routing.layer")
    (tmp_path / "counts.json").write_text(json.dumps([{"3": 8, "1": 2}]))
    error = refused(lambda: attached(tmp_path, routing | {"tokens_per_rank": 2}))
    assert (error.code, error.where) == ("load_sum_mismatch", "layers.0.routing.expert_load")


# --- maps ---------------------------------------------------------------------------------------------------------

SGLANG = {"physical_to_logical_map": [[0, 1, 2, 3], [0, 3, 1, 2], [3, 1, 2, 0]]}
ASCEND = {
    "moe_layer_count": 1,
    "layer_list": [
        {
            "layer_id": 0,
            "device_count": 2,
            "device_list": [
                {"device_id": 1, "device_expert": [1, 2]},
                {"device_id": 0, "device_expert": [0, 3]},
            ],
        }
    ],
}
UNIFORM = {"kind": "uniform_expected", "tokens_per_rank": 4}


def with_map(folder: Path, content: Any, layer_id: int, **changes: Any) -> HiermoeProblem:
    (folder / "map.json").write_text(json.dumps(content))
    given = document(2, 4, 2, {}, layers=[{"layer_id": layer_id, "routing": UNIFORM}])
    problem = problem_of(given | {"initial_map": {"path": "map.json", **changes}})
    return attach(problem, Beside(str(folder))).problem


def test_the_map_a_runtime_runs_with_is_where_experts_are_now(tmp_path: Path) -> None:
    for problem in (
        with_map(tmp_path, SGLANG, 1, format="sglang"),
        with_map(tmp_path, ASCEND, 3, format="vllm_ascend", first_layer=3),
    ):
        assert compile_case(problem).layers[0].current.tolist() == [0, 3, 1, 2]
        assert "initial_map" not in dump_model(problem)


@pytest.mark.parametrize(
    ("content", "form", "layer_id", "code"),
    [
        (SGLANG, "sglang", 3, "missing_field"),
        (SGLANG, "vllm_ascend", 0, "wrong_type"),
        (ASCEND, "sglang", 0, "wrong_type"),
        (ASCEND, "vllm_ascend", 1, "missing_field"),
        ({"physical_to_logical_map": [[0, 1, 2, "3"]]}, "sglang", 0, "wrong_type"),
        ({"physical_to_logical_map": [0]}, "sglang", 0, "wrong_type"),
        ({"physical_to_logical_map": [[0, 1, 2, 4]]}, "sglang", 0, "expert_out_of_range"),
        ({"physical_to_logical_map": [[0, 1, 2, 2]]}, "sglang", 0, "expert_missing"),
        ({"physical_to_logical_map": [[0, 1, 2, 3, 0, 1]]}, "sglang", 0, "slot_count"),
        ({"layer_list": [{"layer_id": 0, "device_list": [{"device_id": 1, "device_expert": [0]}]}]}, "vllm_ascend", 0,
         "wrong_type"),
        ({"layer_list": ASCEND["layer_list"] * 2}, "vllm_ascend", 0, "wrong_type"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_such_map_is_refused(
    tmp_path: Path, content: Any, form: str, layer_id: int, code: str
) -> None:
    assert refused(lambda: with_map(tmp_path, content, layer_id, format=form)).code == code


def test_a_table_of_the_wrong_size_is_a_fault_of_the_map_and_names_its_layer(tmp_path: Path) -> None:
    content = {"physical_to_logical_map": [[0, 1, 2, 3], [0, 1, 2]]}
    error = refused(lambda: with_map(tmp_path, content, 4, format="sglang", first_layer=3))
    assert (error.code, error.where) == ("slot_count", "initial_map.path")
    assert error.message == "map.json, layer 1: expected one expert for each of the 4 slots, got 3"


def test_a_first_layer_behind_the_layers_is_a_fault_of_first_layer(tmp_path: Path) -> None:
    error = refused(lambda: with_map(tmp_path, SGLANG, 1, format="sglang", first_layer=4))
    assert (error.code, error.where) == ("out_of_range", "initial_map.first_layer")
    assert error.message == "expected at most 1, the least layer_id of the problem, got 4"


def test_a_map_and_a_layers_own_placement_exclude_each_other() -> None:
    layer = {"layer_id": 0, "routing": UNIFORM, "initial_physical_to_logical": [0, 1, 2, 3]}
    given = document(2, 4, 2, {}, layers=[layer], initial_map={"path": "map.json", "format": "sglang"})
    assert refused(lambda: problem_of(given)).where == "initial_map"


# --- broken files -------------------------------------------------------------------------------------------------

KINDS: dict[str, tuple[str, Any]] = {
    "npz": ("npz", None),
    "npy": ("npz", None),
    "jsonl": ("jsonl", None),
    "counts": ("loads", [{"3": 7, "0": 2}]),
    "pairs": ("loads", [{"0|2": 2, "1|2": 1}]),
    "slots": ("loads", {"physical_count": [[1, 2, 3, 4]], "physical_to_logical_map": [[0, 1, 2, 3]]}),
    "sglang": ("map", SGLANG),
    "vllm_ascend": ("map", ASCEND),
}


def whole_file(kind: str) -> bytes:
    stream = io.BytesIO()
    if kind == "npz":
        np.savez_compressed(stream, expert_ids=IDS, source_rank=SOURCE)
    elif kind == "npy":
        np.save(stream, IDS)
    elif kind == "jsonl":
        return "".join(json.dumps({"expert_ids": row.tolist(), "source_rank": 0}) + "\n" for row in IDS).encode()
    else:
        return json.dumps(KINDS[kind][1]).encode()
    return stream.getvalue()


def mangled(data: bytes, source: random.Random) -> bytes:
    """The file with up to three bytes changed, cut out or put in."""
    made = bytearray(data)
    for _ in range(source.randrange(4)):
        place, how = source.randrange(len(made)), source.random()
        if how < 0.6:
            made[place] = source.randrange(256)
        elif how < 0.8:
            del made[place : place + source.randrange(1, 9)]
        else:
            made[place:place] = bytes(source.choices(b'0123456789-[]{}",:|', k=3))
    return bytes(made)


@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_file_is_read_or_refused_and_never_more(tmp_path: Path, kind: str) -> None:
    data, source, form = whole_file(kind), random.Random(kind), KINDS[kind][0]
    routing = UNIFORM if form == "map" else {"kind": form, "path": "file"} | ({"layer": 0} if kind == "pairs" else {})
    changes = {"initial_map": {"path": "file", "format": kind}} if form == "map" else {}
    read = 0
    for _ in range(60):
        (tmp_path / "file").write_bytes(mangled(data, source))
        try:
            assert compile_case(attached(tmp_path, routing, **changes)).layers
            read += 1
        except BadInputError as error:
            assert error.message
    # a quarter of them is whole
    assert 0 < read < 60


# --- real files ---------------------------------------------------------------------------------------------------


@pytest.fixture
def real() -> Path:
    folder = os.environ.get("PLAN_REAL_DATA")
    if folder is None:
        pytest.skip("PLAN_REAL_DATA is not set")
    return Path(folder) / "moe_routing"


@pytest.mark.parametrize("corpus", ["c4", "arxiv", "github"])
def test_the_olmoe_lists_and_their_lists_of_pairs_say_the_same_loads(real: Path, corpus: str) -> None:
    single = read_counts(real / f"olmoe_expert_counts_{corpus}.json", 64, "here")
    pairs = read_counts(real / f"olmoe_expert_counts_crosslayer_{corpus}.json", 64, "here")
    assert len(single) == len(pairs) == 3
    for one, other in zip(single, pairs, strict=True):
        assert one.sum() == 208_896 * 8
        assert np.array_equal(one, other)


def test_the_lists_have_the_imbalance_that_was_published_with_them(real: Path) -> None:
    mixtral = read_counts(real / "mistral_expert_counts_c4.json", 8, "here")
    assert [load.sum() for load in mixtral] == [417_792] * 3
    # page section 10, case 8: the hottest expert of the second list has 2.658 times the mean
    olmoe = read_counts(real / "olmoe_expert_counts_c4.json", 64, "here")
    assert olmoe[1].max() / olmoe[1].mean() == pytest.approx(2.658, abs=5e-4)


def test_a_real_map_of_vllm_ascend_is_read(real: Path) -> None:
    layers = [{"layer_id": 0, "routing": UNIFORM}]
    given = document(2, 8, 2, {}, layers=layers, redundant_slots=2)
    path = str(real / "vllm_ascend" / "expert_map.json")
    problem = problem_of(given | {"initial_map": {"path": path, "format": "vllm_ascend"}})
    made = attach(problem, Beside("."))
    assert made.problem.layers[0].initial_physical_to_logical == (7, 2, 0, 3, 5, 6, 1, 4, 7, 2)
    assert list(made.files) == ["expert_map.json"]


def test_layers_that_are_not_wanted_are_passed_over_at_once(tmp_path: Path) -> None:
    """A header may claim any number of layers without tokens; 10^8 of them one by one would take minutes."""
    path = tmp_path / "many.npy"
    with path.open("wb") as stream:
        header = {"descr": "<i4", "fortran_order": False, "shape": (10**8, 0, 2)}
        np.lib.format.write_array_header_1_0(stream, header)
    found = read_token_arrays(path, {99_999_999}, "layers.0.routing.path")
    assert found[99_999_999].expert_ids.shape == (0, 2)
