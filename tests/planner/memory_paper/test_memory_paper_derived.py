"""The derived form of the memory paper: bytes of a rank, its data-parallel dimensions, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.documents import canonical_bytes
from planner.errors import BadInputError, InfeasibleError, RefutedError
from planner.paper import Derivation, DeriveOptions
from planner.papers.memory import cost
from planner.papers.memory.account import account, total_s
from planner.papers.memory.check import check
from planner.papers.memory.cost import derive
from planner.papers.memory.derived import MemoryDerivedProblem
from planner.papers.memory.engines import solve
from planner.papers.memory.explained import device_bytes, fullest, placement_of
from planner.papers.memory.problem import MemoryProblem
from planner.validation import validate
from solvers.report import Limits

EXAMPLES = Path(__file__).parents[3] / "planner" / "papers" / "memory" / "examples"
DATA = {"id": "data", "alpha_s": 1e-5, "beta_s_per_byte": 2.5e-11}
NETWORK = {"bandwidth_bytes_per_s": 50e9, "latency_s": 1e-5}


def example(name: str) -> dict[str, Any]:
    """A shipped example."""
    document: dict[str, Any] = json.loads((EXAMPLES / f"{name}.json").read_text())
    return document


def stated(model: object, layout: dict[str, object], sequence_length: int, **given: object) -> dict[str, Any]:
    """A problem that states all but the model's bytes: no profile is needed."""
    derive = {"model": model, "layout": layout, "batch": {"sequence_length": sequence_length}, "recompute_s": 0.1}
    return {"derive": derive | {"dense_dims": [DATA | {"size": 1}]} | given, "capacity_bytes": 80e9, "other_bytes": 0.0}


def derived(document: dict[str, Any], folder: Path | None = None) -> Derivation[MemoryProblem]:
    options = DeriveOptions(base_folder="." if folder is None else str(folder))
    return derive(validate(MemoryDerivedProblem, document), options)


def refused(document: dict[str, Any]) -> tuple[str, str | None]:
    with pytest.raises(BadInputError) as raised:
        derived(document)
    return raised.value.code, raised.value.where


def group(problem: MemoryProblem, name: str) -> Any:
    return next(each for each in problem.groups if each.id == name)


# --- golden cases of the page ---------------------------------------------------------------------------------------


def test_gpt_175b_is_placed_as_the_page_says() -> None:
    """G9: 31 chunks of 4 layers in flight; ZeRO-1 over 16, 2 + 4 + 12 bytes, 4 GB beside."""
    problem = derived(example("gpt_175b")).problem
    assert group(problem, "dense").parameters_bytes == 2 * 2_822_731_776
    assert problem.activations.kept_bytes == 13_287_686_144
    solution, _ = solve(problem, None, Limits())
    assert (solution.gradients, solution.optimizer, solution.activations) == ("replicated", "sharded", "kept")
    assert solution.device_bytes == 36_341_125_632


def test_llama_8b_keeps_what_the_page_says_on_one_device() -> None:
    """G10: 139,392 bytes a token and layer, and the ends: 40,877,752,320 in all."""
    problem = derived(stated("llama-3.1-8b", {}, 8192)).problem
    assert problem.activations.micro_batch_bytes == 139_392 * 8192 * 32
    assert problem.activations.kept_bytes == 40_877_752_320
    # A layer's input of 2 * 4096 bytes each, one layer whole, and the ends.
    ends = 40_877_752_320 - 139_392 * 8192 * 32
    assert problem.activations.materialised_bytes == 8192 * (32 * 8192 + 139_392 - 8192) + ends
    assert problem.activations.unit_bytes == 2 * 139_392 * 8192 + ends


def test_deepseek_v3_has_the_page_s_parameters_and_bytes_on_64_ranks_of_experts() -> None:
    """G10: 3 dense layers and 58 with experts."""
    dims = {"dense_dims": [DATA | {"size": 64}], "expert_dims": [DATA | {"size": 1}]}
    problem = derived(stated("deepseek-v3", {"ep": 64}, 4096, **dims)).problem
    assert group(problem, "dense").parameters_bytes == 2 * 17_117_648_384
    assert group(problem, "experts").parameters_bytes == 2 * 10_217_324_544
    assert problem.activations.micro_batch_bytes == 4096 * (3 * 340_608 + 58 * 571_008)


