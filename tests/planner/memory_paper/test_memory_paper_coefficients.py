"""The check counts every byte field of a derived problem again, from the model alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import BadInputError
from planner.paper import DeriveOptions
from planner.papers.memory.check import check
from planner.papers.memory.checks.coefficients import differing
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
    schedules = ["1f1b", "gpipe", "interleaved", "zb1p", "zb2p", "zbv", "v_half", "v_min"]
    schedule = draw(st.sampled_from(schedules))
    layout: dict[str, Any] = {
        "tp": draw(st.sampled_from([1, 2, 4])),
        "cp": draw(st.sampled_from([1, 2])),
        "pp": pp,
        "vpp": draw(st.sampled_from({1: [1], 2: [1, 2, 3, 6], 3: [1, 2, 4]}[pp])) if schedule == "interleaved" else 1,
        "rank": draw(st.integers(0, pp - 1)),
        "schedule": schedule,
        "sequence_parallel": draw(st.booleans()),
    }
    if model in ("moe", "mla"):
        layout |= {"ep": draw(st.sampled_from([1, 2, 4])), "etp": draw(st.sampled_from([1, 2]))}
    flags = ("flash_attention", "dropout", "fused_norm", "fused_gate", "regathered", "parallel_loss")
    modules = st.lists(st.sampled_from(["core_attention", "norms", "ffn_activation", "latent_up"]), unique=True)
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


def test_a_problem_whose_bytes_were_changed_states_them_and_has_no_job() -> None:
    problem = explicit("dense", {"tp": 2}, 4)
    assert problem.sorted().job is not None
    more = {"activations": problem.activations.model_copy(update={"kept_bytes": 2 * problem.activations.kept_bytes})}
    assert problem.model_copy(update=more).sorted().job is None


def test_a_job_of_a_file_is_refused() -> None:
    """A plan holds sizes, so that nothing outside is read."""
    problem = explicit("dense", {}, 1)
    assert problem.job is not None
    job = problem.job.model_copy(update={"model": "./elsewhere.json"})
    with pytest.raises(BadInputError):
        problem.model_copy(update={"job": job}).sorted()
