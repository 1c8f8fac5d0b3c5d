"""What a problem file may not say (page, sections 6 and 9), and what its canonical form is."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from layout_cases import G8, layers, problem, row, x

from planner.errors import BadInputError

ROWS = [row("dense"), row("embedding"), row("head")]


def refused(path: str, value: Any, base: Any = None) -> tuple[str, str | None, str]:
    """The error's code, place and message."""
    document = copy.deepcopy(x() if base is None else base)
    *folders, name = path.split(".")
    place = document
    for folder in folders:
        place = place[int(folder)] if isinstance(place, list) else place[folder]
    place[int(name) if isinstance(place, list) else name] = value
    with pytest.raises(BadInputError) as caught:
        problem(document)
    return caught.value.code, caught.value.where, caught.value.message


@pytest.mark.parametrize(
    ("path", "value", "code", "said"),
    [
        ("search.tp", [], "out_of_range", "at least one value"),
        ("search.tp", [2, 1], "out_of_range", "2 before 1"),
        ("search.tp", [2, 2], "duplicate_id", "2 occurs twice"),
        ("search.tp", [0], "out_of_range", "greater than or equal to 1"),
        ("search.tp", [True], "wrong_type", "integer"),
        ("search.zero_stage", [4], "out_of_range", "less than or equal to 3"),
        ("search.zero_stage", [False], "wrong_type", "integer"),
        ("search.recompute", ["full", "none"], "out_of_range", "full before none"),
        ("search.recompute", ["some"], "out_of_range", "'none', 'selective' or 'full'"),
        ("search.partitions", ["ends", "even"], "out_of_range", "ends before even"),
        ("search.sequence_parallel", [0], "wrong_type", "boolean"),
        ("search.sequence_parallel", [True, False], "out_of_range", "true before false"),
        ("search.keep", 1001, "out_of_range", "less than or equal to 1000"),
        ("search.tpp", [1], "unknown_field", 'did you mean "tp"'),
        ("cluster.num_gpus", 0, "out_of_range", "greater than or equal to 1"),
        ("cluster.num_gpus", 4.0, "wrong_type", "integer"),
        ("cluster.reserve_bytes", 80e9, "out_of_range", "more than reserve_bytes 8e+10"),
        ("cluster.reserve_bytes", -1, "out_of_range", "greater than or equal to 0"),
        ("batch.global_batch_size", 0, "out_of_range", "greater than or equal to 1"),
        ("model.num_kv_heads", 9, "out_of_range", "at most num_heads 8"),
        ("model.num_experts", 4, "out_of_range", "no layers of kind moe"),
        ("model.layers", layers(4, "moe"), "out_of_range", "got 0 with layers of kind moe"),
        ("model.layers", [], "out_of_range", "at least one run"),
        ("model.layers", [*layers(10_000), *layers(1)], "too_large", "10,001"),
        ("costs.rows", [], "out_of_range", "at least one row"),
        ("costs.rows", [*ROWS, row("dense")], "duplicate_id", "dense tp=1 cp=1 sp=false micro_batch=1 occurs twice"),
        ("costs.rows.0.forward_s", -1.0, "out_of_range", "greater than or equal to 0"),
        ("costs.rows.0.forward_s", math.nan, "not_finite", "finite"),
        ("costs.rows.0.forward_s", math.inf, "not_finite", "finite"),
        ("costs.rows.0.forward_s", "1", "wrong_type", "number"),
        ("costs.rows.0.kept_bytes", 1.0, "out_of_range", "input_bytes <= selective_bytes <= kept_bytes"),
        ("costs.rows.0.kind", "attention", "out_of_range", "attention"),
        ("costs.rows.0.kind", "moe", "missing_field", "ep and etp"),
        ("costs.rows.0.ep", 1, "unknown_field", "no ep and no etp"),
        ("costs.overlap", {"dp": 0}, "missing_field", "p2p"),
        ("costs.overlap.dp", 1.5, "out_of_range", "less than or equal to 1"),
        ("costs.fragmentation", -0.1, "out_of_range", "greater than or equal to 0"),
        ("objective", "memory", "out_of_range", "step_time"),
        ("launcher_rules", "fsdp", "out_of_range", "torchtitan"),
    ],
)
def test_a_fault_is_refused_and_placed(path: str, value: Any, code: str, said: str) -> None:
    got, where, message = refused(path, value)
    assert (got, said in message) == (code, True), message
    # The row, the list or the object, where not the field itself.
    assert where is not None
    assert where.split(".")[0] == path.split(".")[0]