def test_a_diffusion_transformer_keeps_attention_feed_forward_and_modulated_copies() -> None:
    """Wan2.1-14B, a token and layer: 8h of two norms and 8h of modulation, 8h + 4a of self-attention, 4f of the
    feed-forward part; of cross-attention 4h of its norm, 4h + 4a of queries, results and statistics."""
    given = stated("wan2.1-14b", {"cp": 4}, 75600, dense_dims=[DATA | {"size": 4}])
    activations = derived(given).problem.activations
    each = 16 * 5120 + 8 * 5120 + 4 * 40 + 4 * 13824 + 8 * 5120 + 4 * 40
    assert activations.kept_bytes == activations.micro_batch_bytes == 40 * each * 75600 / 4


# --- ranks and dimensions -------------------------------------------------------------------------------------------


def clustered(
    layout: dict[str, object], ranks: int = 64, model: str = "llama-3.1-8b", **given: object
) -> dict[str, Any]:
    """On H100 nodes of eight."""
    cluster = {"num_ranks": ranks, "gpus_per_node": 8, "inter_node": NETWORK}
    batch = {"sequence_length": 4096}
    derive = {"model": model, "layout": layout, "batch": batch, "profile": "h100-sxm", "cluster": cluster}
    return {"derive": derive | given}


@pytest.mark.parametrize(
    ("layout", "sizes"),
    [
        # A node holds 8 / tp ranks of a group; tp 8 fills nodes, and one dimension is left.
        ({}, [("in_node", 8), ("across_nodes", 8)]),
        ({"tp": 4}, [("in_node", 2), ("across_nodes", 8)]),
        ({"tp": 8}, [("across_nodes", 8)]),
        # A stage has 64 / 8 ranks: all of them in one node.
        ({"pp": 8}, [("in_node", 8)]),
        # Context-parallel ranks hold the same parameters.
        ({"cp": 2, "tp": 4}, [("in_node", 2), ("across_nodes", 8)]),
    ],
)
def test_ranks_that_share_parameters_are_those_of_the_node_and_the_nodes(
    layout: dict[str, object], sizes: list[tuple[str, int]]
) -> None:
    [dense] = derived(clustered(layout)).problem.groups
    assert [(dim.id, dim.size) for dim in dense.dims] == sizes


def test_experts_have_dimensions_of_their_own_and_as_many() -> None:
    """Over 16 ranks of experts, 2 nodes, the 4 ranks with the same ones are in 4 nodes."""
    problem = derived(clustered({"ep": 16}, model="qwen3-30b-a3b", recompute_s=0.1)).problem
    sizes = {each.id: [dim.size for dim in each.dims] for each in problem.groups}
    assert sizes == {"dense": [8, 8], "experts": [1, 4]}


def test_links_are_the_profile_s_inside_a_node_and_the_cluster_s_between() -> None:
    [dense] = derived(clustered({})).problem.groups
    inside, between = dense.dims
    assert between.alpha_s == 1e-5
    assert (between.beta_s_per_byte, between.beta_of) == (2e-11, "gpu")
    assert between.sources is not None
    assert between.sources.stated == 1
    assert 0 < inside.beta_s_per_byte < between.beta_s_per_byte
    assert inside.sources is not None
    assert inside.sources.measured > 0.5


def test_left_out_it_is_the_rank_that_holds_most() -> None:
    """Of four stages the first has most in flight, four micro-batches, and the embedding."""
    batch = {"sequence_length": 4096, "num_micro_batches": 4}
    account = derived(clustered({"pp": 4}, recompute_s=0.1, batch=batch)).derive
    assert isinstance(account, dict)
    resolved = account["resolved"]
    kept = [each["kept_bytes"] for each in resolved["ranks"]]
    assert resolved["rank"] == 0
    assert kept[0] == max(kept)
    asked = derived(clustered({"pp": 4, "rank": 3}, recompute_s=0.1, batch=batch)).problem
    assert asked.job is not None
    assert asked.job.layout.rank == 3
    assert asked.activations.kept_bytes == kept[3]


