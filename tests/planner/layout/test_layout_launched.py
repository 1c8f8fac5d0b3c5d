"""A layout in the settings of launchers."""

from __future__ import annotations

from typing import Any

from layout_cases import G8, Document, layers, problem, row, x

from planner.papers.layout.engines import solve
from planner.papers.layout.launch_settings import Launched, launched
from solvers.report import Limits

ROOMY = {"cluster__gpu_memory_bytes": 1e15}


def told(document: Document, rules: str) -> Launched:
    """How one launcher is told the plan of a document."""
    given = problem({**document, "launcher_rules": rules})
    (found,) = launched(given, solve(given, None, Limits())[0])
    return found


def wide(**changes: Any) -> Document:
    """X with rows for two tensor ranks and sequence parallelism."""
    both = [row(kind, tp=tp, sp=sp) for kind in ("dense", "embedding", "head") for tp, sp in ((1, False), (2, True))]
    return x(rows=both, **ROOMY, **changes)


def test_megatron_gets_degrees_batch_and_what_is_on() -> None:
    search = {"tp": [2], "pp": [2], "zero_stage": [1], "sequence_parallel": [True], "recompute": ["full"]}
    found = told(wide(search=search, costs__overlap={"dp": 0.5, "p2p": 0}), "megatron")
    assert found.launcher == "Megatron-LM"
    assert found.settings == (
        "--tensor-model-parallel-size 2",
        "--pipeline-model-parallel-size 2",
        "--context-parallel-size 1",
        "--micro-batch-size 1",
        "--global-batch-size 8",
        "--seq-length 1024",
        "--sequence-parallel",
        "--use-distributed-optimizer",
        "--recompute-granularity full",
        "--recompute-method uniform",
        "--recompute-num-layers 1",
        "--overlap-grad-reduce",
        "--overlap-param-gather",
    )


def test_megatron_shards_parameters_by_its_own_fsdp() -> None:
    found = told(x(search={"zero_stage": [3], "recompute": ["selective"]}), "megatron")
    assert "--use-megatron-fsdp" in found.settings
    assert "--data-parallel-sharding-strategy optim_grads_params" in found.settings
    assert "--recompute-granularity selective" in found.settings
    assert not any("overlap" in setting for setting in found.settings)


def test_megatron_counts_layers_of_a_chunk_and_of_uneven_ends() -> None:
    """16 layers over 2 ranks of 4 chunks are 2 each."""
    chunks = told(x(model__layers=layers(16), search={"pp": [2], "vpp": [4]}, **ROOMY), "megatron")
    assert "--num-layers-per-virtual-pipeline-stage 2" in chunks.settings
    # Messages overlap by default; the flag of old would be read as short for --overlap-p2p-communication-warmup-flush.
    assert not any("p2p" in setting for setting in chunks.settings)
    heavy = x(
        rows=[row("dense"), row("embedding"), row("head", forward_s=2, backward_s=4)],
        model__layers=layers(8),
        search={"pp": [2], "partitions": ["even", "ends"]},
        **ROOMY,
    )
    ends = told(heavy, "megatron").settings
    assert "--decoder-first-pipeline-num-layers 5" in ends
    assert "--decoder-last-pipeline-num-layers 3" in ends


def selective(*modules: str) -> Document:
    """X, recomputed selectively."""
    return x(search={"zero_stage": [1], "recompute": ["selective"]}, costs__selective=list(modules) or None)


def test_megatron_is_told_the_modules_that_the_bytes_were_counted_with() -> None:
    settings = told(selective("attention_norm", "ffn_norm", "expert_activation", "latent_up"), "megatron").settings
    place = settings.index("--recompute-granularity selective")
    assert settings[place + 1 :] == ("--recompute-modules layernorm moe_act mla_up_proj", "--moe-grouped-gemm")


def test_megatron_is_told_what_it_has_no_module_for() -> None:
    settings = told(selective("norms", "ffn_activation"), "megatron").settings
    assert settings[-3:] == (
        "--recompute-modules layernorm",
        "in its layers: norms that are not fused into the product after them",
        "it has no module for: ffn_activation",
    )


def test_without_modules_megatron_is_told_that_it_needs_some() -> None:
    assert told(selective(), "megatron").settings[-1].startswith("with --recompute-modules for what selective_bytes")


def test_other_launchers_are_told_the_modules_in_words() -> None:
    assert "selective, recomputing norms, latent_up" in told(selective("norms", "latent_up"), "deepspeed").settings[-1]
    assert told(selective(), "deepspeed").settings[-1].endswith("activation checkpointing: selective")


def test_megatron_gets_the_degrees_of_experts() -> None:
    assert "--expert-model-parallel-size 2" in told(G8, "megatron").settings
    assert "--expert-tensor-parallel-size 1" in told(G8, "megatron").settings


def test_deepspeed_gets_a_batch_that_multiplies_out_and_the_rest_goes_to_the_model() -> None:
    found = told(x(search={"pp": [2], "zero_stage": [1], "recompute": ["full"]}), "deepspeed")
    # 8 sequences = 1 x 4 micro-batches x 2 data-parallel ranks.
    assert found.settings == (
        '"train_batch_size": 8',
        '"train_micro_batch_size_per_gpu": 1',
        '"gradient_accumulation_steps": 4',
        '"zero_optimization": {"stage": 1, "overlap_comm": false}',
        "to the model's own code: a pipeline of 2 + 2 layers, activation checkpointing: full",
    )


def test_torchtitan_counts_tokens_and_layers_that_the_ends_have_less() -> None:
    heavy = x(
        rows=[row("dense"), row("embedding"), row("head", forward_s=2, backward_s=4)],
        model__layers=layers(8),
        search={"pp": [2], "partitions": ["ends"], "zero_stage": [3]},
        **ROOMY,
    )
    settings = told(heavy, "torchtitan").settings
    # 5 + 3 layers in two stages of at most 5; one sequence of 1,024 tokens at a time, eight a step.
    for wanted in (
        "--parallelism.data_parallel_shard_degree 2",
        "--parallelism.pipeline_parallel_schedule 1F1B",
        "--parallelism.pipeline_parallel_layers_per_stage 5",
        "--parallelism.pipeline_parallel_first_stage_less_layers 0",
        "--parallelism.pipeline_parallel_last_stage_less_layers 2",
        "--parallelism.num_pp_microbatches 4",
        "--parallelism.fsdp_reshard_after_forward always",
        "--training.num_tokens_per_microbatch_per_dp_rank 1024",
        "--training.num_tokens_per_train_step 8192",
    ):
        assert wanted in settings


def test_without_rules_every_launcher_is_told_or_says_which_rule_is_broken() -> None:
    given = problem(x(search={"zero_stage": [2]}))
    found = {each.launcher: each for each in launched(given, solve(given, None, Limits())[0])}
    assert found["Megatron-LM"] == ("Megatron-LM", (), "megatron_zero_stage")
    assert found["DeepSpeed"].broken is None
    assert "--parallelism.fsdp_reshard_after_forward never" in found["torchtitan"].settings
