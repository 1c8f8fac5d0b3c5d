"""Traced layers: token files and counts read once, a_max tables of windows, statistics of a placement, expert maps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from janus_experts_cases import mask, placement_document, traced_document

from planner.beside import Beside
from planner.envelope import dump_model
from planner.errors import BadInputError
from planner.papers.janus.attach import attach
from planner.papers.janus.costs import ActivatedTable
from planner.papers.janus.experts.activated_table import usual_sizes
from planner.papers.janus.experts.maps import expert_maps
from planner.papers.janus.experts.tokens import draw_by_load, shares
from planner.papers.janus.experts.windows import MOST_WINDOWS, windows_of
from planner.papers.janus.problem import JanusProblem, PlacementProblem, SizingProblem
from planner.validation import validate

TOKENS = ((0, 1), (0, 1), (2, 3), (0, 2), (1, 2))


def attached(document: dict[str, Any], folder: Path | str = ".") -> JanusProblem:
    return attach(validate(JanusProblem, document), Beside(str(folder))).problem


def sizing(document: dict[str, Any], folder: Path | str = ".") -> SizingProblem:
    problem = attached(document, folder)
    assert isinstance(problem, SizingProblem)
    return problem


def table(problem: SizingProblem) -> ActivatedTable:
    assert isinstance(problem.a_max, ActivatedTable)
    return problem.a_max


def refused(document: dict[str, Any], folder: Path | str = ".") -> tuple[str, str | None]:
    with pytest.raises(BadInputError) as raised:
        attached(document, folder)
    return raised.value.code, raised.value.where


# --- the a_max table ----------------------------------------------------------------------------------------------


def test_a_row_is_the_mean_over_consecutive_windows() -> None:
    # On two instances of two slots the pairs 0-1 and 2-3, each once or twice together, are put apart as far as it goes:
    # {0, 1} twice, {2, 3}, {0, 2} and {1, 2} once. Least max I: {0, 3} and {1, 2} with 1 = max(0, 1).
    made = table(sizing(traced_document(mask(*TOKENS), a_max={"kind": "routing", "batch_grid": [1, 2, 3]})))
    assert made.expert_instances == (2, 3, 4)
    # One token: 0-1, 0-1, 2-3 and 0-2 are apart, 1-2 is not: (1 + 1 + 1 + 1 + 2) / 5. Windows of two: {0, 1} has one
    # each, {0, 2, 3} has 0 and 3 on one. Of three: all four experts, two each.
    assert made.values[0] == pytest.approx((1.2, 1.5, 2.0))
    assert made.windows == (5, 2, 1)
    assert made.statistic == "mean"
    assert made.sources is not None
    assert made.sources.measured == 1.0


def test_rows_do_not_fall_with_the_batch() -> None:
    # Windows of two: {0, 1, 2} has 2 on an instance; of three only the first three tokens, {0, 1}, are one each.
    tokens = ((0, 1), (0, 1), (0, 1), (1, 2))
    routing = {"kind": "routing", "batch_grid": [1, 2, 3]}
    first = table(sizing(traced_document(mask(*tokens), a_max=routing))).values[0]
    assert list(first) == sorted(first)
    assert first[1] == first[2] > 1


def test_p95_is_no_less_than_the_mean_here() -> None:
    rng = np.random.default_rng(0)
    tokens = [tuple(int(e) for e in rng.choice(4, 2, replace=False)) for _ in range(40)]
    mean, p95 = (
        table(
            sizing(
                traced_document(mask(*tokens), a_max={"kind": "routing", "batch_grid": [1, 2], "statistic": statistic})
            )
        )
        for statistic in ("mean", "p95")
    )
    assert p95.statistic == "p95"
    assert mean.values[0][0] < p95.values[0][0] == 2.0


def test_several_layers_are_averaged_and_their_windows_counted_together() -> None:
    other = ((0, 3), (1, 2), (0, 3), (1, 2), (0, 3))
    one, two = (table(sizing(traced_document(mask(*tokens)))) for tokens in (TOKENS, other))
    both = table(sizing(traced_document(mask(*TOKENS), mask(*other))))
    assert both.values[0] == pytest.approx(tuple(np.add(one.values[0], two.values[0]) / 2))
    assert both.windows == (10, 4)


def test_a_trace_shorter_than_a_batch_is_refused() -> None:
    document = traced_document(mask(*TOKENS), a_max={"kind": "routing", "batch_grid": [1, 4, 8]})
    assert refused(document) == ("out_of_range", "a_max.batch_grid.2")


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        # 16 rows of 2,048 to 4,096 instances, for each of ten layers.
        ({"slots_per_instance": 2}, "a_max"),
        ({"slots_per_instance": 64, "a_max": {"kind": "routing", "batch_grid": [1, 2], "expert_instances": [64, 1025]}},
         "slots_per_instance"),
        ({"slots_per_instance": 64, "a_max": {"kind": "routing", "batch_grid": list(range(1, 300))}},
         "a_max.batch_grid"),
    ],
)  # fmt: skip
def test_a_table_that_would_take_too_long_is_refused_before_it_is_begun(changes: dict[str, Any], where: str) -> None:
    limits = {"max_attention_instances": 1, "max_expert_instances": 65536, "max_total_instances": 131072}
    document = traced_document(*[mask((0, 1), (0, 1))] * 10, num_experts=4096, limits=limits, **changes)
    assert refused(document) == ("too_large", where)


@pytest.mark.parametrize(
    ("sizes", "where"), [([1, 2], "a_max.expert_instances.0"), ([3, 4], "a_max.expert_instances.0")]
)
def test_rows_start_at_the_fewest_instances_that_hold_all(sizes: list[int], where: str) -> None:
    a_max = {"kind": "routing", "batch_grid": [1, 2], "expert_instances": sizes}
    assert refused(traced_document(mask(*TOKENS), a_max=a_max)) == ("out_of_range", where)


def test_usual_rows_are_sixteen_at_most_from_the_fewest_on() -> None:
    assert usual_sizes(2, 4) == (2, 3, 4)
    assert usual_sizes(5, 3) == (5,)
    sizes = usual_sizes(10, 1024)
    assert (len(sizes), sizes[0], sizes[-1]) == (16, 10, 80)


def test_of_many_windows_some_are_taken_evenly_over_the_trace() -> None:
    ids = np.array([[token // 1000] for token in range(2000)], np.int32)
    windows = windows_of(ids, 2, (1, 1000))
    assert windows.counts == (MOST_WINDOWS, 2)
    assert windows.active[:MOST_WINDOWS].sum(axis=0).tolist() == [MOST_WINDOWS // 2] * 2


def test_a_device_with_slots_of_its_own_has_a_table_of_its_own() -> None:
    devices = [{"id": "same"}, {"id": "roomy", "slots_per_instance": 4}]
    problem = sizing(traced_document(mask(*TOKENS), devices=devices))
    same, roomy = problem.devices
    assert same.a_max is None
    assert isinstance(roomy.a_max, ActivatedTable)
    assert roomy.a_max.expert_instances[0] == 1
    # One instance with all experts: 2 of each token, and 2 or 3 of two tokens, {0, 1} and {0, 2, 3}.
    assert roomy.a_max.values[0] == (2.0, 2.5)


# --- files --------------------------------------------------------------------------------------------------------


def test_tokens_of_a_file_give_what_tokens_written_out_give(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", expert_ids=np.array([TOKENS, TOKENS[::-1]]))
    lines = [json.dumps({"expert_ids": list(token)[::-1]}) for token in TOKENS]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    written = sizing(traced_document(mask(*TOKENS)))
    for routing in ({"kind": "npz", "path": "t.npz", "layer": 0}, {"kind": "jsonl", "path": "t.jsonl"}):
        problem = sizing(traced_document(routing), tmp_path)
        made = table(problem).model_copy(update={"layers_sha256": table(written).layers_sha256})
        assert made == written.a_max
        assert expert_maps(problem, 3, None) == expert_maps(written, 3, None)


def test_a_plan_is_attached_again_by_digest_alone(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    np.savez(folder / "t.npz", expert_ids=np.array(TOKENS))
    first = attach(
        validate(JanusProblem, traced_document({"kind": "npz", "path": "inner/t.npz"})), Beside(str(tmp_path))
    )
    assert list(first.files) == ["t.npz"]
    kept = validate(JanusProblem, dump_model(first.problem.sorted()))
    again = attach(kept, Beside(str(folder), base_names=True))
    assert dump_model(again.problem.sorted()) == dump_model(first.problem.sorted())
    assert again.files == first.files
    assert isinstance(again.problem, SizingProblem)
    assert isinstance(first.problem, SizingProblem)
    assert expert_maps(again.problem, 2, None) == expert_maps(first.problem, 2, None)
    np.savez(folder / "t.npz", expert_ids=np.array(TOKENS[::-1]))
    with pytest.raises(BadInputError) as raised:
        attach(kept, Beside(str(folder), base_names=True))
    assert raised.value.code == "array_mismatch"


def test_tokens_that_were_not_read_are_asked_for() -> None:
    problem = validate(JanusProblem, traced_document({"kind": "npz", "path": "t.npz"}))
    assert isinstance(problem, SizingProblem)
    with pytest.raises(BadInputError) as raised:
        expert_maps(problem, 2, None)
    assert (raised.value.code, raised.value.where) == ("missing_field", "layers.0.routing.path")


@pytest.mark.parametrize(
    ("ids", "code"),
    [
        ([[0, 1, 2]], "top_k_mismatch"),
        ([[0, 4]], "expert_out_of_range"),
        ([[1, 1]], "duplicate_expert_in_token"),
    ],
)
def test_tokens_that_do_not_fit_the_problem_are_refused(tmp_path: Path, ids: Any, code: str) -> None:
    np.savez(tmp_path / "t.npz", expert_ids=np.array(ids))
    document = traced_document({"kind": "npz", "path": "t.npz"})
    assert refused(document, tmp_path) == (code, "layers.0.routing.path")
    wrong = traced_document(mask(*(tuple(row) for row in ids)))
    assert refused(wrong)[0] == code


def test_a_file_that_is_not_there_is_named() -> None:
    assert refused(traced_document({"kind": "npz", "path": "t.npz"})) == ("missing_field", "layers.0.routing.path")


def test_a_table_of_routing_needs_layers() -> None:
    assert refused(traced_document()) == ("missing_field", "a_max")


def test_a_draw_that_is_too_large_is_refused_whatever_its_kind() -> None:
    for routing in (
        {"kind": "uniform_expected", "tokens_per_rank": 2**24},
        {"kind": "zipf", "tokens_per_rank": 2**24, "exponent": 1.0, "seed": 0},
    ):
        document = traced_document(routing, num_experts=128, slots_per_instance=64)
        assert refused(document)[0] == "too_large"


# --- tokens that are drawn ----------------------------------------------------------------------------------------


def test_counts_of_a_file_are_read_in_and_their_tokens_drawn(tmp_path: Path) -> None:
    (tmp_path / "counts.json").write_text(json.dumps([{"0": 5, "1": 5, "2": 5, "3": 5}]))
    problem = sizing(traced_document({"kind": "loads", "path": "counts.json"}), tmp_path)
    made = table(problem)
    assert made.sources is not None
    assert made.sources.modelled == 1.0
    assert made == table(sizing(traced_document({"kind": "loads", "expert_load": [5, 5, 5, 5]})))
    # Two of four experts at random, of which two pairs of six lie on one instance: 4/3 in the mean.
    assert made.values[0][0] == pytest.approx(4 / 3, abs=0.1)


def test_experts_are_drawn_as_often_as_their_loads_say() -> None:
    load = np.array([60.0, 25, 10, 3, 1, 1, 0])
    share = shares(load, 3)
    # 60 % of three a token would be in more than every token: it is in every one, and the other two are of 25, 10, 3, 1
    # and 1; 25 of these 40 would be again; the last one is of the 15 that are left.
    assert share == pytest.approx([1, 1, 10 / 15, 3 / 15, 1 / 15, 1 / 15, 0])
    ids = draw_by_load(load, 20_000, 3, 0)
    drawn = np.bincount(ids.ravel(), minlength=7) / 20_000
    assert drawn == pytest.approx(share, abs=0.025)
    assert (np.diff(ids, axis=1) > 0).all()


@pytest.mark.parametrize("load", [[0.0, 0, 0, 0], [7.0, 0, 0, 0], [1e-300, 1e300, 0, 0]])
def test_experts_that_nothing_is_known_of_are_drawn_alike(load: list[float]) -> None:
    share = shares(np.array(load), 2)
    assert share.sum() == pytest.approx(2)
    ids = draw_by_load(np.array(load), 100, 2, 0)
    assert ((ids >= 0) & (ids < 4)).all()
    assert (ids[:, 0] < ids[:, 1]).all()


def test_layers_with_the_same_loads_are_drawn_apart() -> None:
    rng = np.random.default_rng(0)
    load = {"kind": "loads", "expert_load": rng.integers(1, 9, 16).astype(float).tolist()}
    document = traced_document(load, load, num_experts=16, slots_per_instance=4)
    one, other = expert_maps(sizing(document), 5, None).layers
    assert one.replicas == other.replicas or one.placement != other.placement
    assert one.max_coactivation != other.max_coactivation


# --- maps ---------------------------------------------------------------------------------------------------------


def test_a_map_holds_every_layer_by_id_with_full_instances() -> None:
    document = traced_document(mask(*TOKENS), mask(*TOKENS[::-1]), num_experts=4)
    document["layers"][0]["layer_id"] = 9
    made = expert_maps(sizing(document).sorted(), 3, None)
    assert [layer.layer_id for layer in made.layers] == [1, 9]
    for layer in made.layers:
        assert [len(row) for row in layer.placement] == [2, 2, 2]
        # Each is asked by two tokens or three, 0 and 1 and 2 by three: the spare slots are those of 0 and 1.
        assert layer.replicas == (2, 2, 1, 1)


def test_a_map_has_the_slots_of_its_device() -> None:
    document = traced_document(mask(*TOKENS), devices=[{"id": "x", "slots_per_instance": 4}])
    made = expert_maps(sizing(document), 2, "x")
    assert made.device == "x"
    assert made.layers[0].placement == ((0, 1, 2, 3), (0, 1, 2, 3))


def test_without_layers_a_map_is_empty() -> None:
    document = traced_document(a_max={"kind": "balanced_bound", "batch_grid": [1, 2]})
    assert expert_maps(sizing(document), 2, None).layers == ()


# --- the placement task -------------------------------------------------------------------------------------------


def placement_of(routing: dict[str, Any], folder: Path | str = ".", **changes: Any) -> PlacementProblem:
    document = placement_document(routing=routing, num_experts=4, batches=[], **changes)
    del document["expert_load"], document["coactivation"]
    problem = attached(document, folder)
    assert isinstance(problem, PlacementProblem)
    return problem


def test_routing_is_read_into_statistics(tmp_path: Path) -> None:
    problem = placement_of(mask(*TOKENS))
    assert problem.routing is None
    assert problem.expert_load == (3, 3, 3, 1)
    assert problem.coactivation == ((0, 1, 2.0), (0, 2, 1.0), (1, 2, 1.0), (2, 3, 1.0))
    np.savez(tmp_path / "t.npz", expert_ids=np.array(TOKENS))
    assert placement_of({"kind": "npz", "path": "t.npz"}, tmp_path) == problem
    assert attach(problem, Beside(".")).problem == problem


def test_a_drawn_routing_says_how_many_experts_a_token_has() -> None:
    document = placement_document(routing={"kind": "loads", "expert_load": [1, 1, 1, 1]}, num_experts=4, batches=[])
    del document["expert_load"], document["coactivation"]
    assert refused(document) == ("missing_field", "top_k")
    drawn = placement_of({"kind": "uniform_expected", "tokens_per_rank": 300}, top_k=3)
    assert sum(drawn.expert_load) == 900
    # Three pairs a token.
    assert sum(weight for _, _, weight in drawn.coactivation) == 900


def test_routing_of_another_top_k_than_stated_is_refused() -> None:
    document = placement_document(routing=mask(*TOKENS), num_experts=4, batches=[], top_k=3)
    del document["expert_load"], document["coactivation"]
    assert refused(document) == ("top_k_mismatch", "routing.expert_ids.0")