def two_ranks(**changes: object) -> dict[str, Any]:
    """Llama 3.1 8B in two stages, 16,384 tokens: the first holds more in flight, the last the logits."""
    document = stated("llama-3.1-8b", {"pp": 2, "tp": 2}, 16384, dense_dims=[DATA | {"size": 8}])
    document["derive"]["batch"]["num_micro_batches"] = 8
    return document | {"capacity_bytes": 30e9, "other_bytes": 1e9} | changes


def on_rank(rank: int, **changes: object) -> MemoryProblem:
    document = two_ranks(**changes)
    document["derive"]["layout"] = document["derive"]["layout"] | {"rank": rank}
    return derived(document).problem


def test_a_plan_of_all_ranks_fits_each_of_them() -> None:
    """With 20 GB the first rank by itself holds ZeRO-1 with recomputation in 19.3 GB, and the last has no room."""
    alone, _ = solve(on_rank(0, capacity_bytes=20e9), None, Limits())
    assert (alone.parameters, alone.gradients, alone.activations) == ("replicated", "replicated", "materialised")
    together = derived(two_ranks(capacity_bytes=20e9)).problem
    solution, _ = solve(together, None, Limits())
    assert (solution.gradients, solution.optimizer, solution.activations) == ("sharded", "sharded", "materialised")
    placement = placement_of(solution)
    each = [device_bytes(on_rank(rank), placement) for rank in (0, 1)]
    assert solution.device_bytes == pytest.approx(max(each), rel=1e-12)
    assert each[1] == max(each) < 20e9
    assert fullest(together, placement).rank == 1
    assert check(together, solution) == []
    assert check(together, solution.model_copy(update={"device_bytes": min(each)})) != []


def test_what_all_ranks_need_is_what_the_one_needs_that_needs_most() -> None:
    with pytest.raises(InfeasibleError) as raised:
        solve(derived(two_ranks(capacity_bytes=9e9)).problem, None, Limits())
    needs = []
    for rank in (0, 1):
        with pytest.raises(InfeasibleError) as alone:
            solve(on_rank(rank, capacity_bytes=9e9), None, Limits())
        needs.append(alone.value.required)
    assert raised.value.required == max(needs) == 14_103_997_952
    assert solve(derived(two_ranks(capacity_bytes=14_103_997_952.0)).problem, None, Limits())


def test_a_step_takes_as_long_as_its_slowest_rank() -> None:
    """Experts from the second layer on: three stages differ in what they recompute and gather."""
    moe = {"num_experts": 8, "top_k": 2, "ffn": 512, "first_dense": 1}
    sizes = {"hidden": 256, "num_layers": 3, "num_heads": 4, "ffn": 512, "vocab": 512, "moe": moe}
    dims = {"dense_dims": [DATA | {"size": 4}], "expert_dims": [DATA | {"size": 4}]}
    document = stated(sizes, {"pp": 3}, 256, **dims)
    document["derive"]["batch"]["num_micro_batches"] = 4
    problem = derived(document).problem
    solution, _ = solve(problem, None, Limits())
    taken = []
    for rank in range(3):
        document["derive"]["layout"] = {"pp": 3, "rank": rank}
        taken.append(total_s(account(derived(document).problem, placement_of(solution))))
    assert len(set(taken)) > 1
    assert solution.overhead_s == pytest.approx(max(taken), rel=1e-12)


@pytest.mark.parametrize("schedule", ["zbv", "v_half", "v_min"])
def test_a_v_shaped_schedule_has_embedding_and_head_on_the_first_rank(schedule: str) -> None:
    """Four layers in two stages: rank 0 has layers 0 and 3, embedding and head; rank 1 the two in the middle."""
    sizes = {"hidden": 64, "num_layers": 4, "num_heads": 4, "ffn": 128, "vocab": 512}
    moe = {"num_experts": 4, "top_k": 1, "ffn": 32, "first_dense": 1}
    layout = {"pp": 2, "vpp": 2, "schedule": schedule}
    document = stated(sizes | {"moe": moe}, layout, 128, expert_dims=[DATA | {"size": 1}])
    document["derive"]["batch"]["num_micro_batches"] = 4
    problem = derived(document).problem
    assert (problem.rank, [each.rank for each in problem.ranks]) == (0, [1])
    [first, second] = [problem.groups[0].parameters_causes, problem.ranks[0].groups[0].parameters_causes]
    assert first is not None
    assert second is not None
    assert {"embedding", "final norm and head", "feed-forward"} <= set(first)
    assert set(second) == {"attention", "norms", "router"}
    assert "logits" in (problem.activations.kept_causes or {})
    # One layer of experts on rank 0, two on rank 1: 3 * 64 * 32 parameters of each of four.
    assert [problem.groups[1].parameters_bytes, problem.ranks[0].groups[1].parameters_bytes] == [49152, 98304]


