"""The derived form of HierMoE: levels of a cluster, what its collectives and experts cost, and what is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.beside import Beside
from planner.documents import canonical_bytes
from planner.envelope import dump_model
from planner.errors import BadInputError
from planner.paper import Derivation, DeriveOptions
from planner.papers.hiermoe.attach import attach
from planner.papers.hiermoe.cautions import warnings
from planner.papers.hiermoe.cost import derive
from planner.papers.hiermoe.costs.levels import collectives
from planner.papers.hiermoe.derived import HiermoeDerivedProblem
from planner.papers.hiermoe.engines import solve
from planner.papers.hiermoe.instance import Tokens, compile_case
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.validation import validate
from profiles.geometry import load_model
from profiles.library import load, names
from solvers.report import Limits

EXAMPLES = Path(__file__).parents[3] / "planner" / "papers" / "hiermoe" / "examples"
LINK = {"bandwidth_bytes_per_s": 50e9, "latency_s": 5e-6}
UNIFORM = [{"layer_id": 0, "routing": {"kind": "uniform_expected", "tokens_per_rank": 64}}]


def document(**changes: Any) -> dict[str, Any]:
    """Qwen3-235B-A22B over two nodes of 8 H200; changes are of the derive object, None takes a field away."""
    derive: dict[str, Any] = {
        "profile": "h200-sxm",
        "model": "qwen3-235b-a22b",
        "cluster": {"num_ranks": 16, "gpus_per_node": 8, "inter_node": LINK},
    }
    derive = {name: value for name, value in (derive | changes).items() if value is not None}
    return {"paper": "hiermoe", "derive": derive, "layers": copy.deepcopy(UNIFORM)}


def derived(given: dict[str, Any], **options: Any) -> Derivation[HiermoeProblem]:
    return derive(validate(HiermoeDerivedProblem, given), DeriveOptions(**options))


def refused(given: dict[str, Any], **options: Any) -> BadInputError:
    with pytest.raises(BadInputError) as raised:
        derived(given, **options)
    return raised.value


def tiers(**changes: Any) -> dict[str, Any]:
    """Two racks of two nodes of 4 GPUs, pairs inside a node, every number stated."""
    stated = {
        "pair": {"gpus": 2, "bandwidth_bytes_per_s": 100e9, "latency_s": 1e-6},
        "node": {"gpus": 4, "bandwidth_bytes_per_s": 40e9, "latency_s": 2e-6},
        "rack": {"gpus": 8, "bandwidth_bytes_per_s": 20e9, "latency_s": 4e-6},
        "fabric": {"bandwidth_bytes_per_s": 10e9, "latency_s": 8e-6},
    }
    return {"name": "boxes", "nodes": 4, "tiers": stated | changes}


# --- levels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cluster", "levels", "redundant_slots"),
    [
        ({"num_ranks": 8, "gpus_per_node": 8}, (1,), 0),
        ({"num_ranks": 16, "gpus_per_node": 8, "inter_node": LINK}, (1, 2), 0),
        (tiers(), (1, 2, 4, 8), 0),
        # a rack of 72 is the whole; two slots a GPU hold 128 experts and 16 copies
        ({"preset": "gb200-nvl72", "tiers": {"rack": {"latency_s": 3e-6}}}, (1, 18), 16),
    ],
)
def test_levels_are_the_tiers_that_cut_the_cluster(
    cluster: dict[str, Any], levels: tuple[int, ...], redundant_slots: int
) -> None:
    made = derived(document(cluster=cluster) | {"redundant_slots": redundant_slots})
    assert made.problem.topology.level_groups == levels
    assert made.derive["resolved"]["level_groups"] == list(levels)


def test_stated_levels_stand_in_for_those_of_the_cluster() -> None:
    # any four ranks of an NVSwitch node are alike, so half a node is priced by rows of two and of four ranks
    made = derived(document(level_groups=[1, 2, 4]))
    links = made.problem.costs.links
    assert len(links.inter) == len(links.intra) == 2
    assert links.inter[1].sources is not None
    assert links.inter[1].sources.measured + links.inter[1].sources.interpolated == 1.0
    assert derived(document(level_groups=[1])).problem.costs.links.inter == ()
    error = refused(document(level_groups=[1, 3]))
    assert (error.code, error.where) == ("levels_not_nested", "derive.level_groups")


def test_ranks_that_do_not_fill_a_tier_need_stated_levels() -> None:
    error = refused(document(cluster=tiers() | {"nodes": 3}))
    assert (error.code, error.where) == ("levels_not_nested", "derive.level_groups")
    # 128 experts over 12 ranks leave 8: four redundant slots fill them
    given = document(cluster=tiers() | {"nodes": 3}, level_groups=[1, 3]) | {"redundant_slots": 4}
    assert derived(given).problem.topology.level_groups == (1, 3)


def test_who_takes_part_in_a_hop_follows_from_the_groups() -> None:
    # G = 8, U = [1, 2, 4]: Inter-1 joins equal places of the halves, Inter-2 those of the quarters of a half
    found = {collective.name: collective.ranks for collective in collectives((1, 2, 4), 8)}
    assert found == {
        "flat": tuple(range(8)),
        "inter-1": (0, 4),
        "intra-1": (0, 1, 2, 3),
        "inter-2": (0, 2),
        "intra-2": (0, 1),
    }


# --- links --------------------------------------------------------------------------------------------------------


def test_inside_a_node_a_link_is_the_line_through_the_rows_of_so_many_ranks() -> None:
    made = derived(document(cluster={"num_ranks": 8, "gpus_per_node": 8}))
    flat = made.problem.costs.links.flat
    table = next(t for t in load("h200-sxm").document.tables if t.family == "all_to_all").cost_table()
    rows = (table.columns["ranks"] == 8) & (table.columns["message_bytes"] >= 65536)
    sizes, seconds = table.columns["message_bytes"][rows], table.seconds[rows]
    off = np.abs((flat.latency_s + sizes / flat.bandwidth_bytes_per_s) / seconds - 1)
    fit = made.derive["resolved"]["fits"]["flat"]
    assert off.mean() == pytest.approx(fit["mape"], rel=1e-3)
    assert off.max() == pytest.approx(fit["worst"], rel=1e-3)

    # least squares: neither coefficient can move by a percent and bring the line nearer
    def loss(alpha: float, beta: float) -> float:
        return float((((alpha + beta * sizes) / seconds - 1) ** 2).sum())

    alpha, beta = flat.latency_s, 1 / flat.bandwidth_bytes_per_s
    best = loss(alpha, beta)
    assert all(loss(alpha * a, beta * b) > best for a, b in ((1.01, 1), (0.99, 1), (1, 1.01), (1, 0.99)))


def test_between_nodes_a_link_is_latency_and_bytes_of_the_peers_outside() -> None:
    # 16 ranks in two nodes: of 15 peers 8 are outside. Flat: 8 steps of 5 us, 8/16 of the buffer at 50 GB/s.
    # Inter-1, two ranks: one step, half of the buffer.
    links = derived(document()).problem.costs.links
    assert links.flat.latency_s == pytest.approx(40e-6)
    assert links.flat.bandwidth_bytes_per_s == pytest.approx(50e9 * 16 / 8)
    assert links.inter[0].latency_s == pytest.approx(5e-6)
    assert links.inter[0].bandwidth_bytes_per_s == pytest.approx(50e9 * 2)
    assert links.flat.sources is not None
    assert links.flat.sources.stated == 1.0


def test_tiers_price_what_no_row_is_of() -> None:
    # 16 ranks: racks of 8, nodes of 4, pairs. Buffer S over n ranks is S/n to each peer.
    links = derived(document(cluster=tiers())).problem.costs.links
    # flat: 4 peers in the rack's other node, 8 in the other rack: 4 x 4 us + 8 x 8 us; max(4/16/20, 8/16/10) s/GB
    assert links.flat.latency_s == pytest.approx(80e-6)
    assert links.flat.bandwidth_bytes_per_s == pytest.approx(20e9)
    # Inter-1 over the fabric, Inter-2 over the rack, Inter-3 between pairs over the node: one peer, half of the buffer
    assert [link.latency_s for link in links.inter] == pytest.approx([8e-6, 4e-6, 2e-6])
    assert [link.bandwidth_bytes_per_s for link in links.inter] == pytest.approx([20e9, 40e9, 80e9])
    # Intra-1 is a rack of 8: 4 peers outside the node; Intra-2 a node and Intra-3 a pair: rows of 4 and of 2 ranks
    assert links.intra[0].latency_s == pytest.approx(16e-6)
    assert links.intra[0].bandwidth_bytes_per_s == pytest.approx(20e9 * 8 / 4)
    # (one of the fourteen rows of 2 ranks contradicts its neighbours, and an estimate stands in for it)
    sources = [link.sources for link in links.intra[1:]]
    assert [source.measured for source in sources if source] == pytest.approx([1.0, 13 / 14], abs=1e-6)


def test_gpus_behind_one_port_share_it() -> None:
    shared = {"bandwidth_bytes_per_s": 10e9, "latency_s": 8e-6, "gpus_per_port": 2}
    links = derived(document(cluster=tiers(fabric=shared))).problem.costs.links
    assert links.inter[0].bandwidth_bytes_per_s == pytest.approx(2 * 5e9)


@pytest.mark.parametrize(
    ("cluster", "where", "part"),
    [
        ({"num_ranks": 16, "gpus_per_node": 8}, "derive.cluster.inter_node", "flat leaves the node"),
        (tiers(node={"gpus": 4, "bandwidth_bytes_per_s": 4e10}), "derive.cluster.tiers.node.latency_s", "inter-3"),
        (tiers(rack={"gpus": 8, "latency_s": 4e-6}), "derive.cluster.tiers.rack.bandwidth_bytes_per_s", "flat"),
        ("dgx-h200", None, ""),
        ({"preset": "dgx-h200", "nodes": 2}, "derive.cluster.tiers.fabric.latency_s", "tier fabric"),
    ],
)  # fmt: skip
def test_a_level_that_nobody_measured_or_stated_is_named(cluster: Any, where: str | None, part: str) -> None:
    if where is None:
        derived(document(cluster=cluster))
        return
    error = refused(document(cluster=cluster))
    assert (error.code, error.where) == ("missing_field", where), error.message
    assert part in error.message


def test_more_ranks_in_a_node_than_were_measured_are_refused_and_named() -> None:
    for extrapolate in ("refuse", "roofline"):
        given = document(cluster={"num_ranks": 16, "gpus_per_node": 16}, extrapolate=extrapolate)
        error = refused(given)
        assert (error.code, error.where) == ("outside_measured_range", "derive.profile")
        assert "flat, an all-to-all of 16 ranks in a node" in error.message


def test_ranks_between_measured_ones_are_interpolated() -> None:
    made = derived(document(cluster={"num_ranks": 6, "gpus_per_node": 6}) | {"redundant_slots": 4})
    sources = made.problem.costs.links.flat.sources
    assert sources is not None
    assert sources.interpolated == 1.0


# --- experts and tokens -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("bf16", 8192), ("fp8", 4096 + 4096 // 128 * 4), ("int8", 4096 + 4), ("nvfp4", 4096 * 0.5625)],
)
def test_a_token_is_its_numbers_and_their_scales(dtype: str, expected: float) -> None:
    assert load_model("qwen3-235b-a22b").hidden == 4096
    assert derived(document(dispatch_dtype=dtype)).problem.costs.token_bytes == expected


def test_an_expert_is_three_products() -> None:
    problem = derived(document()).problem
    assert problem.costs.expert_bytes == 3 * 4096 * 1536 * 2
    assert (problem.num_experts, problem.top_k) == (128, 8)


def test_an_assignment_costs_the_slope_of_the_rows_with_busy_experts() -> None:
    # rows of all 128 experts on one H200 at 2,048 to 16,384 tokens: 1486, 2237, 2348 and 9027 us. From the last two
    # 6.8e-8 s an assignment; 37.7 MFLOP each at the 989 TFLOP/s of the device are 3.8e-8
    costs = derived(document()).problem.costs
    assert costs.compute_s_per_assignment == pytest.approx(6.8e-8, rel=0.1)
    assert costs.compute_s_per_assignment > 6 * 4096 * 1536 / 989e12
    assert costs.compute_sources is not None
    assert costs.compute_sources.measured == 1.0


def test_experts_priced_slower_in_a_narrower_dtype_are_a_warning_of_the_plan() -> None:
    # Rows of Qwen3-235B on H200: 16,384 tokens take 17.28 ms in fp8 and 9.03 ms in bf16.
    given = document(dtype="fp8")
    made = derived(given).problem
    text = (made.costs.compute_cautions or {})["narrow_dtype_slower"]
    assert "times slower in fp8 than in bf16" in text
    assert "vllm_modeloptfp8moe_flashinfer_cutlass" in text
    assert "derive.dtype=bf16 (2 times their bytes)" in text
    solution, _ = solve(made, None, Limits())
    first = warnings(made, solution)[0]
    assert (first.code, first.message) == ("narrow_dtype_slower", text)
    # Kept with the explicit costs, and not spelled out where there is nothing to say.
    assert validate(HiermoeProblem, dump_model(made)).costs == made.costs
    assert derived(document()).problem.costs.compute_cautions is None
    assert derived(given | {"objective": {"compute_multiplier": 0}}).problem.costs.compute_cautions is None


def test_experts_without_rows_are_refused_or_modelled_and_not_asked_for_where_they_count_nothing() -> None:
    deepseek = document(model="deepseek-v3", dtype="fp8")
    assert refused(deepseek).code == "outside_measured_range"
    made = derived(deepseek, extrapolate="roofline").problem.costs
    assert made.compute_sources is not None
    assert made.compute_sources.modelled == 1.0
    assert made.compute_s_per_assignment > 6 * 7168 * 2048 / 1979e12
    free = derived(deepseek | {"objective": {"compute_multiplier": 0}})
    assert free.problem.costs.compute_s_per_assignment == 0.0
    assert "experts" not in free.derive["resolved"]["fits"]


@pytest.mark.parametrize("profile", sorted(names()))
@pytest.mark.parametrize("model", ["deepseek-v3", "gpt-oss-120b", "qwen3-30b-a3b"])
def test_models_are_priced_on_every_built_in_profile(model: str, profile: str) -> None:
    costs = derived(document(model=model, profile=profile), extrapolate="roofline").problem.costs
    assert costs.compute_s_per_assignment > 0
    assert costs.links.intra[0].bandwidth_bytes_per_s > 1e9


@pytest.mark.parametrize(
    ("changes", "code", "where"),
    [
        ({"model": "llama-3.1-8b"}, "out_of_range", "derive.model"),
        ({"model": "qwen3-235b-a22c"}, "unknown_model", "derive.model"),
        ({"profile": "h201"}, "unknown_profile", "derive.profile"),
        ({"profile": None}, "missing_field", "derive.profile"),
        ({"dtype": "w4a4"}, "out_of_range", "derive.dtype"),
        ({"cluster": {"num_ranks": 1, "gpus_per_node": 1}}, "out_of_range", "derive.cluster"),
        ({"cluster": {"num_ranks": 12, "gpus_per_node": 6, "inter_node": LINK}}, "experts_not_divisible",
         "redundant_slots"),
        ({"phase": "decode"}, "unknown_field", "derive.phase"),
    ],
)  # fmt: skip
def test_what_cannot_be_priced_is_refused_by_name_and_place(changes: dict[str, Any], code: str, where: str) -> None:
    error = refused(document(**changes))
    assert (error.code, error.where) == (code, where), error.message


# --- the account --------------------------------------------------------------------------------------------------


def test_the_plan_will_say_what_the_costs_were_made_from() -> None:
    made = derived(document())
    resolved = made.derive["resolved"]
    assert made.profile == "h200-sxm"
    assert resolved["model"] == {"name": "qwen3-235b-a22b", "hidden": 4096, "expert_layers": 94}
    assert resolved["fits"]["inter-1"]["from"] == "cluster"
    assert resolved["fits"]["intra-1"]["from"] == "profile"
    profile = load("h200-sxm")
    stored = [profile.cost_error("all_to_all"), profile.cost_error("moe_gemm")]
    assert made.cost_error == {"median": max(e[0] for e in stored if e), "p90": max(e[1] for e in stored if e)}
    assert made.relaxable["topology.expert_memory_bytes_per_gpu"] == ("derive.expert_memory_bytes_per_gpu", 0.0)


def test_a_model_file_is_named_by_digest(tmp_path: Path) -> None:
    fields = {"hidden_size": 4096, "moe_intermediate_size": 1536, "num_experts": 128, "num_experts_per_tok": 8}
    config = {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "num_hidden_layers": 4,
        "num_attention_heads": 64,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "intermediate_size": 12288,
        "vocab_size": 151936,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "norm_topk_prob": True,
        "torch_dtype": "bfloat16",
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        **fields,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    made = derived(document(model="./config.json"), base_folder=str(tmp_path))
    assert list(made.arrays) == ["config.json"]
    assert made.derive["model"] == "config.json"
    assert made.problem.costs == derived(document()).problem.costs


def test_files_of_a_derived_problem_are_read_after_its_costs(tmp_path: Path) -> None:
    ids = np.arange(8) + 8 * np.arange(16)[:, None]
    np.save(tmp_path / "tokens.npy", ids)
    given = document() | {"layers": [{"layer_id": 5, "routing": {"kind": "npz", "path": "tokens.npy"}}]}
    made = attach(derived(given).problem, Beside(str(tmp_path)))
    assert list(made.files) == ["tokens.npy"]
    assert made.problem.costs == derived(document()).problem.costs
    routed = compile_case(made.problem).layers[0].routed
    assert isinstance(routed, Tokens)
    assert routed.source.tolist() == list(range(16))


def test_what_the_derived_form_says_beside_its_costs_is_kept() -> None:
    given = document(expert_memory_bytes_per_gpu=10**9) | {
        "redundant_slots": 16,
        "objective": {"a2a_multiplier": 4.0, "compute_multiplier": 3.0},
        "search": {"gamma": 5.0},
        "forbid_same_rank_replicas": False,
        "notes": {"kept": True},
    }
    problem = derived(given).problem
    assert problem.redundant_slots == 16
    assert problem.objective.a2a_multiplier == 4.0
    assert problem.search.gamma == 5.0
    assert not problem.forbid_same_rank_replicas
    assert problem.notes == {"kept": True}
    assert problem.topology.expert_memory_bytes_per_gpu == 10**9


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_every_example_is_a_problem_and_derives_to_the_same_bytes(path: Path) -> None:
    def made() -> HiermoeProblem:
        given = json.loads(path.read_text())
        return (derived(given).problem if "derive" in given else validate(HiermoeProblem, given)).sorted()

    first = canonical_bytes(dump_model(made()))
    assert canonical_bytes(dump_model(made())) == first
    explicit = validate(HiermoeProblem, json.loads(first))
    assert canonical_bytes(dump_model(explicit.sorted())) == first
    assert compile_case(explicit).layers
