"""Paths into documents: what ``--set`` changes and what an error names are the same paths."""

from __future__ import annotations

from typing import Any

import pytest

from planner.errors import BadInputError
from planner.fields import nearest, parse_setting, set_field


def document() -> dict[str, Any]:
    return {
        "cluster": {"num_ranks": 4},
        "groups": [
            {"id": "img", "options": [{"time_s": 1.0}, {"time_s": 2.0}]},
            {"id": 7, "options": []},
        ],
        "tags": ["a", "b"],
        "search": None,
    }


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("a.b=3", "a.b", 3),
        ("a=1e9", "a", 1e9),
        ("a=true", "a", True),
        ("a=null", "a", None),
        ("a=[1, 2]", "a", [1, 2]),
        ('a={"b": 1}', "a", {"b": 1}),
        ("a=h100-sxm", "a", "h100-sxm"),
        ('a="5"', "a", "5"),
        ("a=", "a", ""),
        ("a=b=c", "a", "b=c"),
        ("a=2024-01-31", "a", "2024-01-31"),
        ("a=" + "[" * 100_000, "a", "[" * 100_000),
    ],
)
def test_a_setting_is_a_path_and_json_or_else_a_string(setting: str, path: str, value: object) -> None:
    assert parse_setting(setting) == (path, value)


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ("no-value", "wrong_type"),
        ("=3", "wrong_type"),
        ("a=NaN", "not_finite"),
        ("a=-Infinity", "not_finite"),
        ("a=1e999", "not_finite"),
        ('a={"b": 1, "b": 2}', "duplicate_id"),
        ("a=1" + "0" * 5000, "out_of_range"),
    ],
)
def test_a_setting_is_as_strict_as_a_file(setting: str, code: str) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_setting(setting)
    assert caught.value.code == code
    assert caught.value.where in ("--set", "a")


def test_a_field_of_an_object_is_set() -> None:
    changed = document()
    set_field(changed, "cluster.num_ranks", 8)
    assert changed["cluster"] == {"num_ranks": 8}


def test_a_list_element_is_named_by_its_id_or_its_index() -> None:
    changed = document()
    set_field(changed, "groups.img.options.1.time_s", 5.0)
    set_field(changed, "groups.7.options", [1])
    set_field(changed, "tags.0", "z")
    assert changed["groups"][0]["options"] == [{"time_s": 1.0}, {"time_s": 5.0}]
    assert changed["groups"][1]["options"] == [1]
    assert changed["tags"] == ["z", "b"]


def test_an_id_goes_before_an_index() -> None:
    changed = {"groups": [{"id": "1", "n": 0}, {"id": "0", "n": 0}]}
    set_field(changed, "groups.0.n", 9)
    assert changed == {"groups": [{"id": "1", "n": 0}, {"id": "0", "n": 9}]}


def test_a_scalar_for_a_list_is_a_list_of_one() -> None:
    changed = document()
    set_field(changed, "tags", "only")
    assert changed["tags"] == ["only"]


def test_missing_objects_on_the_way_are_made_for_validation_to_judge() -> None:
    changed = document()
    set_field(changed, "search.split_epsilon", 0.1)
    set_field(changed, "clustre.num_ranks", 3)
    assert changed["search"] == {"split_epsilon": 0.1}
    assert changed["clustre"] == {"num_ranks": 3}


@pytest.mark.parametrize(
    ("path", "where", "says"),
    [
        ("groups.imgs.options", "groups.imgs", 'did you mean "img"?'),
        ("tags.2", "tags.2", "indices 0..1"),
        ("tags.-1", "tags.-1", "indices 0..1"),
        ("cluster.num_ranks.x", "cluster.num_ranks.x", "no fields"),
        ("cluster.num_ranks.x.y", "cluster.num_ranks.x", "no fields"),
    ],
)
def test_a_way_that_does_not_exist_is_refused_where_it_ends(path: str, where: str, says: str) -> None:
    with pytest.raises(BadInputError) as caught:
        set_field(document(), path, 1)
    assert caught.value.code == "unknown_field"
    assert caught.value.where == where
    assert says in caught.value.message


def test_an_id_with_dots_is_one_step() -> None:
    problem = {"groups": [{"id": "a.b", "tokens": 1}, {"id": "a", "b": {"tokens": 2}}]}
    set_field(problem, "groups.a.b.tokens", 5)
    assert problem == {"groups": [{"id": "a.b", "tokens": 5}, {"id": "a", "b": {"tokens": 2}}]}


def test_nearest_is_silent_where_nothing_is_near() -> None:
    assert nearest("memroy", ["memory", "time"]) == ' (did you mean "memory"?)'
    assert nearest("zzz", ["memory", "time"]) == ""
    assert nearest("x", []) == ""