@pytest.mark.parametrize("layout", [{"pp": 2}, {"pp": 2, "vpp": 4}, {"pp": 1}])
def test_a_v_shaped_schedule_is_of_two_chunks_on_a_pipeline(layout: dict[str, object]) -> None:
    assert refused(stated("llama-3.1-8b", layout | {"schedule": "zbv"}, 8192)) == ("out_of_range", "derive.layout.vpp")


@pytest.mark.parametrize(
    ("model", "said", "not_said"),
    [
        ("flux", "text encoder and autoencoder", "keys"),
        ("wan2.1-14b", "text encoder, autoencoder, and keys and values of the text", "scores"),
        ({"hidden": 64, "heads": 8, "ffn": 192, "cross_layers": 2, "text_tokens": 0}, "autoencoder", "text"),
        ("deepseek-v3.2", "an indexer's activations", "encoder"),
    ],
)
def test_what_is_left_out_is_said(model: object, said: str, not_said: str) -> None:
    dims = {"expert_dims": [DATA | {"size": 1}]} if model == "deepseek-v3.2" else {}
    left = (derived(stated(model, {}, 128, **dims)).problem.cautions or {})["left_out"]
    assert said in left
    assert not_said not in left


# --- recomputation --------------------------------------------------------------------------------------------------


def test_recomputation_is_priced_by_the_profile_as_a_forward_of_the_layers() -> None:
    """Half the layers on each of two stages take half as long."""
    whole = derived(clustered({"tp": 2})).problem.activations
    half = derived(clustered({"tp": 2, "pp": 2})).problem.activations
    assert whole.recompute_s == pytest.approx(2 * (half.recompute_s or 0), rel=1e-8)
    # 2 FLOPs for each of 7.5e9 / 2 parameters and 4,096 tokens, at 989e12 a second at most.
    assert (whole.recompute_s or 0) > 2 * 7.5e9 / 2 * 4096 / 989e12
    assert whole.recompute_sources is not None
    assert whole.recompute_sources.measured + whole.recompute_sources.interpolated > 0.5


def test_without_a_profile_and_a_stated_time_nothing_is_recomputed_and_the_plan_says_so() -> None:
    document = stated("llama-3.1-8b", {}, 8192)
    del document["derive"]["recompute_s"]
    found = derived(document)
    assert (found.profile, found.profile_sha256) == (None, None)
    assert found.problem.activations.materialised_bytes is None
    assert "recompute_s" in (found.problem.cautions or {})["left_out"]


def test_a_video_model_is_priced_too() -> None:
    """81 frames at 1280 x 720 over four ranks: 6.5e15 FLOPs forward in all, by the sizes of the model."""
    from profiles.geometry import find_geometry

    document = example("video")
    seconds = derived(document).problem.activations.recompute_s or 0
    flops = find_geometry("wan2.1-14b").forward_flops(75600) / 4
    assert flops / 989e12 < seconds < 2.5 * flops / 989e12


