"""The derived form of Layout: rows for what the rules leave, priced and weighed as the shared models say."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.derivation.training.calibration import Calibration, calibrated
from planner.derivation.training.cuts import one_cut
from planner.derivation.training.device import Device
from planner.derivation.training.layer import layer_times
from planner.errors import BadInputError, InfeasibleError, Relaxation
from planner.paper import Derivation, DeriveOptions
from planner.papers.layout import table
from planner.papers.layout.check import check
from planner.papers.layout.cost import derive
from planner.papers.layout.derived import LayoutDerivedProblem
from planner.papers.layout.engines import solve
from planner.papers.layout.layouts import Layout
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.rules import broken_rule
from planner.papers.layout.table import Row
from planner.plan import _in_terms_of_the_file
from planner.sensitivity.source import source_of
from planner.validation import validate
from profiles import Cluster, load
from profiles.cluster import fit_link
from profiles.geometry import load_model
from profiles.importers import run
from solvers.report import Limits

LOG = Path(__file__).parents[2] / "data" / "nccl_logs" / "aws_line268.log"

EXAMPLES = Path(__file__).parents[3] / "planner" / "papers" / "layout" / "examples"
H100S = {"preset": "dgx-h100", "nodes": 2, "tiers": {"fabric": {"latency_s": 1e-5}}}
NETWORK = {"bandwidth_bytes_per_s": 50e9, "latency_s": 1e-5}
BATCH = {"global_batch_size": 48, "sequence_length": 8192}


def document(**changes: Any) -> dict[str, Any]:
    """Llama-3.1-8B on 16 H100; ``derive`` fields with it, others above."""
    given = {"model": "llama-3.1-8b", "cluster": H100S, "extrapolate": "roofline", **changes.pop("derive", {})}
    return {
        "paper": "layout",
        "batch": {"global_batch_size": 16, "sequence_length": 8192},
        "derive": {name: value for name, value in given.items() if value is not None},
        **changes,
    }


def derived(given: dict[str, Any], folder: Path = EXAMPLES) -> Derivation[LayoutProblem]:
    return derive(validate(LayoutDerivedProblem, given), DeriveOptions(base_folder=str(folder)))


def problem(**changes: Any) -> LayoutProblem:
    return derived(document(**changes)).problem


def refused(**changes: Any) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        problem(**changes)
    return caught.value


def row(
    found: LayoutProblem, kind: str, tp: int = 1, cp: int = 1, sp: bool = False, b: int = 1, ep: int = 0, etp: int = 0
) -> Row:
    return found.costs.by_key[kind, tp, cp, sp, b, ep, etp]


# --- rows ---------------------------------------------------------------------------------------------------------


def test_every_layout_that_keeps_the_rules_but_that_of_rows_has_its_rows() -> None:
    found = problem(
        launcher_rules="megatron",
        search={
            "tp": [1, 2, 8, 16],
            "cp": [1, 3, 4],
            "pp": [1, 2],
            "micro_batch": [1, 2, 32],
            "sequence_parallel": [False, True],
        },
    )
    keys = {each.key for each in found.costs.rows}
    asked, wanted = 0, set()
    search = found.search
    for tp in search.tp:
        for cp in search.cp:
            for pp in search.pp:
                for b in search.micro_batch:
                    for sp in search.sequence_parallel:
                        layout = Layout(tp, cp, pp, 1, 1, 1, 1, "none", b, sp)
                        asked += 1
                        if broken_rule(found, layout) is None:
                            wanted |= {layout.row_key(kind) for kind in ("dense", "embedding", "head")}
                        assert broken_rule(found, layout) != "row_not_in_table", layout
    assert asked == 4 * 3 * 2 * 3 * 2
    assert keys == wanted


def test_seconds_of_a_row_are_those_of_the_shared_model_to_nine_digits() -> None:
    found = row(problem(), "dense", tp=4, cp=2, sp=True, b=2)
    cluster = load_cluster_of(2)
    device = Device(load("h100-sxm"), cluster, extrapolate="roofline")
    [(kind, _)] = load_model("llama-3.1-8b").kinds()
    cut = one_cut(8192, 2, tp=4, cp=2, sequence_parallel=True)
    times = calibrated(layer_times(device, kind, cut, ("norms", "ffn_activation", "latent_up")), Calibration())
    for name in ("forward_s", "backward_s", "comm_forward_s", "comm_backward_s", "selective_s"):
        assert getattr(found, name) == pytest.approx(float(getattr(times, name)[0]), rel=1e-8), name


def load_cluster_of(nodes: int) -> Cluster:
    from profiles.clusters.library import cluster_of

    return cluster_of({**H100S, "nodes": nodes}, "cluster")


def test_bytes_and_parameters_of_a_row_are_those_of_a_rank() -> None:
    # Llama-3.1-8B over 4 ranks with sequence parallelism: h 4096, a 32, k 8, d 128, f 14336, vocabulary 128,256.
    found = problem()
    layer = row(found, "dense", tp=4, sp=True)
    split = 2 * 4096 * 32 * 128 + 2 * 4096 * 8 * 128 + 3 * 4096 * 14336
    assert layer.params == split / 4 + 2 * 4096
    assert layer.expert_params == 0
    tokens = 8192
    attention = 4 * 4096 / 4 + (4 * 32 * 128 + 4 * 8 * 128 + 4 * 32) / 4
    ffn = 4 * 4096 / 4 + 6 * 14336 / 4
    assert layer.kept_bytes == tokens * (attention + ffn)
    assert layer.selective_bytes == layer.kept_bytes - tokens * (2 * 2 * 4096 / 4 + 2 * 14336 / 4)
    assert layer.input_bytes == tokens * 2 * 4096 / 4
    head, embedding = row(found, "head", tp=4, sp=True), row(found, "embedding", tp=4, sp=True)
    assert (embedding.params, head.params) == (128_256 * 4096 / 4, 128_256 * 4096 / 4 + 4096)
    assert embedding.kept_bytes == 8 * tokens
    assert head.kept_bytes == tokens * (4 * 4096 / 4 + 4 * 128_256 / 4)
    assert head.workspace_bytes == tokens * 6 * 128_256 / 4  # the logits' gradient in fp32, and as the product reads it


def test_experts_have_rows_of_their_own_degrees_and_dense_layers_one_for_all() -> None:
    given = {
        "batch": {"global_batch_size": 256, "sequence_length": 4096},
        "search": {"tp": [1], "ep": [1, 8, 16], "etp": [1, 2], "pp": [1], "micro_batch": [1]},
    }
    found = problem(**given, derive={"model": "deepseek-v2"})
    assert {(r.ep, r.etp) for r in found.costs.rows if r.kind == "moe"} == {(1, 1), (1, 2), (8, 1), (8, 2), (16, 1)}
    assert len([r for r in found.costs.rows if r.kind == "dense"]) == len(found.search.cp)
    # 160 experts of 3 x 5120 x 1536 over 16 ranks
    assert row(found, "moe", ep=16, etp=1).expert_params == 10 * 3 * 5120 * 1536
    assert found.model.num_experts == 160
    assert [(run.kind, run.count) for run in found.model.layers] == [("dense", 1), ("moe", 59)]


def test_what_is_sent_between_stages_and_what_an_update_moves_follow_from_sizes() -> None:
    costs = problem(derive={"bytes_per_param": {"param": 2, "grad": 4, "optimizer": 12}}).costs
    assert costs.boundary_bytes_per_sample == 8192 * 4096 * 2
    assert (costs.comm_bytes.param, costs.comm_bytes.grad) == (2, 4)
    # gradient read, 12 bytes of states read and written, parameter written, at 3.35e12 bytes a second
    assert costs.optimizer_s_per_param == pytest.approx((4 + 24 + 2) / 3.35e12)


def test_links_are_the_profiles_in_a_node_and_the_clusters_between_nodes() -> None:
    costs = problem().costs
    assert costs.collectives.inter.alpha_s == 1e-5
    assert costs.collectives.inter.beta_s_per_byte == pytest.approx(1 / 50e9)
    profile = load("h100-sxm")
    message = 2.0**28
    measured = float(profile.collective("all_gather", message, 8).seconds)
    intra = costs.collectives.intra
    assert 7 * intra.alpha_s + 7 / 8 * message * intra.beta_s_per_byte == pytest.approx(measured, rel=0.15)
    assert costs.p2p == costs.collectives.hops
    alone = problem(derive={"cluster": {"num_ranks": 8, "gpus_per_node": 8}, "profile": "h100-sxm"}).costs
    assert alone.collectives.hops.inter == alone.collectives.intra


def test_a_stated_link_is_a_port_and_a_log_s_is_shared_out_among_the_ranks_of_its_nodes() -> None:
    assert problem().costs.collectives.inter.beta_of == "gpu"
    # 16 ranks on 2 nodes: their ring went through eight ports of each.
    cluster = {"num_ranks": 16, "gpus_per_node": 8, "inter_node": {"log": str(LOG)}}
    logged = problem(derive={"cluster": cluster, "profile": "h100-sxm"}).costs
    ring = fit_link(run("nccl-tests", [str(LOG)])[0])
    assert ring.ranks_per_node == 8
    assert logged.collectives.inter.beta_of == "gpu"
    assert logged.collectives.inter.beta_s_per_byte == pytest.approx(8 / ring.bandwidth_bytes_per_s)
    assert logged.p2p.inter.beta_s_per_byte == logged.collectives.inter.beta_s_per_byte


def test_a_calibration_reaches_rows_links_and_the_step() -> None:
    plain = problem().costs
    changed = problem(derive={"calibration": {"gemm": 2, "communication": 3, "elementwise": 4, "fixed_s": 0.5}}).costs
    assert changed.collectives.inter.beta_s_per_byte == pytest.approx(3 * plain.collectives.inter.beta_s_per_byte)
    assert changed.optimizer_s_per_param == pytest.approx(4 * plain.optimizer_s_per_param)
    assert changed.fixed_s == 0.5
    one, other = plain.by_key["dense", 8, 1, True, 1, 0, 0], changed.by_key["dense", 8, 1, True, 1, 0, 0]
    assert other.comm_forward_s == pytest.approx(3 * one.comm_forward_s, rel=1e-8)
    assert one.forward_s < other.forward_s < 4 * one.forward_s


# --- lists --------------------------------------------------------------------------------------------------------


def test_lists_left_out_are_what_model_cluster_and_launcher_admit() -> None:
    search = problem(launcher_rules="megatron").search
    assert search.tp == (1, 2, 4, 8)
    assert search.cp == (1, 2, 4)  # 2,048 tokens at least
    assert search.pp == (1, 2, 4, 8, 16)  # what divides 16 ranks
    assert search.vpp == (1, 2, 4, 8)  # 32 layers over 2, 4, 8 or 16 stages
    assert search.ep == search.etp == (1,)
    assert search.zero_stage == (0, 1, 3)
    assert search.micro_batch == (1, 2, 4, 8)
    assert problem(launcher_rules="torchtitan").search.zero_stage == (2, 3)
    deepspeed = problem(launcher_rules="deepspeed").search
    assert (deepspeed.cp, deepspeed.vpp) == ((1,), (1,))


def test_stated_lists_stay_as_they_are() -> None:
    search = problem(search={"tp": [2], "zero_stage": [1], "keep": 3}).search
    assert (search.tp, search.zero_stage, search.keep) == ((2,), (1,), 3)


# --- refused ------------------------------------------------------------------------------------------------------


def test_combinations_beyond_the_rows_are_dropped_and_said() -> None:
    # The head's 128,256 features lie beyond the 65,536 of the rows unless two ranks share them.
    found = derived(document(derive={"extrapolate": "refuse"}))
    assert all(each.tp > 1 for each in found.problem.costs.rows if each.kind == "head")
    assert any(each.tp == 1 for each in found.problem.costs.rows if each.kind == "dense")
    assert "128256" in (found.problem.cautions or {})["combinations_unpriced"]
    solution, _ = solve(found.problem, None, Limits())
    assert solution.tp > 1
    assert (solution.excluded or {})["row_not_in_table"] > 0
    assert check(found.problem, solution) == []


def test_where_no_combination_has_a_price_the_missing_rows_are_named() -> None:
    error = refused(search={"tp": [1]}, derive={"extrapolate": "refuse"})
    assert error.code == "outside_measured_range"
    assert error.where == "derive.extrapolate"
    assert "n 128256" in str(error)
    assert "head" in str(error)


def test_a_dtype_without_rows_is_a_fault_of_the_dtype() -> None:
    error = refused(derive={"dtype": "nvfp4"})
    assert (error.code, error.where) == ("outside_measured_range", "derive.dtype")


def test_experts_without_rows_are_a_fault_of_their_dtype_or_of_how_tokens_were_routed() -> None:
    few = {"tp": [1], "cp": [1], "pp": [1], "ep": [8], "etp": [1], "micro_batch": [1], "sequence_parallel": [False]}
    error = refused(search=few, derive={"model": "qwen3-30b-a3b", "expert_dtype": "nvfp4"})
    assert (error.code, error.where) == ("outside_measured_range", "derive.expert_dtype")
    error = refused(search=few, derive={"model": "qwen3-30b-a3b", "workload": "crowded"})
    assert (error.code, error.where) == ("outside_measured_range", "derive.workload")
    assert "power_law_1.2" in str(error)


def test_sparse_attention_is_a_fault_of_the_model() -> None:
    error = refused(derive={"model": "deepseek-v3.2"})
    assert error.where == "derive.model"
    assert "sparse attention" in str(error)


def test_faults_of_the_explicit_form_are_told_where_the_derived_form_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    error = refused(derive={"memory": {"capacity_bytes": 1e9, "reserve_bytes": 2e9}})
    assert (error.code, error.where) == ("out_of_range", "derive.memory.capacity_bytes")
    error = refused(search={"sequence_parallel": [True, False]})
    assert (error.code, error.where) == ("out_of_range", "search.sequence_parallel")
    monkeypatch.setattr(table, "MAX_ROWS", 3)
    error = refused()
    assert (error.code, error.where) == ("too_large", "search")


@pytest.mark.parametrize(
    ("cluster", "field", "value"),
    [
        ({**H100S, "nodes": 5}, "derive.cluster.nodes", 3),
        ({"num_ranks": 40, "gpus_per_node": 8, "inter_node": NETWORK}, "derive.cluster.num_ranks", 24),
    ],
)
def test_fewer_gpus_are_told_in_whole_nodes(cluster: dict[str, Any], field: str, value: int) -> None:
    """12 GPUs a replica: of 40 and a batch of 18, 36 would do with three replicas, and 24 fill their nodes."""
    few = {"tp": [4], "cp": [1], "pp": [3], "vpp": [1], "zero_stage": [1], "partitions": ["ends"]}
    batch = {"global_batch_size": 18, "sequence_length": 8192}
    found = derived(document(search=few, batch=batch, derive={"cluster": cluster, "profile": "h100-sxm"}))
    with pytest.raises(InfeasibleError) as raised:
        solve(found.problem, None, Limits())
    assert raised.value.relaxation == Relaxation("cluster.num_gpus", 36, proven=True, smaller=True)
    posed = SimpleNamespace(relaxable=found.relaxable, multiples=found.multiples)
    told = _in_terms_of_the_file(raised.value, posed)  # type: ignore[arg-type]
    assert told.where == field
    assert told.relaxation == Relaxation(field, value, proven=False)
    assert told.relaxation.enough


def test_nodes_without_a_link_are_refused() -> None:
    error = refused(derive={"cluster": {"num_ranks": 16, "gpus_per_node": 8}, "profile": "h100-sxm"})
    assert (error.code, error.where) == ("missing_field", "derive.cluster.inter_node")
    error = refused(derive={"cluster": {"preset": "dgx-h100", "nodes": 2}})
    assert error.code == "missing_field"
    assert "latency_s" in str(error)


def test_layers_with_unlike_feed_forward_parts_are_refused(tmp_path: Path) -> None:
    from planner.papers.layout.costs.setting import _kinds
    from profiles.geometry import LayerRun, ModelGeometry
    from profiles.geometry.feed_forward import Dense
    from profiles.geometry.model import LayerKind

    [(kind, _)] = load_model("llama-3.1-8b").kinds()
    other = LayerKind(kind.hidden, kind.attention, Dense(1024))
    with pytest.raises(BadInputError, match="different feed-forward"):
        _kinds(ModelGeometry("m", 4096, 1000, (LayerRun(kind, 1), LayerRun(other, 1))))


def test_a_calibration_and_runs_to_fit_one_are_refused_together() -> None:
    error = refused(derive={"calibration": {"gemm": 1.1}, "runs": {"path": "runs.csv"}})
    assert error.where == "derive.runs"


# --- what the reader is told --------------------------------------------------------------------------------------


def test_what_was_taken_on_trust_or_left_out_is_said() -> None:
    plain = problem().cautions or {}
    assert {"uncalibrated", "overlap_unmeasured"} <= plain.keys()
    stated = problem(derive={"overlap": {"dp": 0.5, "p2p": 0}, "calibration": {"gemm": 1.1}}).cautions or {}
    assert not {"uncalibrated", "overlap_unmeasured"} & stated.keys()
    few = {"tp": [8], "cp": [1], "pp": [1], "ep": [8], "etp": [1], "micro_batch": [1], "sequence_parallel": [True]}
    deepseek = problem(search=few, derive={"model": "deepseek-v3"}).cautions or {}
    assert {"mtp_left_out", "balanced_routing"} <= deepseek.keys()
    sliding = problem(search=few, derive={"model": "gpt-oss-120b"}).cautions or {}
    assert "sliding_averaged" in sliding
    narrow = problem(search=few, derive={"model": "qwen3-30b-a3b", "expert_dtype": "fp8"}).cautions or {}
    assert "experts are priced" in narrow["narrow_dtype_slower"]
    other = problem(derive={"profile": "h200-sxm", "cluster": {**H100S, "profile": "h200-sxm"}}).cautions or {}
    assert "other_device" in other


def test_layers_that_slide_and_that_do_not_are_priced_as_their_mean() -> None:
    few = {"tp": [1], "cp": [1], "pp": [1], "ep": [8], "etp": [1], "micro_batch": [1], "sequence_parallel": [False]}
    found = problem(search=few, derive={"model": "gpt-oss-120b"})
    device = Device(load("h100-sxm"), load_cluster_of(2), extrapolate="roofline")
    kinds = load_model("gpt-oss-120b").kinds()
    assert len(kinds) == 2
    each = [calibrated(layer_times(device, kind, one_cut(8192, ep=8)), Calibration()).forward_s[0] for kind, _ in kinds]
    mean = np.average(each, weights=[count for _, count in kinds])
    assert row(found, "moe", ep=8, etp=1).forward_s == pytest.approx(mean, rel=1e-8)
    assert [run.kind for run in found.model.layers] == ["moe"]


def test_a_plan_keeps_names_of_files_and_no_paths(tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 16,
        "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 32000, "tie_word_embeddings": True,
        "architectures": ["LlamaForCausalLM"],
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = derived(document(derive={"model": "./config.json"}), tmp_path)
    assert list(found.arrays) == ["config.json"]
    assert str(tmp_path) not in json.dumps(found.derive)
    assert found.problem.model.tied_embeddings


def test_a_batch_that_no_layout_admits_still_has_rows_to_look_for_another() -> None:
    found = problem(
        batch={"global_batch_size": 7, "sequence_length": 8192},
        search={"tp": [1, 2], "cp": [1], "pp": [1], "micro_batch": [4], "sequence_parallel": [False]},
    )
    assert {each.tp for each in found.costs.rows} == {1, 2}


def test_who_asks_about_what_follows_from_the_cluster_is_told_where_to_ask() -> None:
    paper = SimpleNamespace(derives_by=("batch", "cluster.num_gpus"))
    plan = SimpleNamespace(paper=paper, inputs=SimpleNamespace(derive={"cluster": H100S}))
    with pytest.raises(BadInputError) as raised:
        source_of(plan, "cluster.num_gpus")  # type: ignore[arg-type]
    assert (raised.value.code, raised.value.where) == ("unknown_field", "cluster.num_gpus")
    assert "derive.cluster.preset, derive.cluster.nodes" in raised.value.message


def test_memory_is_relaxed_where_it_is_stated() -> None:
    assert derived(document()).relaxable["cluster.gpu_memory_bytes"] == ("derive.memory.capacity_bytes", 0.0)


def test_the_stored_error_is_that_of_the_families_and_none_where_one_has_none() -> None:
    error = derived(document()).cost_error
    assert error is not None
    assert 0 < error["median"] < error["p90"] < 1
    few = {"tp": [8], "cp": [1], "pp": [1], "ep": [8], "etp": [1], "micro_batch": [1], "sequence_parallel": [True]}
    assert derived(document(search=few, derive={"model": "deepseek-v3"})).cost_error is None


# --- examples -----------------------------------------------------------------------------------------------------


def test_the_default_example_is_explicit_and_the_first_golden_case() -> None:
    found = validate(LayoutProblem, json.loads((EXAMPLES / "default.json").read_text()))
    solution, _ = solve(found.sorted(), None, Limits())
    assert (solution.pp, solution.step_time_s) == (1, pytest.approx(26.4))


@pytest.mark.parametrize("name", ["derived", "deepseek", "torchtitan", "deepspeed"])
def test_examples_are_priced_solved_and_confirmed(name: str) -> None:
    found = derived(json.loads((EXAMPLES / f"{name}.json").read_text())).problem
    solution, _ = solve(found, None, Limits())
    assert check(found, solution) == []
    # no device multiplies faster than it can: 6 FLOPs a parameter and token
    model = load_model(str(json.loads((EXAMPLES / f"{name}.json").read_text())["derive"]["model"]))
    assert 6 * model.active_parameters * solution.tokens_per_s_per_gpu < 0.8 * 989e12


# --- one node, units, lists that no model admits --------------------------------------------------------------------


def test_a_model_with_experts_is_planned_on_one_node() -> None:
    found = problem(derive={"model": "mixtral-8x7b", "cluster": "dgx-h100"}, search={"ep": [1, 8], "etp": [1]})
    assert {each.ep for each in found.costs.rows if each.kind == "moe"} == {1, 8}


@pytest.mark.parametrize("typed", [50, 400])
def test_a_bandwidth_in_another_unit_than_bytes_is_refused(typed: float) -> None:
    tiers = {"fabric": {"latency_s": 1e-5, "bandwidth_bytes_per_s": typed}}
    error = refused(derive={"cluster": {"preset": "dgx-h100", "nodes": 2, "tiers": tiers}})
    assert error.where == "derive.cluster.tiers.fabric.bandwidth_bytes_per_s"


def test_a_stated_link_inside_the_node_is_said_not_to_be_read() -> None:
    tiers = {"fabric": {"latency_s": 1e-5}, "node": {"bandwidth_bytes_per_s": 450e9}}
    found = problem(derive={"cluster": {"preset": "dgx-h100", "nodes": 2, "tiers": tiers}})
    assert (found.cautions or {})["node_link_unread"].startswith("derive.cluster.tiers.node.bandwidth_bytes_per_s: not")
    assert "node_link_unread" not in (problem().cautions or {})


@pytest.mark.parametrize(("nodes", "tp", "rule"), [(3, 3, "tp_crosses_node"), (2, 16, "tp_crosses_node")])
def test_tensor_ranks_that_nothing_admits_break_a_rule_and_another_number_is_named(
    nodes: int, tp: int, rule: str
) -> None:
    """No batch and no smaller number of GPUs makes 3 divide a node of 8; the other numbers have their prices."""
    cluster = {"preset": "dgx-h100", "nodes": nodes, "tiers": H100S["tiers"]}
    found = problem(search={"tp": [tp], "pp": [1], "cp": [1]}, derive={"cluster": cluster}, batch=BATCH)
    with pytest.raises(InfeasibleError) as caught:
        solve(found, None, Limits())
    assert caught.value.code == rule
    assert caught.value.relaxation == Relaxation("search.tp", 1, proven=False)


def test_tensor_ranks_that_no_number_of_heads_admits_break_the_rule_of_heads() -> None:
    """12 heads over 8 tensor ranks: the only size of the search has no row, and the rule says why."""
    model = {"name": "odd", "hidden": 1536, "num_layers": 4, "num_heads": 12, "ffn": 4096, "vocab": 32000}
    found = problem(search={"tp": [8], "cp": [1], "pp": [1], "micro_batch": [1]}, derive={"model": model})
    with pytest.raises(InfeasibleError) as caught:
        solve(found, None, Limits())
    assert (caught.value.code, caught.value.where) == ("heads", "search.tp")
    assert caught.value.relaxation == Relaxation("search.tp", 1, proven=False)
