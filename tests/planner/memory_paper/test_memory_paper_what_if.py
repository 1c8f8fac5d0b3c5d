"""What-if over a memory plan: what moves for all ranks, and what is said of a plan that states its bytes."""

from __future__ import annotations

from typing import Any

import pytest

from planner.paper import DeriveOptions
from planner.plan import Options, Plan, load_document, make_plan
from planner.pose import pose
from planner.sensitivity.answers import AtValue
from planner.sensitivity.ask import what_if
from planner.verification import check_plan


def two_ranks() -> Plan:
    """Two stages with links stated: the first has more in flight, the last the logits."""
    sizes = {"hidden": 256, "num_layers": 4, "num_heads": 4, "ffn": 1024, "vocab": 1000}
    dims = [{"id": "data", "size": 4, "alpha_s": 1e-5, "beta_s_per_byte": 2.5e-11}]
    batch = {"sequence_length": 1024, "num_micro_batches": 4}
    derive: dict[str, Any] = {"model": sizes, "layout": {"pp": 2}, "batch": batch, "dense_dims": dims}
    document = {"paper": "memory", "derive": derive, "capacity_bytes": 80e9}
    return make_plan(pose(document, DeriveOptions()), Options())


def asked(plan: Plan, question: str) -> AtValue:
    answer = what_if(plan, question)
    assert isinstance(answer, AtValue)
    return answer


def test_other_bytes_move_on_every_rank_and_keep_the_job() -> None:
    """Context and communicators of pp and of the data-parallel group, 2.5 GB, are the same on all."""
    plan = two_ranks()
    assert (plan.problem.other_bytes, len(plan.problem.ranks)) == (2.5e9, 1)
    answer = asked(plan, "other_bytes=5e9")
    assert answer.outcome.warnings == ()
    [change] = answer.outcome.metrics
    old, new = change.old, change.new
    assert isinstance(old, float)
    assert isinstance(new, float)
    assert change.path == "device_bytes"
    assert new - old == pytest.approx(2.5e9)


def test_a_mode_by_itself_is_a_list_of_one() -> None:
    assert asked(two_ranks(), "search.parameters=gather").outcome.changes


def test_a_number_that_the_job_gives_otherwise_is_stated_with_a_warning() -> None:
    [warned] = asked(two_ranks(), "num_micro_batches=2").outcome.warnings
    assert warned.code == "job_dropped"
    assert "num_micro_batches: stated 2, 4 in the job" in warned.message


def test_a_plan_file_whose_job_was_edited_is_refuted_by_the_check() -> None:
    document: Any = two_ranks().document()
    document["problem"]["job"]["batch"]["sequence_length"] = 2048
    found = {violation.code for violation in check_plan(load_document(document, "a plan")).violations}
    assert {"derived_mismatch", "problem_sha256"} <= found
