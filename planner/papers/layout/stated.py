"""Evaluated layouts as rows of a solution."""

from __future__ import annotations

from planner.papers.layout.evaluate import Evaluated
from planner.papers.layout.solution import Alternative


def figures(found: Evaluated) -> dict[str, object]:
    """The fields of ``Figures``."""
    layout = found.layout
    return {
        "tp": layout.tp,
        "cp": layout.cp,
        "pp": layout.pp,
        "vpp": layout.vpp,
        "ep": layout.ep,
        "etp": layout.etp,
        "dp": found.sizes.dp,
        "zero_stage": layout.zero_stage,
        "recompute": layout.recompute,
        "sequence_parallel": layout.sequence_parallel,
        "micro_batch": layout.micro_batch,
        "num_micro_batches": found.sizes.num_micro_batches,
        "partition": layout.partition,
        "pipeline_s": found.pipeline_s,
        "tail_s": found.tail_s,
        "step_time_s": found.step_time_s,
        "tokens_per_s_per_gpu": found.tokens_per_s_per_gpu,
        "peak_memory_bytes": found.peak_memory_bytes,
    }


def ratio(found: Evaluated, chosen: Evaluated) -> float:
    """The step of one over the step of the other; 1 where neither takes any time."""
    return found.step_time_s / chosen.step_time_s if chosen.step_time_s > 0 else 1.0


def alternative(found: Evaluated, chosen: Evaluated, reason: str) -> Alternative:
    """The row of a layout beside the chosen one."""
    return Alternative.model_validate({**figures(found), "reason": reason, "ratio": ratio(found, chosen)})
