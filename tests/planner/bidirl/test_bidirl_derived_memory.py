"""Bytes of candidate layouts come from the memory model; the smallest that fits is the page's minimal one."""

from __future__ import annotations

import pytest
from bidirl_cases import document as explicit_document
from bidirl_cases import layout, linear
from bidirl_derived import derivation, derived, document

from planner.derivation.bytes_per_parameter import BytesPerParameter
from planner.errors import BadInputError
from planner.papers.bidirl.costs.candidates import Candidate, divides, rollout_candidates, train_candidates
from planner.papers.bidirl.costs.rollout_bytes import rollout_bytes
from planner.papers.bidirl.costs.train_bytes import expert_ranks, fsdp_states, train_bytes
from planner.papers.bidirl.derived import Rollout, Train
from planner.papers.bidirl.layouts import usable
from planner.papers.bidirl.problem import BidirlProblem
from planner.validation import validate
from profiles.geometry import load_model
from profiles.geometry.model import ModelGeometry

LLAMA = load_model("llama-3.1-8b")
QWEN = load_model("qwen3-30b-a3b")
STATED = {"kind": "stated", "times": {"x": linear(1, 1)}}


def rollout(**fields: object) -> Rollout:
    return validate(Rollout, {"time": STATED, "concurrency": 64, **fields})


def train(**fields: object) -> Train:
    return validate(Train, {"time": STATED, **fields})


def states(parameters: float, shard: int) -> float:
    return sum(fsdp_states(parameters, 0.0, BytesPerParameter(param=2, grad=2, optimizer=12), shard).values())


@pytest.mark.parametrize(("activations", "smallest"), [(9e9, "fsdp4"), (7e9, "fsdp2")])
def test_the_smallest_fitting_layout_is_that_of_the_page(activations: float, smallest: str) -> None:
    # Page, golden case 7: 8e9 parameters at 16 bytes are 64e9 on each of two GPUs, of which 72e9 may be filled.
    found = explicit_document()
    assert states(8e9, 2) == 64e9
    assert states(8e9, 4) + activations in (41e9, 39e9)
    found["costs"]["train_layouts"] = [
        layout(f"fsdp{shard}", shard, linear(10, 300), states(8e9, shard) + activations) for shard in (2, 4, 8)
    ]
    found["layout_policy"] = "minimal"
    problem = validate(BidirlProblem, found)
    assert problem.cluster.usable_bytes == 72e9
    assert [each.id for each in usable(problem, problem.costs.train_layouts)] == [smallest]


def test_a_replica_that_generates_holds_weights_cache_and_runtime() -> None:
    # 8,030,261,248 parameters; 32 layers of 2 x 8 heads x 128 numbers of 2 bytes are 131,072 bytes a token.
    found = rollout_bytes(rollout(), LLAMA, Candidate(), 9216)
    assert found == {"weights": 2 * 8_030_261_248, "cache": 64 * 9216 * 131_072, "runtime": 4e9}


def test_heads_of_keys_are_copied_where_there_are_fewer_than_ranks() -> None:
    eight, sixteen = (rollout_bytes(rollout(), LLAMA, Candidate(tp=tp), 9216)["cache"] for tp in (8, 16))
    assert eight == sixteen == 64 * 9216 * 131_072 / 8


def test_stages_and_tensor_ranks_divide_weights_and_cache() -> None:
    whole, cut = (rollout_bytes(rollout(), LLAMA, each, 9216) for each in (Candidate(), Candidate(tp=2, pp=4)))
    assert cut["cache"] == whole["cache"] / 8
    # The fuller stage has a quarter of the layers, and one of embedding and head, half of each on a rank.
    assert whole["weights"] / 8 < cut["weights"] < whole["weights"] / 8 + 128_256 * 4096 * 2 / 2


def test_experts_are_cut_by_tensor_ranks() -> None:
    one, four = (rollout_bytes(rollout(), QWEN, Candidate(tp=tp), 4096)["weights"] for tp in (1, 4))
    assert one == 2 * QWEN.parameters
    assert 0.25 * one < four < 0.26 * one, "routers and norms are copied"


def test_a_sharded_replica_gathers_two_layers_and_reduces_one() -> None:
    # The embedding is the largest unit: 128,256 x 4096 parameters.
    unit = 128_256 * 4096
    found = train_bytes(train(activation_bytes=1e9), LLAMA, Candidate(shard=4), 9216)
    assert found["weights"] == pytest.approx(2 * (8_030_261_248 / 4 + 2 * unit), rel=1e-4)
    assert found["gradients"] == pytest.approx(4 * (8_030_261_248 / 4 + unit), rel=1e-4)
    assert found["optimizer"] == 12 * 8_030_261_248 / 4
    assert (found["activations"], found["runtime"]) == (1e9, 2.5e9)


def test_one_gpu_alone_gathers_nothing() -> None:
    found = train_bytes(train(activation_bytes=1e9), LLAMA, Candidate(shard=1), 9216)
    assert found["weights"] + found["gradients"] + found["optimizer"] == 18 * 8_030_261_248


