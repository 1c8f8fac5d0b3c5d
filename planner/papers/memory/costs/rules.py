"""What a layout has to keep on its cluster; each rule is an error's code."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from planner.errors import BadInputError
from planner.papers.memory.costs.setting import Setting
from planner.papers.memory.job import Job
from planner.papers.memory.job_rules import Broken, broken, experts_of
from profiles.cluster import Cluster


def refuse_broken(setting: Setting) -> None:
    """Raise BadInputError for the first rule that a layout breaks."""
    job, model, cluster = setting.job, setting.model, setting.cluster
    of_cluster = () if cluster is None else _ranks(job, cluster, experts_of(model) is not None)
    for rule, message, field in chain(of_cluster, broken(job, model)):
        raise BadInputError(message, code=rule, where=f"derive.{field}")


def _ranks(job: Job, cluster: Cluster, has_experts: bool) -> Iterator[Broken]:
    layout, total = job.layout, cluster.num_ranks
    node = min(cluster.gpus_per_node, total)
    if total % (width := layout.tp * layout.cp * layout.pp):
        yield "world_size", f"expected tp * cp * pp to divide {total} ranks, got {width}", "layout.tp"
    if has_experts and total % (width := layout.ep * layout.etp * layout.pp):
        yield "expert_world_size", f"expected ep * etp * pp to divide {total} ranks, got {width}", "layout.ep"
    if node % layout.tp:
        message = f"expected tp to divide the {node} GPUs of a node, so that no group leaves it, got {layout.tp}"
        yield "tp_crosses_node", message, "layout.tp"