def test_what_no_state_explains_is_modelled_by_cause_unless_it_is_stated() -> None:
    """Groups of more than one rank: tp, pp and the data-parallel one, 0.5 GB each; the last stage has the logits."""
    first = derived(clustered({"tp": 2, "pp": 2, "rank": 0}, recompute_s=0.1)).problem
    last = derived(clustered({"tp": 2, "pp": 2, "rank": 1}, recompute_s=0.1)).problem
    assert first.other_causes is not None
    assert last.other_causes is not None
    assert first.other_causes["communicators"] == 1.5e9
    assert first.other_bytes == pytest.approx(sum(first.other_causes.values()))
    # Gradients of the logits in 32 and in 16 bits: 6 bytes of 4,096 tokens and half the vocabulary.
    assert last.workspace_bytes == 6 * 4096 * 128_256 / 2
    assert 0 < first.workspace_bytes < last.workspace_bytes
    # A plan states the sum; asked again, it is the same problem.
    again = clustered({"tp": 2, "pp": 2, "rank": 0}, recompute_s=0.1) | {"other_bytes": first.other_bytes}
    assert derived(again).problem == first
    told = derived(clustered({}, recompute_s=0.1) | {"other_bytes": 2e9, "other_measured": True}).problem
    assert (told.other_bytes, told.other_causes, told.other_measured) == (2e9, None, True)
    assert told.workspace_bytes == 0


# --- what is stored -------------------------------------------------------------------------------------------------


def test_a_model_file_leaves_its_name_and_sizes_and_no_path(tmp_path: Path) -> None:
    sizes = {"hidden": 64, "num_layers": 4, "num_heads": 4, "ffn": 128, "vocab": 512}
    (tmp_path / "mine.json").write_text(json.dumps(sizes))
    found = derived(stated("./mine.json", {}, 128), tmp_path)
    assert found.problem.job is not None
    assert not isinstance(found.problem.job.model, str)
    assert list(found.arrays) == ["mine.json"]
    assert isinstance(found.derive, dict)
    assert found.derive["model"] == "mine.json"
    assert str(tmp_path) not in canonical_bytes(found.derive).decode()
    assert found.problem.activations == derived(stated(sizes, {}, 128)).problem.activations


def test_parameters_are_told_by_part_and_sum_to_the_group() -> None:
    dense = group(derived(stated("llama-3.1-8b", {"tp": 2}, 8192)).problem, "dense")
    assert set(dense.parameters_causes) == {"attention", "embedding", "feed-forward", "final norm and head", "norms"}
    assert sum(dense.parameters_causes.values()) == dense.parameters_bytes


def test_kept_activations_are_told_by_the_parts_that_parameters_have() -> None:
    """16 bits of T tokens of h 4096, f 14336, 32 heads and 8 of keys, 32 layers on one rank: what llama keeps."""
    kept = derived(stated("llama-3.1-8b", {}, 8192)).problem.activations.kept_causes
    tokens = 8192
    assert kept == {
        "norms": 32 * tokens * 4 * 2 * 4096,  # two norms, what each reads and writes
        "attention": 32 * tokens * (2 * 2 * 4096 + 2 * 2 * 1024 + 4 * 32),  # queries, result, keys, values, statistics
        "feed-forward": 32 * tokens * 3 * 2 * 14336,  # gate, up and their product
        "embedding": tokens * 8,
        "logits": tokens * (2 * 2 * 4096 + 4 * 128_256),
    }


def test_chunks_in_flight_are_told_by_part() -> None:
    sizes = {"hidden": 64, "num_layers": 4, "num_heads": 4, "ffn": 128, "vocab": 512}
    document = stated(sizes, {"pp": 2, "vpp": 2, "rank": 1}, 128)
    document["derive"]["batch"]["num_micro_batches"] = 4
    activations = derived(document).problem.activations
    assert activations.kept_causes is not None
    # Warm-up of the last rank: 2 forwards, then one more before the first backward: three chunks of one layer.
    assert activations.kept_causes["feed-forward"] == 3 * 128 * 3 * 2 * 128  # gate, up, product in 16 bits
    assert sum(activations.kept_causes.values()) == pytest.approx(activations.kept_bytes, rel=1e-12)


