"""The check counts every byte field of a derived problem again, from the model alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import BadInputError
from planner.memory.activations import MODULES
from planner.paper import DeriveOptions
from planner.papers.memory.as_stated import as_stated
from planner.papers.memory.check import check
from planner.papers.memory.checks.differences import differing
from planner.papers.memory.cost import derive
from planner.papers.memory.derived import MemoryDerivedProblem
from planner.papers.memory.engines import solve
from planner.papers.memory.problem import MemoryProblem
from planner.validation import validate
from solvers.report import Limits

DENSE = {"hidden": 64, "num_layers": 12, "num_heads": 8, "num_kv_heads": 4, "ffn": 192, "vocab": 1000}
GPT = DENSE | {"num_kv_heads": 8, "norm": "layer", "bias": "all", "gated": False, "positions": 128, "tied": True}
EXPERTS = {"num_experts": 8, "top_k": 2, "ffn": 32, "shared_ffn": 48, "first_dense": 3, "router_bias": True}
MOE = DENSE | {"moe": EXPERTS, "qk_norm": "head"}
LATENT = {"q_lora": 24, "kv_lora": 16, "nope": 8, "rope": 4, "v": 8}
MLA = {name: size for name, size in MOE.items() if name not in ("num_kv_heads", "qk_norm")} | {"mla": LATENT}
WAN = {"hidden": 64, "heads": 8, "ffn": 192, "text_tokens": 16, "cross_layers": 12}
FLUX = {"hidden": 64, "heads": 8, "ffn": 192, "text_tokens": 16, "double_layers": 4, "single_layers": 8}
MODELS = {"dense": DENSE, "gpt": GPT, "moe": MOE, "mla": MLA, "wan": WAN, "flux": FLUX}


def explicit(model: str, layout: dict[str, Any], micro_batches: int, **given: Any) -> MemoryProblem:
    """Derived with all links stated."""
    dims = [{"id": "data", "size": 64, "alpha_s": 0.0, "beta_s_per_byte": 0.0}]
    batch = {"sequence_length": 128, "num_micro_batches": micro_batches}
    document = {
        "model": MODELS[model],
        "layout": layout,
        "batch": batch,
        "dense_dims": dims,
        "recompute_s": 1.0,
    } | given
    if model in ("moe", "mla"):
        ranks = 64 * layout.get("tp", 1) // (layout.get("ep", 1) * layout.get("etp", 1))
        document["expert_dims"] = [dims[0] | {"size": ranks}]
    whole = {"derive": document, "capacity_bytes": 80e9}
    return derive(validate(MemoryDerivedProblem, whole), DeriveOptions()).problem


@st.composite
def jobs(draw: st.DrawFn) -> MemoryProblem:
    model = draw(st.sampled_from(sorted(MODELS)))
    pp = draw(st.sampled_from([1, 2, 3]))
    two_way = ["zbv", "v_half", "v_min"] if pp > 1 else []
    schedule = draw(st.sampled_from(["1f1b", "gpipe", "interleaved", "zb1p", "zb2p", *two_way]))
    chunks = {1: [1], 2: [1, 2, 3, 6], 3: [1, 2, 4]}[pp] if schedule == "interleaved" else [1]
    layout: dict[str, Any] = {
        "tp": draw(st.sampled_from([1, 2, 4])),
        "cp": draw(st.sampled_from([1, 2])),
        "pp": pp,
        "vpp": 2 if schedule in two_way else draw(st.sampled_from(chunks)),
        "rank": draw(st.none() | st.integers(0, pp - 1)),
        "schedule": schedule,
        "sequence_parallel": draw(st.booleans()),
    }
    if model in ("moe", "mla"):
        layout |= {"ep": draw(st.sampled_from([1, 2, 4])), "etp": draw(st.sampled_from([1, 2]))}
    flags = ("flash_attention", "dropout", "fused_norm", "fused_gate", "regathered", "parallel_loss")
    modules = st.lists(st.sampled_from(MODULES), unique=True)
    code = {name: draw(st.booleans()) for name in flags} | {"selective": draw(st.none() | modules)}
    factor = draw(st.sampled_from([1.0, 1.5]))
    micro_batches = draw(st.sampled_from([1, 2, 3, 6, 12, 300]))
    recompute = draw(st.sampled_from(["none", "selective"]))
    return explicit(model, layout, micro_batches, training_code=code, recompute=recompute, load_factor=factor)


@settings(max_examples=150, deadline=None)
@given(jobs())
def test_the_check_counts_what_the_derivation_says(problem: MemoryProblem) -> None:
    assert list(differing(problem)) == []


FIELDS = ("parameters_bytes", "gradients_bytes", "optimizer_bytes", "parameters_unit_bytes", "gradients_unit_bytes")


@pytest.mark.parametrize("name", ["dense", "experts"])
@pytest.mark.parametrize("field", FIELDS)
def test_a_group_that_differs_from_its_model_is_refuted(name: str, field: str) -> None:
    problem = explicit("moe", {"ep": 2}, 4)
    solution, _ = solve(problem, None, Limits())
    assert not check(problem, solution)
    groups = tuple(
        each.model_copy(update={field: getattr(each, field) * (1 + 1e-6)}) if each.id == name else each
        for each in problem.groups
    )
    wrong = problem.model_copy(update={"groups": groups})
    found = [violation for violation in check(wrong, solution) if violation.code == "derived_mismatch"]
    assert [violation.where for violation in found] == [f"groups.{name}.{field}"]


@pytest.mark.parametrize("field", ["kept_bytes", "materialised_bytes", "unit_bytes", "micro_batch_bytes"])
def test_activations_that_differ_from_their_model_are_refuted(field: str) -> None:
    problem = explicit("gpt", {"pp": 3, "vpp": 2, "rank": 1}, 6)
    solution, _ = solve(problem, None, Limits())
    changed = {field: getattr(problem.activations, field) * (1 - 1e-6)}
    wrong = problem.model_copy(update={"activations": problem.activations.model_copy(update=changed)})
    found = [violation for violation in check(wrong, solution) if violation.code == "derived_mismatch"]
    assert [violation.where for violation in found] == [f"activations.{field}"]


def refuted(problem: MemoryProblem, **changes: Any) -> list[str | None]:
    """Where the check of a plan whose problem was edited by hand finds that the job gives something else."""
    solution, _ = solve(problem, None, Limits())
    edited = problem.model_copy(update=changes).sorted()
    return [each.where for each in check(edited, solution) if each.code == "derived_mismatch"]


def with_job(problem: MemoryProblem, **changes: Any) -> dict[str, Any]:
    assert problem.job is not None
    return {"job": problem.job.model_copy(update=changes)}


def test_a_problem_that_somebody_changed_states_its_bytes_and_says_so() -> None:
    problem = explicit("dense", {"tp": 2}, 4)
    assert as_stated(problem) == problem
    more = {"activations": problem.activations.model_copy(update={"kept_bytes": 2 * problem.activations.kept_bytes})}
    stated = as_stated(problem.model_copy(update=more))
    assert stated.job is None
    assert (stated.cautions or {})["job_dropped"].startswith("activations.kept_bytes: stated")
    assert as_stated(stated) == stated


def test_sorting_hides_nothing_from_the_check() -> None:
    """A plan's problem is sorted when it is loaded, and keeps the job that it was planned with."""
    problem = explicit("moe", {"ep": 2}, 4)
    assert refuted(problem) == []
    assert refuted(problem, num_micro_batches=2) == ["num_micro_batches"]
    renamed = tuple(group.model_copy(update={"id": f"{group.id}s"}) for group in problem.groups)
    assert refuted(problem, groups=renamed) == ["groups"]
    more = (*problem.groups, problem.groups[0].model_copy(update={"id": "third"}))
    assert refuted(problem, groups=more) == ["groups"]
    experts = problem.groups[1]
    halved = experts.model_copy(update={"dims": (experts.dims[0].model_copy(update={"size": 16}),)})
    assert refuted(problem, groups=(problem.groups[0], halved)) == ["groups.experts.dims"]
    assert problem.job is not None
    batch = problem.job.batch.model_copy(update={"sequence_length": 256})
    assert "activations.kept_bytes" in refuted(problem, **with_job(problem, batch=batch))
    assert "groups.dense.gradients_bytes" in refuted(
        problem, **with_job(problem, dtypes=problem.job.dtypes.model_copy(update={"grad": 2.0}))
    )


