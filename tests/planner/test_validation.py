"""One line a user can act on: the code, the path by id, the bound and what was got."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

import pytest
from pydantic import Discriminator, Field, model_validator

from planner import papers
from planner.errors import BadInputError
from planner.validation import Document, Forms, Identity, Many, expects_list, fault, validate


class Option(Document):
    time_s: float = Field(gt=0)
    count: int = 1


class Group(Document):
    id: Identity
    options: Many[Option]
    kind: Literal["image", "video"] = "image"


class Square(Document):
    side: float

    @model_validator(mode="after")
    def _even(self) -> Self:
        if self.side == 13:
            raise fault("expected no 13", code="duplicate_id", where="side")
        if self.side == 14:
            raise ValueError("no 14 either")
        return self


class Circle(Document):
    radius: float


class Problem(Document):
    groups: Many[Group]
    shape: Square | Circle | None = None
    name: str = Field(default="x", min_length=2, max_length=5)
    few: Many[int] = Field(default=(), max_length=2)


def good() -> dict[str, Any]:
    return {"groups": [{"id": "img", "options": [{"time_s": 1.0}]}, {"id": 7, "options": [{"time_s": 2}]}]}


def refusal(**changes: Any) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        validate(Problem, good() | changes)
    return caught.value


def option(**fields: Any) -> list[Any]:
    return [{"id": "img", "options": [{"time_s": 1.0}, {"time_s": 1.0} | fields]}]


def test_a_good_document_becomes_its_model() -> None:
    read = validate(Problem, good())
    assert read.groups[0].options[0] == Option(time_s=1.0)


def test_an_integer_id_is_read_as_its_decimal_string() -> None:
    assert validate(Problem, good()).groups[1].id == "7"


def test_an_integer_is_a_float_but_not_the_other_way_round() -> None:
    assert validate(Problem, good()).groups[1].options[0].time_s == 2.0
    assert refusal(groups=option(count=2.0)).code == "wrong_type"


@pytest.mark.parametrize(
    ("groups", "code", "where", "says"),
    [
        (option(time_s=0), "out_of_range", "groups.img.options.1.time_s", "expected greater than 0, got 0"),
        (option(time_s="1.0"), "wrong_type", "groups.img.options.1.time_s", 'expected a valid number, got "1.0"'),
        (option(time_s=True), "wrong_type", "groups.img.options.1.time_s", "got True"),
        (option(time_s=None), "wrong_type", "groups.img.options.1.time_s", "got None"),
        (option(time_s=float("nan")), "not_finite", "groups.img.options.1.time_s", "finite"),
        (option(time_s=float("inf")), "not_finite", "groups.img.options.1.time_s", "finite"),
        (option(time_s=[1]), "wrong_type", "groups.img.options.1.time_s", "got a list"),
        (option(count=1.5), "wrong_type", "groups.img.options.1.count", "got 1.5"),
        (option(tims_s=1), "unknown_field", "groups.img.options.1.tims_s", 'did you mean "time_s"?'),
        ([{"id": "img", "options": [{}]}], "missing_field", "groups.img.options.0.time_s", 'missing field "time_s"'),
        ([{"options": []}], "missing_field", "groups.0.id", 'missing field "id"'),
        (
            [{"id": "img", "options": [{"time": 1.0}]}],
            "missing_field",
            "groups.img.options.0.time_s",
            'missing field "time_s"; unknown field "time"',
        ),
        ([{"id": 7, "options": [], "kind": "audio"}], "out_of_range", "groups.7.kind", "'image' or 'video'"),
        ([{"id": "", "options": []}], "out_of_range", "groups.0.id", "at least 1 character"),
        ([{"id": True, "options": []}], "wrong_type", "groups.0.id", "got True"),
        ([{"id": 1.5, "options": []}], "wrong_type", "groups.0.id", "got 1.5"),
        ([3], "wrong_type", "groups.0", "got 3"),
        ({"img": 1}, "wrong_type", "groups", "got an object"),
        ("img", "wrong_type", "groups", 'got "img"'),
    ],
)
def test_a_fault_is_named_by_code_path_bound_and_value(groups: Any, code: str, where: str, says: str) -> None:
    error = refusal(groups=groups)
    assert (error.code, error.where) == (code, where)
    assert says in error.message


def test_a_missing_part_at_the_root_is_named() -> None:
    with pytest.raises(BadInputError) as caught:
        validate(Problem, {})
    assert (caught.value.code, caught.value.where) == ("missing_field", "groups")


def test_lengths_are_said_with_the_bound() -> None:
    assert refusal(name="x").message == 'expected string with at least 2 characters, got "x"'
    assert refusal(few=[1, 2, 3]).code == "out_of_range"


@pytest.mark.parametrize(
    ("wrong", "near"), [("group", "groups"), ("shap", "shape"), ("nmae", "name"), ("qqqqqq", None)]
)
def test_an_unknown_field_names_the_nearest_known_one(wrong: str, near: str | None) -> None:
    error = refusal(**{wrong: 1})
    assert (error.code, error.where) == ("unknown_field", wrong)
    assert ("did you mean" in error.message) == (near is not None)
    assert near is None or f'"{near}"' in error.message


def test_a_fault_in_a_union_is_named_in_the_branch_that_fits() -> None:
    error = refusal(shape={"radius": -1, "colour": "red"})
    assert error.code == "unknown_field"
    assert error.where == "shape.colour"
    assert refusal(shape={"radius": "wide"}).where == "shape.radius"


def test_a_fault_that_a_validator_raises_keeps_its_code_and_place() -> None:
    error = refusal(shape={"side": 13.0})
    assert (error.code, error.where, error.message) == ("duplicate_id", "shape.side", "expected no 13")


def test_a_plain_value_error_is_out_of_range_at_its_object() -> None:
    error = refusal(shape={"side": 14.0})
    assert (error.code, error.where) == ("out_of_range", "shape")
    assert error.message.startswith("no 14 either")


def test_more_faults_are_counted() -> None:
    assert refusal(groups=[{"id": "img", "options": [{"time_s": 0, "count": 1.5}]}]).message.endswith("(and 1 more)")


def test_long_values_and_names_are_cut() -> None:
    assert len(refusal(name="y" * 10_000).message) < 200
    assert len(refusal(**{"z" * 10_000: 1}).message) < 200


@pytest.mark.parametrize("document", [None, [], "text", 3, True])
def test_what_is_not_an_object_is_refused(document: Any) -> None:
    with pytest.raises(BadInputError, match="expected an object, got") as caught:
        validate(Problem, document)
    assert caught.value.code == "wrong_type"


@pytest.mark.parametrize(
    ("paper", "path", "listed"),
    [
        ("hiermoe", "search.dimensions", True),
        ("hiermoe", "topology.level_groups", True),
        ("hiermoe", "layers.0.initial_physical_to_logical", True),
        ("hiermoe", "search.gamma", False),
        ("hiermoe", "layers.0", False),
        ("hiermoe", "no.such.field", False),
        ("findep", "memory.attention_fixed_bytes", False),
        ("findep", "search.orders", True),
        ("zellige", "configs", True),
        ("compass", "operators", True),
        ("compass", "operators.fc1.allowed_strategies", True),  # the element by its id
        ("compass", "operators.of.two.allowed_strategies", True),  # an id with a dot
        ("compass", "operators.fc1.inter_decom_table", True),  # a list, or null
        ("compass", "operators.fc1.inter_decom_table.0.time_s", False),
        ("compass", "operators.fc1.allowed_strategies.0", False),
        ("compass", "operators.fc1.fit.curves", True),  # inside an object that may be null
        ("compass", "operators.fc1.overlap_bytes", False),
        ("compass", "beside_s.attention", False),
    ],
)
def test_a_field_that_holds_a_list_is_known_by_its_path(paper: str, path: str, listed: bool) -> None:
    assert expects_list(papers.get(paper).problem_model, path) == listed


class Shape(Forms):
    told_by: ClassVar[str] = "kind"

    name: str = ""


class Round(Shape):
    kind: Literal["round"] = "round"
    radius: float


class Flat(Shape):
    kind: Literal["flat"]
    sides: Many[float]


def test_a_document_of_several_forms_is_read_as_the_one_it_names() -> None:
    assert isinstance(validate(Shape, {"kind": "flat", "sides": [1.0]}), Flat)
    assert isinstance(validate(Shape, {"kind": "round", "radius": 1.0}), Round)
    # a form asked for by itself stays itself
    assert isinstance(validate(Round, {"radius": 2.0}), Round)


def test_a_document_that_names_no_form_is_the_default_one() -> None:
    assert validate(Shape, {"radius": 2.0}) == Round(radius=2.0)


@pytest.mark.parametrize(
    ("document", "code", "where", "told"),
    [
        ({"kind": "roud", "radius": 1.0}, "out_of_range", "kind", 'flat or round, got "roud" (did you mean "round"?)'),
        ({"kind": 3}, "wrong_type", "kind", "expected flat or round, got 3"),
        ({"kind": "flat", "sides": [1.0], "radius": 1.0}, "unknown_field", "radius", 'unknown field "radius"'),
        ({"kind": "flat"}, "missing_field", "sides", 'missing field "sides"'),
    ],
)
def test_a_wrong_form_is_named(document: dict[str, Any], code: str, where: str, told: str) -> None:
    with pytest.raises(BadInputError) as caught:
        validate(Shape, document)
    assert (caught.value.code, caught.value.where) == (code, where)
    assert told in caught.value.message


def test_forms_without_a_default_need_their_word() -> None:
    class Task(Forms):
        told_by: ClassVar[str] = "task"

    class Sizing(Task):
        task: Literal["sizing"]

    with pytest.raises(BadInputError, match='missing field "task": expected sizing'):
        validate(Task, {})
    assert Sizing.forms() == {}


def test_a_list_of_any_form_expects_a_list() -> None:
    assert expects_list(Shape, "sides")
    assert not expects_list(Shape, "radius")


class Kinds(Document):
    drawn: Annotated[Round | Flat, Discriminator("kind")]


@pytest.mark.parametrize(
    ("drawn", "code", "where", "told"),
    [
        ({"kind": "flatt"}, "out_of_range", "drawn.kind", 'expected round or flat, got "flatt" (did you mean "flat"?)'),
        ({}, "missing_field", "drawn.kind", 'missing field "kind"'),
        ({"kind": "flat", "sides": [], "radius": 1.0}, "unknown_field", "drawn.radius", "it goes with another kind"),
    ],
)
def test_a_wrong_kind_is_told_with_those_there_are(drawn: dict[str, Any], code: str, where: str, told: str) -> None:
    with pytest.raises(BadInputError) as caught:
        validate(Kinds, {"drawn": drawn})
    assert (caught.value.code, caught.value.where) == (code, where)
    assert told in caught.value.message


def test_a_list_is_called_one() -> None:
    with pytest.raises(BadInputError, match="expected a list, got 3"):
        validate(Flat, {"kind": "flat", "sides": 3})
