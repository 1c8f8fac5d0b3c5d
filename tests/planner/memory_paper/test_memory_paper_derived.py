"""The derived form of the memory paper: bytes of a rank, its data-parallel dimensions, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.documents import canonical_bytes
from planner.errors import BadInputError, RefutedError
from planner.paper import Derivation, DeriveOptions
from planner.papers.memory import cost
from planner.papers.memory.cost import derive
from planner.papers.memory.derived import MemoryDerivedProblem
from planner.papers.memory.engines import solve
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
    problem = derived(example("gpt-175b")).problem
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
    """Wan2.1-14B, a token and layer: 16h of norms and modulation, 8h + 4a of attention, 4f of the feed-forward part."""
    given = stated("wan2.1-14b", {"cp": 4}, 75600, dense_dims=[DATA | {"size": 4}])
    activations = derived(given).problem.activations
    each = 16 * 5120 + 8 * 5120 + 4 * 40 + 4 * 13824
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
    assert last.other_causes["workspace"] == 6 * 4096 * 128_256 / 2
    assert first.other_causes["workspace"] < last.other_causes["workspace"]
    # A plan states the sum; asked again, it is the same problem.
    again = clustered({"tp": 2, "pp": 2, "rank": 0}, recompute_s=0.1) | {"other_bytes": first.other_bytes}
    assert derived(again).problem == first
    told = derived(clustered({}, recompute_s=0.1) | {"other_bytes": 2e9, "other_measured": True}).problem
    assert (told.other_bytes, told.other_causes, told.other_measured) == (2e9, None, True)


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