@pytest.mark.parametrize("layout", [{"pp": 64}, {"pp": 60000}, {"pp": 12, "vpp": 2, "schedule": "zbv"}])
def test_a_job_whose_layout_leaves_a_rank_without_layers_is_refuted_and_refused(layout: dict[str, Any]) -> None:
    problem = explicit("dense", {}, 4)
    assert problem.job is not None
    changed = with_job(problem, layout=problem.job.layout.model_copy(update=layout))
    assert refuted(problem, **changed) == ["job.layout.pp"]
    with pytest.raises(BadInputError) as raised:
        as_stated(problem.model_copy(update=changed))
    assert (raised.value.code, raised.value.where) == ("partition", "job.layout.pp")


def test_a_job_of_a_file_is_refuted_and_refused() -> None:
    """A plan holds sizes, so that nothing outside is read."""
    problem = explicit("dense", {}, 1)
    changed = with_job(problem, model="./elsewhere.json")
    assert refuted(problem, **changed) == ["job.model"]
    with pytest.raises(BadInputError) as raised:
        as_stated(problem.model_copy(update=changed))
    assert raised.value.where == "job.model"


def test_a_rank_that_a_plan_leaves_out_is_missed_unless_another_holds_as_much() -> None:
    """Three stages: the first has most in flight and the embedding, the last the logits, the middle less than both."""
    problem = explicit("dense", {"pp": 3}, 6)
    assert [problem.rank, *(each.rank for each in problem.ranks)] in ([0, 2], [2, 0])
    assert refuted(problem) == []
    assert refuted(problem, ranks=()) == ["ranks"]
    wrong = problem.ranks[0].model_copy(update={"rank": 1})
    assert "ranks" in refuted(problem, ranks=(wrong,))
    activations = problem.ranks[0].activations.model_copy(update={"kept_bytes": 1.0})
    less = problem.ranks[0].model_copy(update={"activations": activations})
    assert "ranks.0.activations.kept_bytes" in refuted(problem, ranks=(less,))
    assert refuted(explicit("dense", {"pp": 3, "rank": 1}, 6), rank=2) == ["rank"]