def test_bytes_that_the_check_counts_otherwise_are_no_derivation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropped without a word, the job would be missing and the check have nothing to compare."""
    told = [("groups.dense.parameters_bytes: stated 1, counted 2", "groups.dense.parameters_bytes")]
    monkeypatch.setattr(cost, "differing", lambda _problem: told)
    with pytest.raises(RefutedError) as raised:
        derived(stated("llama-3.1-8b", {}, 8192))
    assert raised.value.code == "derived_mismatch"


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "code", "field"),
    [
        ({"tp": 3}, "world_size", "tp"),
        ({"tp": 16}, "tp_crosses_node", "tp"),
        ({"ep": 2}, "no_experts", "ep"),
        ({"cp": 64}, "cp_sequence", "cp"),
        ({"pp": 64}, "partition", "pp"),
    ],
)
def test_a_layout_that_breaks_a_rule_is_refused_by_its_name(layout: dict[str, object], code: str, field: str) -> None:
    document = clustered(layout)
    document["derive"]["batch"]["sequence_length"] = 4160
    assert refused(document) == (code, f"derive.layout.{field}")


@pytest.mark.parametrize(
    ("sizes", "layout", "code"),
    [
        ({"num_heads": 6, "head_dim": 8}, {"tp": 4}, "heads"),
        ({"num_heads": 16, "num_kv_heads": 2, "head_dim": 8}, {"tp": 4}, None),
        ({"num_heads": 12, "num_kv_heads": 6, "head_dim": 8}, {"tp": 4}, "heads"),
    ],
)
def test_tensor_ranks_divide_heads_or_hold_copies(
    sizes: dict[str, object], layout: dict[str, object], code: str | None
) -> None:
    model = {"hidden": 64, "num_layers": 2, "ffn": 128, "vocab": 512} | sizes
    document = stated(model, layout, 128)
    if code is None:
        derived(document)
    else:
        assert refused(document) == (code, "derive.layout.tp")


@pytest.mark.parametrize(
    ("changes", "code", "where"),
    [
        ({"dense_dims": None}, "missing_field", "derive.cluster"),
        ({"profile": "h100-sxm"}, "missing_field", "derive.cluster"),
        ({"expert_dims": [DATA | {"size": 1}]}, "no_experts", "derive.expert_dims"),
        ({"dense_dims": []}, "out_of_range", "derive.dense_dims"),
        ({"layout": {"cp": 2}}, "world_size", "derive.dense_dims"),
        ({"layout": {"rank": 1}}, "out_of_range", "derive.layout.rank"),
        ({"layout": {"vpp": 2}}, "out_of_range", "derive.layout.vpp"),
        ({"model": "lama-3.1-8b"}, "unknown_model", "derive.model"),
        ({"training_code": {"selective": ["norms", "norms"]}}, "duplicate_id", "derive.training_code.selective"),
    ],
)
def test_what_the_form_lacks_or_contradicts_is_said_with_its_place(
    changes: dict[str, object], code: str, where: str
) -> None:
    document = stated("llama-3.1-8b", {}, 8192)
    document["derive"] |= changes
    assert refused(document) == (code, where)


def test_experts_need_their_own_dimensions_that_hold_the_same_ranks() -> None:
    one = {"dense_dims": [DATA | {"size": 64}]}
    assert refused(stated("qwen3-30b-a3b", {"ep": 8}, 128, **one)) == ("missing_field", "derive.expert_dims")
    wrong = one | {"expert_dims": [DATA | {"size": 4}]}
    assert refused(stated("qwen3-30b-a3b", {"ep": 8}, 128, **wrong)) == ("expert_world_size", "derive.expert_dims")
    assert (
        refused(stated("qwen3-30b-a3b", {"ep": 3}, 128, **one, expert_dims=[DATA | {"size": 4}]))[0] == "expert_split"
    )


def test_a_cluster_that_does_not_say_what_nodes_cost_is_asked_for_it() -> None:
    document = clustered({})
    del document["derive"]["cluster"]["inter_node"]
    assert refused(document) == ("missing_field", "derive.cluster.inter_node")


def test_more_bytes_than_a_float_counts_are_refused() -> None:
    batch = {"sequence_length": 1 << 24, "micro_batch": 65536}
    document = stated("llama-3.1-8b", {}, 128)
    document["derive"]["batch"] = batch
    assert refused(document) == ("too_large", "derive.batch")


def test_capacity_is_needed_where_nothing_says_it() -> None:
    document = stated("llama-3.1-8b", {}, 8192)
    del document["capacity_bytes"]
    assert refused(document) == ("missing_field", "capacity_bytes")
