"""The door of HierMoE: what a problem may say, what is refused by which name and at which place."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hiermoe_cases import document, golden_5, link, mask, printed, problem_of

from planner.envelope import dump_model
from planner.errors import BadInputError
from planner.papers.hiermoe.instance import Loads, Tokens, Uniform, compile_case, routing_digest
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.routing.zipf import draw
from planner.validation import validate


def changed(path: str, value: object, base: dict[str, Any] | None = None) -> dict[str, Any]:
    made = copy.deepcopy(printed() if base is None else base)
    *outer, last = path.split(".")
    holder: Any = made
    for name in outer:
        holder = holder[int(name)] if name.isdecimal() else holder.setdefault(name, {})
    holder[int(last) if last.isdecimal() else last] = value
    return made


def refused(given: dict[str, Any]) -> BadInputError:
    with pytest.raises(BadInputError) as raised:
        validate(HiermoeProblem, given)
    return raised.value


ROUTING = "layers.0.routing"
LOADS = {"kind": "loads", "tokens_per_rank": 4, "expert_load": [4.0] * 8}
MAP = "layers.0.initial_physical_to_logical"


@pytest.mark.parametrize(
    ("path", "value", "code", "where"),
    [
        ("redundant_slots", 1, "experts_not_divisible", "redundant_slots"),
        ("topology.level_groups", [2], "levels_not_nested", "topology.level_groups"),
        ("topology.level_groups", [1, 3], "levels_not_nested", "topology.level_groups"),
        ("topology.level_groups", [1, 2, 2], "levels_not_nested", "topology.level_groups"),
        ("topology.level_groups", [1, 4], "levels_not_nested", "topology.level_groups"),
        ("topology.level_groups", [], "levels_not_nested", "topology.level_groups"),
        ("topology.level_groups", [1], "link_count_mismatch", "costs.links.inter"),
        ("costs.links.intra", [], "link_count_mismatch", "costs.links.intra"),
        ("top_k", 9, "out_of_range", "top_k"),
        ("top_k", 1, "top_k_mismatch", f"{ROUTING}.expert_ids.0"),
        (f"{ROUTING}.expert_ids.2", [2, 6, 7], "top_k_mismatch", f"{ROUTING}.expert_ids.2"),
        (f"{ROUTING}.expert_ids.2", [6, 6], "duplicate_expert_in_token", f"{ROUTING}.expert_ids.2"),
        (f"{ROUTING}.expert_ids.3.1", 8, "expert_out_of_range", f"{ROUTING}.expert_ids.3.1"),
        (f"{ROUTING}.expert_ids.1.0", -1, "expert_out_of_range", f"{ROUTING}.expert_ids.1.0"),
        (f"{ROUTING}.expert_ids.1.0", "1", "wrong_type", f"{ROUTING}.expert_ids.1.0"),
        (f"{ROUTING}.expert_ids.1.0", 2**63, "out_of_range", f"{ROUTING}.expert_ids.1.0"),
        (f"{ROUTING}.source_rank.1", 4, "source_rank_out_of_range", f"{ROUTING}.source_rank.1"),
        (f"{ROUTING}.source_rank.2", -1, "source_rank_out_of_range", f"{ROUTING}.source_rank.2"),
        (f"{ROUTING}.source_rank", [0, 0, 0], "out_of_range", f"{ROUTING}.source_rank"),
        (f"{ROUTING}.kind", "masks", "out_of_range", f"{ROUTING}.kind"),
        (ROUTING, LOADS | {"tokens_per_rank": 5}, "load_sum_mismatch", f"{ROUTING}.expert_load"),
        (ROUTING, LOADS | {"expert_load": [8.0] * 7}, "out_of_range", f"{ROUTING}.expert_load"),
        (ROUTING, LOADS | {"expert_load": [8.0] * 7 + [-1.0]}, "out_of_range", f"{ROUTING}.expert_load.7"),
        (ROUTING, LOADS | {"expert_load": [8.0] * 7 + [float("nan")]}, "not_finite", f"{ROUTING}.expert_load.7"),
        (ROUTING, LOADS | {"path": "loads.json"}, "out_of_range", ROUTING),
        (ROUTING, {"kind": "loads"}, "out_of_range", ROUTING),
        (ROUTING, LOADS | {"layer": 1}, "out_of_range", f"{ROUTING}.layer"),
        (ROUTING, {"kind": "zipf", "tokens_per_rank": 2**23, "exponent": 1, "seed": 0}, "too_large",
         f"{ROUTING}.tokens_per_rank"),
        (MAP, [0, 1, 2, 3, 4, 5, 6], "slot_count", MAP),
        (MAP, [0, 1, 2, 3, 4, 5, 6, 8], "expert_out_of_range", f"{MAP}.7"),
        (MAP, [0, 1, 2, 3, 4, 5, 6, 0], "expert_missing", MAP),
        ("search.dimensions", [1, 3], "out_of_range", "search.dimensions"),
        ("search.dimensions", [], "out_of_range", "search.dimensions"),
        ("search.dimensions", [2, 2], "duplicate_id", "search.dimensions"),
        ("search.starts", [], "out_of_range", "search.starts"),
        ("search.starts", ["current", "current"], "duplicate_id", "search.starts"),
        ("layers", [], "out_of_range", "layers"),
        ("costs.token_bytes", 0, "out_of_range", "costs.token_bytes"),
        ("costs.links.flat.bandwidth_bytes_per_s", 0, "out_of_range", "costs.links.flat.bandwidth_bytes_per_s"),
        ("costs.sources", {}, "unknown_field", "costs.sources"),
        (f"{ROUTING}.expert_id", [], "unknown_field", f"{ROUTING}.expert_id"),
    ],
)  # fmt: skip
def test_what_a_problem_may_not_say_is_refused_by_name_and_place(
    path: str, value: object, code: str, where: str
) -> None:
    error = refused(changed(path, value))
    assert (error.code, error.where) == (code, where), error.message


def test_slots_that_do_not_fill_the_gpus_are_told_how_many_would() -> None:
    # 8 experts + 1 slot = 9 over 4 GPUs: 1 left over, so 4 - 1 = 3 more than the 1 there is
    assert "redundant_slots=4 fills them" in refused(changed("redundant_slots", 1)).message
    validate(HiermoeProblem, changed("redundant_slots", 4))


def test_messages_name_what_was_given_and_count_in_words() -> None:
    assert refused(changed("topology.level_groups", [1, 2, 6])).message.endswith("divide, 4 GPUs, got 6")
    assert refused(changed("costs.links.intra", [])).message.startswith("expected 1 intra link, one a level")
    assert refused(changed("topology.level_groups", [1])).message.startswith("expected 0 inter links, one a level")


def test_an_expert_is_found_twice_in_a_token_wherever_it_stands() -> None:
    error = refused(document(2, 4, 3, mask([(0, (0, 1, 2)), (1, (1, 3, 1))])))
    assert (error.code, error.where) == ("duplicate_expert_in_token", f"{ROUTING}.expert_ids.1")
    assert "token 1 selects expert 1 twice" in error.message


def test_layers_of_one_id_are_refused() -> None:
    given = printed()
    given["layers"] *= 2
    assert refused(given).code == "duplicate_id"


def test_two_copies_of_an_expert_on_a_rank_are_refused_unless_they_are_allowed() -> None:
    given = golden_5()
    given["layers"][0]["initial_physical_to_logical"] = [0, 0, 1, 2]
    error = refused(given)
    assert (error.code, error.where) == ("duplicate_on_rank", MAP)
    assert "rank 0 holds expert 0 twice" in error.message
    validate(HiermoeProblem, given | {"forbid_same_rank_replicas": False})


def test_the_loads_of_a_layer_may_be_off_by_a_millionth_and_no_more() -> None:
    # 4 ranks x 4 tokens x K = 2: 32 assignments
    for off, fits in ((1e-5, True), (1e-4, False)):
        given = changed(ROUTING, LOADS | {"expert_load": [4.0] * 7 + [4.0 + off]})
        if fits:
            validate(HiermoeProblem, given)
        else:
            assert refused(given).code == "load_sum_mismatch"


@pytest.mark.parametrize("limit", [("search", "max_moved_bytes"), ("topology", "expert_memory_bytes_per_gpu")])
def test_a_limit_in_bytes_needs_the_bytes_of_an_expert(limit: tuple[str, str]) -> None:
    part, name = limit
    given = printed()
    given[part] = given.get(part, {}) | {name: 10}
    with pytest.raises(BadInputError, match=f"needed by {part}.{name}") as caught:
        problem_of(given)
    assert (caught.value.code, caught.value.where) == ("missing_field", "costs.expert_bytes")
    given["costs"]["expert_bytes"] = 0
    problem_of(given)


def test_the_canonical_order_is_by_layer_id_dimension_and_name() -> None:
    given = printed() | {"search": {"dimensions": [2, 1], "starts": ["current", "balanced"]}}
    given["layers"] = [given["layers"][0] | {"layer_id": number} for number in (7, 3)]
    problem = problem_of(given)
    assert [layer.layer_id for layer in problem.layers] == [3, 7]
    assert problem.search.dimensions == (1, 2)
    assert problem.search.starts == ("balanced", "current")
    assert dump_model(problem.sorted()) == dump_model(problem)


def test_a_dumped_problem_is_read_again_as_it_was() -> None:
    problem = problem_of(printed())
    assert problem_of(dump_model(problem)) == problem


# --- compiled -----------------------------------------------------------------------------------------------------


def test_a_case_has_the_letters_of_the_page() -> None:
    case = compile_case(problem_of(printed()))
    assert (case.G, case.E, case.K, case.P, case.U, case.D, case.slots) == (4, 8, 2, 8, (1, 2), 2, 2)
    assert case.dimensions == (1, 2)
    assert case.link("flat", 0) == (2e-4, 1 / 2e9)
    assert case.link("inter", 1) == (1.5e-4, 1 / 2e9)
    assert case.link("intra", 1) == (1e-4, 1 / 2e10)
    [layer] = case.layers
    assert layer.current.tolist() == list(range(8))
    assert isinstance(layer.routed, Tokens)
    assert layer.routed.expert_ids.tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_ids_of_a_token_are_ascending_whatever_their_order_in_the_file() -> None:
    given = document(2, 4, 3, mask([(1, (3, 0, 2)), (0, (1, 2, 0))]))
    routed = compile_case(problem_of(given)).layers[0].routed
    assert isinstance(routed, Tokens)
    assert routed.expert_ids.tolist() == [[0, 2, 3], [0, 1, 2]]
    assert routed.source.tolist() == [1, 0]


def test_a_layer_without_tokens_is_a_layer() -> None:
    routed = compile_case(problem_of(document(2, 4, 3, mask([])))).layers[0].routed
    assert isinstance(routed, Tokens)
    assert routed.expert_ids.shape == (0, 3)


def test_redundant_slots_hold_the_first_experts_again_unless_the_problem_says_what_they_hold() -> None:
    assert compile_case(problem_of(golden_5())).layers[0].current.tolist() == [0, 1, 2, 0]
    given = golden_5()
    given["layers"][0]["initial_physical_to_logical"] = [2, 1, 0, 1]
    assert compile_case(problem_of(given)).layers[0].current.tolist() == [2, 1, 0, 1]


def test_loads_say_how_many_tokens_there_are_where_the_problem_does_not() -> None:
    routing = {"kind": "loads", "expert_load": [4.0, 3.0, 2.0, 1.0]}
    routed = compile_case(problem_of(document(2, 4, 2, routing))).layers[0].routed
    assert isinstance(routed, Loads)
    assert routed.tokens == 5.0
    uniform = {"kind": "uniform_expected", "tokens_per_rank": 7}
    assert compile_case(problem_of(document(2, 4, 2, uniform))).layers[0].routed == Uniform(7)


def test_allowed_dimensions_are_those_of_the_search() -> None:
    assert compile_case(problem_of(printed() | {"search": {"dimensions": [2]}})).dimensions == (2,)


# --- drawn --------------------------------------------------------------------------------------------------------


def zipf(**changes: Any) -> dict[str, Any]:
    return {"kind": "zipf", "tokens_per_rank": 50, "exponent": 1.0, "seed": 3} | changes


def test_drawn_tokens_are_distinct_experts_in_blocks_of_their_source() -> None:
    tokens = draw(4, 100, 16, 5, 1.2, 0)
    assert tokens.expert_ids.shape == (400, 5)
    assert (np.diff(tokens.expert_ids, axis=1) > 0).all()
    assert tokens.expert_ids.min() >= 0
    assert tokens.expert_ids.max() < 16
    assert tokens.source.tolist() == [rank for rank in range(4) for _ in range(100)]


def test_the_same_seed_draws_the_same_tokens_and_a_layer_depends_on_its_own_seed_alone() -> None:
    def digests(*seeds: int) -> list[str | None]:
        layers = [{"layer_id": index, "routing": zipf(seed=seed)} for index, seed in enumerate(seeds)]
        case = compile_case(problem_of(document(4, 8, 2, {}, layers=layers)))
        return [routing_digest(layer.routed) for layer in case.layers]

    first = digests(3, 4)
    assert first[0] != first[1]
    assert digests(3, 4) == first
    assert digests(5, 4)[1] == first[1]


def test_a_draw_does_not_depend_on_how_many_keys_are_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = routing_digest(draw(2, 300, 16, 4, 0.7, 9))
    monkeypatch.setattr("planner.routing.zipf.CHUNK_NUMBERS", 100)
    assert routing_digest(draw(2, 300, 16, 4, 0.7, 9)) == whole


def test_the_weights_of_a_draw_fall_with_the_place_of_an_expert_in_the_permutation() -> None:
    # K = 1: an expert's share is its weight, 1 / (place + 1) over H_4 = 25/12: 0.48, 0.24, 0.16, 0.12
    ids = draw(1, 100_000, 4, 1, 1.0, 5).expert_ids[:, 0]
    shares = np.sort(np.bincount(ids, minlength=4) / len(ids))[::-1]
    assert shares == pytest.approx([0.48, 0.24, 0.16, 0.12], abs=0.005)
    # the permutation is the generator's first draw
    place = np.random.default_rng(5).permutation(4)
    assert np.bincount(ids).argmax() == place.argmin()


def test_every_expert_is_drawn_where_a_token_takes_all_of_them() -> None:
    assert draw(1, 3, 4, 4, 2.0, 0).expert_ids.tolist() == [[0, 1, 2, 3]] * 3


def test_the_digest_of_a_routing_tells_tokens_and_sources_apart() -> None:
    base = Tokens(np.array([[0, 1]], np.int32), np.array([0], np.int32))
    moved = Tokens(base.expert_ids, np.array([1], np.int32))
    other = Tokens(np.array([[0, 2]], np.int32), base.source)
    assert len({routing_digest(tokens) for tokens in (base, moved, other)}) == 3
    assert routing_digest(Uniform(3)) is None


def test_a_drawn_layer_is_drawn_once_for_a_problem_and_its_copies() -> None:
    problem = problem_of(document(2, 4, 2, zipf()))
    first, second = compile_case(problem), compile_case(problem.model_copy())
    assert first.layers[0].routed is second.layers[0].routed


def test_links_take_sources() -> None:
    given = changed("costs.links.flat", link(1.0) | {"sources": {"measured": 0.25, "stated": 0.75}})
    sources = problem_of(given).costs.links.flat.sources
    assert sources is not None
    assert sources.measured == 0.25
    assert refused(changed("costs.links.flat", link(1.0) | {"sources": {"measured": 0.5}})).code == "out_of_range"
