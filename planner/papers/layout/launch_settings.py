"""A layout in the settings of launchers (page, section "What a launcher is told"); what one cannot say is named.

Megatron-LM: command line. DeepSpeed: its JSON, with what its model code is told. torchtitan: command line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import NamedTuple

from planner.json_text import Json
from planner.papers.layout.layouts import Layout, layout_of
from planner.papers.layout.problem import LayoutProblem, Rules
from planner.papers.layout.rules import broken_rule
from planner.papers.layout.solution import LayoutSolution

MEGATRON_MODULES: dict[str, str] = {
    "core_attention": "core_attn",
    "norms": "layernorm",
    "attention_norm": "layernorm",
    "ffn_norm": "layernorm",
    "expert_activation": "moe_act",
    "latent_up": "mla_up_proj",
}
"""Modules in the words of its ``--recompute-modules``."""


class Launched(NamedTuple):
    """Settings of one launcher, each for itself, or the rule of its that the layout breaks."""

    launcher: str
    settings: tuple[str, ...]
    broken: str | None = None


def launched(problem: LayoutProblem, solution: LayoutSolution) -> list[Launched]:
    """The layout as the launcher is told it whose rules it keeps; without rules, as each of the three is."""
    wanted = list(_TOLD) if problem.launcher_rules == "none" else [problem.launcher_rules]
    return [_launched(problem, solution, rules) for rules in wanted]


def _launched(problem: LayoutProblem, solution: LayoutSolution, rules: Rules) -> Launched:
    launcher, settings = _TOLD[rules]
    broken = broken_rule(problem.model_copy(update={"launcher_rules": rules}), layout_of(solution))
    return Launched(launcher, (), broken) if broken else Launched(launcher, tuple(settings(problem, solution)))


def _megatron(problem: LayoutProblem, solution: LayoutSolution) -> list[str]:
    layout, overlap = layout_of(solution), problem.costs.overlap
    told = [
        f"--tensor-model-parallel-size {layout.tp}",
        f"--pipeline-model-parallel-size {layout.pp}",
        f"--context-parallel-size {layout.cp}",
    ]
    if problem.model.num_experts:
        told += [f"--expert-model-parallel-size {layout.ep}", f"--expert-tensor-parallel-size {layout.etp}"]
    told += [
        f"--micro-batch-size {layout.micro_batch}",
        f"--global-batch-size {problem.batch.global_batch_size}",
        f"--seq-length {problem.batch.sequence_length}",
    ]
    told += ["--sequence-parallel"] if layout.sequence_parallel else []
    told += _megatron_stages(layout)
    told += {
        0: [],
        1: ["--use-distributed-optimizer"],
        3: [
            "--use-megatron-fsdp",
            "--data-parallel-sharding-strategy optim_grads_params",
            "--ckpt-format fsdp_dtensor",
        ],
    }[layout.zero_stage]
    told += {
        "none": [],
        "selective": ["--recompute-granularity selective", *_megatron_modules(problem.costs.selective)],
        "full": ["--recompute-granularity full", "--recompute-method uniform", "--recompute-num-layers 1"],
    }[layout.recompute]
    if overlap.dp > 0:
        told += ["--overlap-grad-reduce"]
        told += ["--overlap-param-gather"] if layout.zero_stage else []
    return told


def _megatron_modules(selective: Collection[str] | None) -> list[str]:
    """Left out, Megatron-LM recomputes core_attn alone, which flash attention does not keep."""
    if selective is None:
        return ["with --recompute-modules for what selective_bytes leave out"]
    names = list(dict.fromkeys(MEGATRON_MODULES[module] for module in selective if module in MEGATRON_MODULES))
    told = [f"--recompute-modules {' '.join(names)}"] if names else []
    told += ["--moe-grouped-gemm"] if "moe_act" in names else []
    told += ["in its layers: norms that are not fused into the product after them"] if "norms" in selective else []
    unknown = [module for module in selective if module not in MEGATRON_MODULES]
    return told + ([f"it has no module for: {', '.join(unknown)}"] if unknown else [])


def _megatron_stages(layout: Layout) -> list[str]:
    """Layers of the stages, where they are not all alike or several are on a rank."""
    layers = layout.partition
    if layout.vpp > 1:
        return [f"--num-layers-per-virtual-pipeline-stage {layers[0]}"]
    if len(set(layers)) == 1:
        return []
    return [f"--decoder-first-pipeline-num-layers {layers[0]}", f"--decoder-last-pipeline-num-layers {layers[-1]}"]


def _deepspeed(problem: LayoutProblem, solution: LayoutSolution) -> list[str]:
    zero: dict[str, Json] = {"stage": solution.zero_stage, "overlap_comm": problem.costs.overlap.dp > 0}
    document: dict[str, Json] = {
        "train_batch_size": problem.batch.global_batch_size,
        "train_micro_batch_size_per_gpu": solution.micro_batch,
        "gradient_accumulation_steps": solution.num_micro_batches,
        "zero_optimization": zero,
    }
    told = [f'"{name}": {json.dumps(value)}' for name, value in document.items()]
    parts = [f"tensor parallelism over {solution.tp}"] if solution.tp > 1 else []
    parts += [f"a pipeline of {' + '.join(map(str, solution.partition))} layers"] if solution.pp > 1 else []
    parts += [f"experts over {solution.ep}, each cut over {solution.etp}"] if problem.model.num_experts else []
    parts += ["sequence parallelism"] if solution.sequence_parallel else []
    parts += [f"activation checkpointing: {_checkpointing(problem, solution)}"] if solution.recompute != "none" else []
    return told + ([f"to the model's own code: {', '.join(parts)}"] if parts else [])


def _torchtitan(problem: LayoutProblem, solution: LayoutSolution) -> list[str]:
    batch, layers = problem.batch, solution.partition
    parallelism: dict[str, int | str] = {
        "data_parallel_replicate_degree": 1,
        "data_parallel_shard_degree": solution.dp,
        "tensor_parallel_degree": solution.tp,
        "context_parallel_degree": solution.cp,
        "pipeline_parallel_degree": solution.pp,
    }
    if problem.model.num_experts:
        parallelism |= {"expert_parallel_degree": solution.ep, "expert_tensor_parallel_degree": solution.etp}
    if solution.pp > 1:
        most = max(layers)
        parallelism |= {
            "pipeline_parallel_schedule": "Interleaved1F1B" if solution.vpp > 1 else "1F1B",
            "pipeline_parallel_layers_per_stage": most,
            "pipeline_parallel_first_stage_less_layers": most - layers[0],
            "pipeline_parallel_last_stage_less_layers": most - layers[-1],
            "num_pp_microbatches": solution.num_micro_batches,
        }
    parallelism["fsdp_reshard_after_forward"] = "always" if solution.zero_stage == 3 else "never"
    told = [f"--parallelism.{name} {value}" for name, value in parallelism.items()]
    told += [
        f"--training.num_tokens_per_microbatch_per_dp_rank {solution.micro_batch * batch.sequence_length}",
        f"--training.num_tokens_per_train_step {batch.global_batch_size * batch.sequence_length}",
    ]
    return [*told, f"in its config: activation checkpointing {_checkpointing(problem, solution)}"]


def _checkpointing(problem: LayoutProblem, solution: LayoutSolution) -> str:
    """In words, selective with the modules that are run again where they are known."""
    if solution.recompute != "selective" or problem.costs.selective is None:
        return "off" if solution.recompute == "none" else solution.recompute
    return f"selective, recomputing {', '.join(problem.costs.selective)}"


_TOLD: dict[Rules, tuple[str, Callable[[LayoutProblem, LayoutSolution], list[str]]]] = {
    "megatron": ("Megatron-LM", _megatron),
    "deepspeed": ("DeepSpeed", _deepspeed),
    "torchtitan": ("torchtitan", _torchtitan),
}
