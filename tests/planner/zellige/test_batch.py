"""Batches: pixels to tokens, records and JSONL to groups, Open-Sora's bucket tables to reference batches."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from planner.errors import BadInputError
from planner.papers.zellige import batch, buckets
from planner.papers.zellige.batch import Batch, Gatherer, Record
from planner.papers.zellige.recipe import Recipe, draw
from planner.validation import validate
from profiles.geometry import find_geometry

WAN = find_geometry("wan2.1-1.3b")


def gather(*records: dict[str, Any]) -> Batch:
    gatherer = Gatherer(WAN)
    for record in records:
        gatherer.add(validate(Record, record))
    return gatherer.batch()


def stream(path: Path) -> Batch:
    gatherer = Gatherer(WAN)
    gatherer.add_file(path)
    return gatherer.batch()


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "batch.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def drawn(recipe: dict[str, Any], folder: Path = Path()) -> Batch:
    gatherer = Gatherer(WAN)
    draw(validate(Recipe, recipe), gatherer, folder)
    return gatherer.batch()


# --- tokens -------------------------------------------------------------------------------------------------------


def test_z11_fifteen_seconds_at_1080p_are_497760_tokens() -> None:
    # 16 fps, 241 frames: 1 + 240/4 = 61 latent frames; 1080/16 = 67.5 -> 68 rows; 1920/16 = 120 columns.
    assert validate(Record, {"resolution": [1920, 1080], "frames": 241}).length(WAN) == 61 * 68 * 120 == 497_760


@pytest.mark.parametrize(
    ("width", "height", "frames", "tokens"),
    [
        (512, 512, 1, 32 * 32),
        (832, 480, 81, 21 * 30 * 52),  # 32,760: Wan's own 480p clip
        (1280, 720, 81, 21 * 45 * 80),  # 75,600
        (17, 16, 1, 2),  # a column begun is a column
        (16, 16, 2, 2),  # a latent frame begun is a latent frame
        (1, 1, 1, 1),
    ],
)
def test_pixels_become_tokens(width: int, height: int, frames: int, tokens: int) -> None:
    assert validate(Record, {"resolution": [width, height], "frames": frames}).length(WAN) == tokens


# --- records ------------------------------------------------------------------------------------------------------


def test_equal_lengths_share_a_group_and_names_are_readable() -> None:
    got = gather(
        {"tokens": 1024, "count": 2},
        {"resolution": [512, 512]},
        {"id": "trailer", "tokens": 1024},
        {"id": "b", "tokens": 5, "count": 2},
    )
    assert got.sequence_ids == {5: ("b-0", "b-1"), 1024: ("trailer", "t1024-0", "t1024-1", "t1024-2")}


@pytest.mark.parametrize(
    ("record", "code", "word"),
    [
        ({}, "out_of_range", "either"),
        ({"tokens": 5, "resolution": [16, 16]}, "out_of_range", "both"),
        ({"tokens": 5, "frames": 9}, "out_of_range", "frames"),
        ({"tokens": 0}, "out_of_range", "greater than or equal to 1"),
        ({"tokens": 5, "count": 0}, "out_of_range", "greater than or equal to 1"),
        ({"tokens": True}, "wrong_type", "integer"),
        ({"tokens": "5"}, "wrong_type", "integer"),
        ({"resolution": [16]}, "missing_field", "missing"),
        ({"resolution": [16, 0]}, "out_of_range", "greater than or equal to 1"),
        ({"resolution": [16, 16], "frame": 3}, "unknown_field", 'did you mean "frames"'),
    ],
)
def test_a_faulty_record_is_refused_with_its_bound(record: dict[str, Any], code: str, word: str) -> None:
    with pytest.raises(BadInputError) as caught:
        validate(Record, record)
    assert caught.value.code == code
    assert word in caught.value.message


def test_the_same_id_twice_and_an_id_that_was_made_are_refused() -> None:
    with pytest.raises(BadInputError, match="occurs twice"):
        gather({"id": "a", "tokens": 5}, {"id": "a", "tokens": 6})
    with pytest.raises(BadInputError, match="also names"):
        gather({"id": "t5-0", "tokens": 5}, {"tokens": 5})


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(BadInputError, match="empty batch"):
        Gatherer(WAN).batch()


def test_too_many_sequences_and_too_many_lengths_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInputError) as caught:
        gather({"tokens": 5, "count": batch.MAX_SEQUENCES}, {"tokens": 6})
    assert caught.value.code == "too_large"
    monkeypatch.setattr(batch, "MAX_LENGTHS", 3)
    with pytest.raises(BadInputError, match="distinct lengths"):
        gather(*({"tokens": tokens} for tokens in range(1, 5)))


# --- JSONL --------------------------------------------------------------------------------------------------------


def test_a_jsonl_file_gives_the_batch_of_its_records(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"resolution": [512, 512], "count": 3},
        {"resolution": [832, 480], "frames": 81},
        {"id": "x", "tokens": 7},
        {"resolution": [512, 512]},
    ]
    path = write(tmp_path, "\n".join(json.dumps(record) for record in records) + "\n\n")
    got = stream(path)
    assert got.sequence_ids == gather(*records).sequence_ids
    assert list(got.digests) == ["batch.jsonl"]
    assert len(got.digests["batch.jsonl"]) == 64


def test_a_last_line_without_newline_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, b'\xef\xbb\xbf{"tokens": 5}\r\n{"tokens": 5}')
    assert stream(path).sequence_ids == {5: ("t5-0", "t5-1")}


@pytest.mark.parametrize(
    ("line", "code", "word"),
    [
        ('{"tokens": 5', "not_json", "line 3: not JSON"),
        ('{"tokens": NaN}', "not_finite", "line 3: NaN"),
        ('{"tokens": 5, "tokens": 6}', "duplicate_id", "line 3: a key occurs twice"),
        ('{"tokens": -1}', "out_of_range", "line 3: expected greater than or equal to 1, got -1"),
        ("[1, 2]", "wrong_type", "line 3: expected an object"),
        ('{"token": 5}', "unknown_field", 'line 3: unknown field "token" (did you mean "tokens"?)'),
        ('{"id": "a", "tokens": 5}', "duplicate_id", 'line 3: sequence id "a" occurs twice'),
        ("[" * 60_000, "not_json", "line 3: not JSON"),
        (" " * 70_000 + "{}", "too_large", "line 3 is longer"),
    ],
)
def test_a_faulty_line_is_named(tmp_path: Path, line: str, code: str, word: str) -> None:
    path = write(tmp_path, '{"tokens": 5}\n{"id": "a", "tokens": 5}\n' + line + "\n")
    with pytest.raises(BadInputError) as caught:
        stream(path)
    assert caught.value.code == code
    assert word in caught.value.message
    assert "batch.jsonl" in caught.value.message


def test_an_lfs_pointer_a_missing_file_and_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    with pytest.raises(BadInputError, match="Git LFS pointer"):
        stream(write(tmp_path, pointer))
    with pytest.raises(BadInputError, match=r"cannot read nothing\.jsonl"):
        stream(tmp_path / "nothing.jsonl")
    with pytest.raises(BadInputError, match="line 1: not UTF-8"):
        stream(write(tmp_path, b"\xff\xfe\n"))
    with pytest.raises(BadInputError, match="empty batch"):
        stream(write(tmp_path, "\n\n"))


def test_a_million_records_are_streamed(tmp_path: Path) -> None:
    path = tmp_path / "batch.jsonl"
    lines = b"".join(b'{"resolution": [%d, 512]}\n' % (256 + 16 * i) for i in range(10))
    with path.open("wb") as file:
        for _ in range(100_000):
            file.write(lines)
    got = stream(path)
    assert len(got.sequence_ids) == 10
    assert sum(len(ids) for ids in got.sequence_ids.values()) == 1_000_000


# --- bucket tables ------------------------------------------------------------------------------------------------


def test_every_trap_of_a_bucket_table_is_read_as_meant() -> None:
    table = {
        "_delete_": True,
        "480p": {"1": [0.5, 8], "51": [[0.4, 0.5], 3], "102": [0.0, None]},
        "720p": {"1": [None, 2]},
    }
    assert buckets.read_buckets(table, "t") == (
        buckets.Bucket("480p", 1, 0.5, 8),
        buckets.Bucket("480p", 51, 0.2, 3),
        buckets.Bucket("720p", 1, 1.0, 2),
    )


@pytest.mark.parametrize(
    "table",
    [
        {"480p": {"1": [475, 0]}},  # a batch-size search: [batch, step]
        {"480p": {"1": [0.5, None]}},
        {"480p": {"1": [0.5]}},
        {"480p": {"one": [0.5, 1]}},
        {"480p": [0.5, 1]},
        {"480p": {"1": [0.0, None]}},
        [],
    ],
)
def test_a_table_that_is_no_recipe_is_refused(table: Any) -> None:
    with pytest.raises(BadInputError):
        buckets.read_buckets(table, "t")


@pytest.mark.parametrize(
    ("name", "aspect", "size"),
    [
        ("720p", "16:9", (1280, 720)),
        ("720p", "9:16", (720, 1280)),
        ("1080p", "16:9", (1920, 1080)),
        ("480p", "1:1", (640, 640)),
        ("512", "1:1", (512, 512)),
        ("256px", "1:1", (256, 256)),
        ("768px", "16:9", (1024, 576)),
        ("512px_ar1:1", "16:9", (512, 512)),
    ],
)
def test_resolution_names_become_pixels(name: str, aspect: str, size: tuple[int, int]) -> None:
    assert buckets.pixel_size(name, aspect) == size


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInputError, match="720p"):
        buckets.pixel_size("721p", "16:9")
    with pytest.raises(BadInputError, match="aspect ratio"):
        buckets.pixel_size("720p", "wide")
    with pytest.raises(BadInputError, match=r'did you mean "opensora-1\.2-stage3"'):
        buckets.load_buckets("opensora-1.2-stage33", Path())


@pytest.mark.parametrize("name", buckets.table_names())
def test_every_built_in_table_gives_sizes(name: str) -> None:
    for bucket in buckets.load_buckets(name, Path()):
        width, height = buckets.pixel_size(bucket.resolution, "16:9")
        assert width > height >= 16


@pytest.mark.skipif("PLAN_REAL_DATA" not in os.environ, reason="PLAN_REAL_DATA is not set")
def test_every_published_table_is_read_or_refused_by_name() -> None:
    folder = Path(os.environ["PLAN_REAL_DATA"]) / "video" / "opensora"
    refused = []
    for path in sorted(folder.glob("*bucket_config.json")):
        try:
            assert buckets.load_buckets(path.name, folder)
        except BadInputError as error:
            refused.append(path.name)
            assert path.name in error.message
    assert refused == ["v1.2.0_configs_opensora-v1-2_misc_bs_bucket_config.json"]


# --- recipes ------------------------------------------------------------------------------------------------------

PART = {"table": "opensora-1.2-stage3", "media": "video", "aspects": ["16:9", "1:1"], "tokens": 500_000}


def tokens_of(got: Batch) -> int:
    return sum(tokens * len(ids) for tokens, ids in got.sequence_ids.items())


def test_a_recipe_draws_the_same_batch_every_time_and_another_with_another_seed() -> None:
    first, again, other = (drawn({"seed": seed, "parts": [PART]}) for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_a_recipe_stops_at_the_sequence_that_reaches_its_mark() -> None:
    got = drawn({"parts": [PART]})
    assert 500_000 <= tokens_of(got) < 500_000 + max(got.sequence_ids)


def test_media_chooses_images_or_clips() -> None:
    images = drawn({"parts": [{**PART, "media": "image", "tokens": 50_000}]})
    assert max(images.sequence_ids) <= 16_384  # 2048x2048 is the largest image
    both = drawn({"parts": [{**PART, "tokens": 50_000}, {"records": [{"tokens": 3}], "tokens": 9}]})
    assert both.sequence_ids[3] == ("t3-0", "t3-1", "t3-2")


def test_a_table_beside_the_problem_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"512": {"1": [1.0, 4]}}')
    got = drawn({"parts": [{"table": "mine.json", "aspects": ["1:1"], "tokens": 10_000}]}, tmp_path)
    assert {tokens: len(ids) for tokens, ids in got.sequence_ids.items()} == {1024: 10}


@pytest.mark.parametrize(
    ("part", "word"),
    [
        ({"tokens": 5}, "either"),
        ({"tokens": 5, "table": "a", "records": [{"tokens": 1}]}, "either"),
        ({"tokens": 5, "records": []}, "at least one record"),
        ({"tokens": 5, "records": [{"id": "a", "tokens": 1}]}, "cannot have an id"),
        ({"tokens": 5, "table": "opensora-2.0-image", "media": "video"}, "no video buckets"),
        ({"tokens": 5, "table": "missing.json"}, "cannot read"),
    ],
)
def test_a_faulty_part_is_refused(part: dict[str, Any], word: str) -> None:
    with pytest.raises(BadInputError, match=word):
        drawn({"parts": [part]})
