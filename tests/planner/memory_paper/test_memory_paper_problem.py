"""Hostile problem files of the memory paper are refused with the place of the fault (page, section 9)."""

from __future__ import annotations

from typing import Any

import pytest
from memory_paper_cases import dim, group, section_6, solved

from planner.errors import BadInputError
from planner.json_text import parse_json
from planner.papers.memory.problem import MemoryProblem
from planner.validation import validate


def document(**changes: Any) -> dict[str, Any]:
    return section_6().model_dump(mode="json") | changes


def with_group(**changes: Any) -> dict[str, Any]:
    return document(groups=[document()["groups"][0] | changes])


def refused(fields: dict[str, Any]) -> BadInputError:
    with pytest.raises(BadInputError) as raised:
        validate(MemoryProblem, fields)
    return raised.value


def test_what_a_device_has_beside_other_bytes_must_be_something() -> None:
    error = refused(document(capacity_bytes=3e9, other_bytes=3e9))
    assert error.where == "capacity_bytes"
    assert "other_bytes = 3e+09" in error.message
    assert "capacity_bytes = 3e+09" in error.message


@pytest.mark.parametrize(
    ("fields", "code", "where"),
    [
        (document(capacity_bytes=2.0**53 + 2), "out_of_range", "capacity_bytes"),
        (document(num_micro_batches=0), "out_of_range", "num_micro_batches"),
        (document(num_micro_batches=1.5), "wrong_type", "num_micro_batches"),
        (document(other_bytes=-1.0), "out_of_range", "other_bytes"),
        (document(other_bytes=float("nan")), "not_finite", "other_bytes"),
        (document(capacity_byte=1.0), "unknown_field", "capacity_byte"),
        (document(groups=[]), "out_of_range", "groups"),
        (document(search={"parameters": []}), "out_of_range", "search.parameters"),
        (document(search={"gradients": ["sharded", "sharded"]}), "duplicate_id", "search.gradients"),
        (document(search={"optimizer": ["gather"]}), "out_of_range", "search.optimizer.0"),
        (document(activations={"kept_bytes": 1.0, "recompute_s": 0.1}), "missing_field", "activations"),
        (document(activations={"kept_bytes": 1.0, "unit_bytes": 0.1}), "missing_field", "activations"),
    ],
)
def test_a_faulty_field_is_named(fields: dict[str, Any], code: str, where: str) -> None:
    error = refused(fields)
    assert error.code == code
    assert error.where is not None
    assert error.where.startswith(where)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"parameters_bytes": 2.0**53 * 2}, "parameters_bytes"),
        ({"optimizer_bytes": -1.0}, "optimizer_bytes"),
        ({"parameters_unit_bytes": 16e9}, "parameters_unit_bytes"),
        ({"dims": []}, "dims"),
        ({"dims": [dim(2, name=str(n)) for n in range(5)]}, "dims"),
        ({"dims": [dim(2), dim(2)]}, "dims"),
        ({"dims": [dim(0)]}, "dims"),
        ({"dims": [dim(2, alpha_s=-1.0)]}, "dims"),
    ],
)
def test_a_faulty_group_is_named_by_its_id(changes: dict[str, Any], where: str) -> None:
    error = refused(with_group(**changes))
    assert error.where is not None
    assert error.where.startswith("groups.")
    assert where in error.where


def test_groups_differ_by_id_and_have_the_same_number_of_dimensions() -> None:
    one = group(1e9, (2, 2, 12), 0.0, [dim(2)])
    two = group(1e9, (2, 2, 12), 0.0, [dim(2), dim(4, name="replicate")])
    assert refused(document(groups=[one, one])).code == "duplicate_id"
    error = refused(document(groups=[one, two | {"id": "experts"}]))
    assert error.where == "groups.experts.dims"


def test_causes_of_bytes_that_are_not_there_are_refused() -> None:
    error = refused(document(activations={"kept_bytes": 1.0, "unit_causes": {"ends": 1.0}}))
    assert error.where == "activations.unit_causes"


def test_causes_are_scaled_to_what_they_explain() -> None:
    """Bytes that somebody moved keep their parts in proportion: 15 GB of parameters are 5 and 10, not 1 and 2."""
    causes = {"attention": 1e9, "ffn": 2e9}
    fields = with_group(parameters_causes=causes) | {"other_bytes": 3e9, "other_causes": {"context": 0.0}}
    fields["activations"] |= {"kept_causes": {"layers": 3.0, "logits": 1.0}, "unit_causes": {"ends": 1.5e9}}
    found = validate(MemoryProblem, fields).sorted()
    assert found.groups[0].parameters_causes == pytest.approx({"attention": 5e9, "ffn": 10e9})
    assert found.activations.kept_causes == pytest.approx({"layers": 22.5e9, "logits": 7.5e9})
    assert found.activations.unit_causes == {"ends": 1.5e9}
    assert found.other_causes is None
    assert found.sorted() == found


@pytest.mark.parametrize("tiny", [5e-324, 1e-300])
def test_numbers_that_a_float_cannot_tell_apart_are_refused(tiny: float) -> None:
    """Products of two such lose their digits, and a plan would not be what its check recomputes."""
    assert refused(document(other_bytes=tiny)).where == "other_bytes"
    assert refused(document(capacity_bytes=tiny)).where == "capacity_bytes"
    assert (refused(with_group(dims=[dim(2, beta=tiny)])).where or "").endswith("beta_s_per_byte")
    assert (refused(with_group(optimizer_bytes=tiny)).where or "").endswith("optimizer_bytes")


def further(**changes: Any) -> dict[str, Any]:
    """The page's problem with a second rank of the same bytes."""
    own = document()
    groups = [{name: value for name, value in own["groups"][0].items() if name != "dims"}]
    rank = {"rank": 1, "groups": groups, "activations": own["activations"]} | changes
    return document(rank=0, ranks=[rank])


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        (further() | {"rank": None}, "rank"),
        (further(rank=0), "ranks"),
        (further(groups=[]), "ranks.0.groups"),
        (further(activations={"kept_bytes": 1.0}), "ranks.0.activations.materialised_bytes"),
    ],
)
def test_further_ranks_are_of_the_same_groups_and_modes(fields: dict[str, Any], where: str) -> None:
    assert refused(fields).where == where


def test_a_rank_that_is_the_same_again_changes_nothing() -> None:
    assert solved(validate(MemoryProblem, further())) == solved(section_6())


def test_a_number_that_is_not_finite_never_leaves_the_file() -> None:
    with pytest.raises(BadInputError):
        parse_json('{"capacity_bytes": NaN}', "the problem")


def test_the_canonical_form_lists_modes_as_the_page_does() -> None:
    one = section_6(search={"parameters": ["gather_keep", "gather"]}).sorted()
    other = section_6(search={"parameters": ["gather", "gather_keep"]}).sorted()
    assert one == other
    assert solved(one) == solved(other)