def test_recomputing_everything_keeps_the_input_of_every_layer_and_one_whole_layer() -> None:
    full, none = (
        train_bytes(train(recompute=how), LLAMA, Candidate(shard=4), 9216)["activations"] for how in ("full", "none")
    )
    inputs = 32 * 9216 * 4096 * 2
    ends = full - inputs
    one_layer = (none - full) / 31 + 9216 * 4096 * 2  # the other 31 layers keep all but their input too
    assert full < none / 4
    # Ends: 8 bytes a token number, final norm in and out in 16 bits, logits in fp32; then one layer but its input.
    head = 9216 * (8 + 2 * 2 * 4096 + 4 * 128_256)
    assert ends == pytest.approx(head + one_layer - 9216 * 4096 * 2, rel=1e-9)


def test_context_ranks_share_the_tokens_of_a_shard() -> None:
    one, two = (train_bytes(train(), LLAMA, Candidate(shard=4, cp=cp), 9216)["activations"] for cp in (1, 2))
    assert two == one / 2


def test_megatron_keeps_weights_and_gradients_and_shares_the_optimizer_over_context_ranks() -> None:
    given = {"backend": "megatron", "activation_bytes": 0.0}
    one = train_bytes(train(**given), LLAMA, Candidate(tp=4), 8192)
    shared = train_bytes(train(**given), LLAMA, Candidate(tp=4, cp=2), 8192)
    apart = train_bytes(train(**given, distributed_optimizer=False), LLAMA, Candidate(tp=4, cp=2), 8192)
    assert one["optimizer"] == 6 * one["weights"] == 3 * one["gradients"]
    assert shared == {**one, "optimizer": one["optimizer"] / 2}
    assert apart == one


def test_experts_that_context_ranks_share_leave_their_optimizer_nobody_to_share_it_with() -> None:
    given = {"backend": "megatron", "activation_bytes": 0.0}
    apart, together = (
        train_bytes(train(**given, distributed_optimizer=how), QWEN, Candidate(cp=2), 8192)["optimizer"]
        for how in (False, True)
    )
    # All but the experts once over two ranks; the experts over both already.
    dense = QWEN.parameters - QWEN.parameters_by_part["experts"]
    assert apart - together == 12 * dense / 2


def test_a_pipeline_holds_its_first_stages_micro_batches() -> None:
    given = {"backend": "megatron", "recompute": "none"}
    alone, filled = (
        train_bytes(train(**given, micro_batches=m), LLAMA, Candidate(tp=2, pp=4), 8192)["activations"] for m in (1, 8)
    )
    # The first of four stages holds four micro-batches; with one alone the last, which has the head, holds most.
    assert filled > 2 * alone


def test_experts_of_megatron_are_over_as_many_ranks_as_divide_them() -> None:
    assert expert_ranks(QWEN, Candidate(tp=2, cp=2)) == 4  # of 128 experts
    assert expert_ranks(QWEN, Candidate(shard=8)) == 1
    assert expert_ranks(LLAMA, Candidate(tp=4)) == 1


def test_candidates_are_powers_of_two_on_two_nodes_at_most_that_divide_the_model() -> None:
    found = {each.id: each.gpus for each in rollout_candidates(rollout(), LLAMA, 8)}
    # tp 1 to 16 of 32 heads, pp 1 to 16 of 32 layers, at most 16 GPUs: 5 + 4 + 3 + 2 + 1.
    assert len(found) == 15
    assert set(found.values()) == {1, 2, 4, 8, 16}
    assert [each.id for each in train_candidates(train(), LLAMA, 8)] == ["fsdp1", "fsdp2", "fsdp4", "fsdp8", "fsdp16"]
    assert [each.id for each in rollout_candidates(rollout(tp=[3, 4], pp=[1, 5]), LLAMA, 8)] == ["tp4"]


def test_context_ranks_divide_their_shard() -> None:
    found = [each.id for each in train_candidates(train(shard=[2, 4], cp=[1, 4]), LLAMA, 8)]
    assert found == ["fsdp2", "fsdp4", "fsdp4-cp4"]


CUTS = [(8, 1, True), (16, 1, True), (3, 1, False), (1, 5, False), (64, 1, False)]


@pytest.mark.parametrize(("tp", "pp", "can"), CUTS)
def test_heads_and_layers_are_divided_without_rest(tp: int, pp: int, can: bool) -> None:
    assert divides(LLAMA, tp, pp) is can  # 32 heads, 8 of keys, 32 layers


def test_no_candidate_that_divides_the_model_is_bad_input() -> None:
    posed = document()
    posed["derive"]["rollout"]["tp"] = [3]
    with pytest.raises(BadInputError, match="no candidate is left") as caught:
        derived(posed)
    assert caught.value.where == "derive.rollout"


def test_every_candidate_stands_in_the_account_with_its_bytes() -> None:
    posed = document()
    posed["derive"]["train"]["time"]["unmeasured"] = "leave_out"
    account = derivation(posed).derive
    assert isinstance(account, dict)
    found = account["resolved"]["train"]["candidates"]
    assert [name for name, each in found.items() if each["timed"]] == ["fsdp4"]
    assert found["fsdp2"]["memory_bytes"] > 72e9 > found["fsdp4"]["memory_bytes"]


@pytest.mark.parametrize("model", [LLAMA, QWEN, load_model("deepseek-v3")], ids=lambda model: model.name)
def test_more_gpus_never_hold_more_on_each(model: ModelGeometry) -> None:
    candidates = train_candidates(train(shard=[2, 4, 8]), model, 8)
    held = [sum(train_bytes(train(), model, each, 4096).values()) for each in candidates]
    assert held == sorted(held, reverse=True)
