"""Whole batches from a published table of verl: its colocated runs, whose stages follow one another on all GPUs.

Runs with a pool for each role tell neither time: what they call generation is what is left to wait of it.
"""

from __future__ import annotations

from pathlib import Path

from planner.errors import BadInputError
from planner.papers.bidirl.logs.verl_steps import StepTimes, read_step_times
from planner.papers.bidirl.measurements import StepRow
from planner.papers.bidirl.problem import Role


def colocated_rows(path: Path, role: Role, replica_gpus: int, where: str) -> list[StepRow]:
    """A row a colocated run, in replicas of ``replica_gpus``. Raises BadInputError with the line."""
    found = []
    for run in read_step_times(path, where):
        if run.pools is None or run.pools.shared == 0:
            continue
        if run.pools.shared % replica_gpus:
            message = (
                f"{path.name} line {run.line}: expected a multiple of the {replica_gpus} GPUs of a replica, got "
                f"{run.pools.shared}"
            )
            raise BadInputError(message, code="out_of_range", where=where)
        seconds = _seconds(run, role)
        if seconds:
            found.append(StepRow(role=role, replicas=run.pools.shared // replica_gpus, time_s=seconds))
    return found


def _seconds(run: StepTimes, role: Role) -> float:
    """Of all stages of a role; 0 where none was measured."""
    if role == "rollout":
        return run.gen_s or 0.0
    return run.update_actor_s + (run.old_log_prob_s or 0.0) + (run.ref_s or 0.0)