def test_overlap_is_never_defaulted() -> None:
    document = x()
    del document["costs"]["overlap"]
    with pytest.raises(BadInputError, match='missing field "overlap"'):
        problem(document)


def test_a_product_beyond_fifty_million_names_the_longest_list() -> None:
    many = list(range(1, 8001))
    code, where, message = refused("search", {"tp": many[:80], "cp": many, "pp": many[:80]})
    assert (code, where) == ("too_large", "search.cp")
    assert "got 51,200,000" in message


def test_a_step_that_no_replay_could_walk_is_refused() -> None:
    # 10,000 stages of a million micro-batches.
    document = x(batch__global_batch_size=10**6, model__layers=layers(10_000), search={"pp": [10_000]})
    document["cluster"]["num_gpus"] = 10_000
    assert refused("batch.sequence_length", 8, document)[:2] == ("too_large", "batch.global_batch_size")
    # With as many data ranks each walks its own part.
    document["cluster"]["num_gpus"] = document["search"]["pp"][0] = 1
    document["model"]["layers"] = layers(10)
    problem(document)


def test_how_long_a_step_is_is_asked_of_layouts_that_keep_the_rules() -> None:
    """9,973 layers, a prime number: in p = 1,024 stages of one chunk alone, 1,024 * 1,024 forwards."""
    document = x(
        batch__global_batch_size=1024,
        model__layers=layers(9_973),
        search={"pp": [1, 2, 512, 1024], "vpp": [1, 2, 5, 10], "partitions": ["even", "ends"]},
    )
    document["cluster"]["num_gpus"] = 1024
    assert problem(document).most_tasks == 1024 * 1024
    # 9,970 layers are cut into 2 x 5 chunks, and these too are few.
    document["model"]["layers"] = layers(9_970)
    problem(document)
    # One copy of 64 stages walks the whole batch.
    long = x(batch__global_batch_size=262_144, model__layers=layers(64), search={"pp": [64], "micro_batch": [1, 64]})
    long["cluster"]["num_gpus"] = 64
    code, where, message = refused("batch.sequence_length", 8, long)
    assert (code, where) == ("too_large", "batch.global_batch_size")
    assert "16,777,216" in message


@pytest.mark.parametrize(
    "path",
    [
        "costs.rows.0.forward_s",
        "costs.rows.0.params",
        "costs.comm_bytes.grad",
        "costs.fixed_s",
        "costs.p2p.intra.alpha_s",
    ],
)
def test_what_is_too_small_to_divide_by_is_refused(path: str) -> None:
    code, where, message = refused(path, 5e-324)
    assert (code, where) == ("out_of_range", path)
    assert "0 or at least 1e-30" in message


def test_rows_are_sorted_by_key_whatever_their_order() -> None:
    backwards = copy.deepcopy(G8)
    backwards["costs"]["rows"].reverse()
    assert problem(backwards) == problem(G8)
    assert [each.key for each in problem(G8).costs.rows] == [
        ("embedding", 1, 1, False, 1, 0, 0),
        ("head", 1, 1, False, 1, 0, 0),
        ("moe", 1, 1, False, 1, 1, 1),
        ("moe", 1, 1, False, 1, 2, 1),
        ("moe", 1, 1, False, 1, 4, 1),
    ]


def test_a_changed_table_is_found_by_its_own_keys() -> None:
    given = problem(x())
    assert len(given.costs.by_key) == 3
    fewer = given.model_copy(update={"costs": given.costs.model_copy(update={"rows": given.costs.rows[:1]})})
    assert list(fewer.costs.by_key) == [("dense", 1, 1, False, 1, 0, 0)]
    assert len(given.costs.by_key) == 3
