"""Where the seconds of a step go, as its busiest rank sees them; the parts sum to the step."""

from __future__ import annotations

from planner.papers.layout.evaluate import Evaluated
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.ranks import ranks
from planner.papers.layout.stage_times import layer_times_s, recomputed_s
from planner.papers.layout.tail import update_s

PARTS = (
    "compute", "communication", "recompute", "sharding", "hops", "bubble", "reduction", "update", "fixed",
)  # fmt: skip
"""In the order of a step: layers forward and backward; what shows of tp, cp and ep; what is run again; what shows of
gathers and scatters of sharded layers; hops between stages; idle; what shows of the reduction and the gather after the
pipeline; the optimizer's update; fixed_s."""


def busiest_rank(found: Evaluated) -> int:
    """The pipeline rank that works longest; of equal ones the first."""
    work = [one + other for one, other in zip(found.stages.forward_s, found.stages.backward_s, strict=True)]
    busy = [sum(work[rank :: found.layout.pp]) for rank in range(found.layout.pp)]
    return busy.index(max(busy))


def step_parts(problem: LayoutProblem, found: Evaluated) -> dict[str, float]:
    """Seconds of each of ``PARTS``."""
    layout, sizes = found.layout, found.sizes
    rank = busiest_rank(found)
    here = range(rank, len(found.stages.layers), layout.pp)
    each = dict.fromkeys(PARTS, 0.0)
    layers_s = 0.0
    for stage in here:
        for kind, count in found.stages.layers[stage].items():
            row = problem.costs.by_key[layout.row_key(kind)]
            unshared = sum(layer_times_s(problem, layout, sizes, row, shared=False))
            with_shards = sum(layer_times_s(problem, layout, sizes, row))
            again = 0.0
            if kind in ("dense", "moe"):
                again = recomputed_s(row, layout.recompute, row.forward_s + row.comm_forward_s)
            each["compute"] += count * (row.forward_s + row.backward_s)
            each["communication"] += count * (row.comm_forward_s + row.comm_backward_s)
            each["recompute"] += count * again
            each["sharding"] += count * (with_shards - unshared)
            layers_s += count * with_shards
    work_s = sum(found.stages.forward_s[stage] + found.stages.backward_s[stage] for stage in here)
    each["hops"] = max(0.0, work_s - layers_s)
    for part in ("compute", "communication", "recompute", "sharding", "hops"):
        each[part] *= sizes.num_micro_batches
    each["bubble"] = max(0.0, found.pipeline_s - sizes.num_micro_batches * work_s)
    update = max(update_s(problem, layout, sizes, held) for held in ranks(problem, layout, found.stages))
    each["update"] = min(update, found.tail_s)
    each["reduction"] = found.tail_s - each["update"]
    each["fixed"] = problem.costs.fixed_s
    return each
