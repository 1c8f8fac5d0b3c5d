"""What selective recomputation of a derived problem counts on, launcher by launcher."""

from __future__ import annotations

from typing import Any

import pytest

from planner.errors import BadInputError
from planner.paper import DeriveOptions
from planner.papers.layout.cost import derive
from planner.papers.layout.derived import LayoutDerivedProblem
from planner.papers.layout.problem import LayoutProblem
from planner.validation import validate

LINK = {"bandwidth_bytes_per_s": 5e10, "latency_s": 1e-5}


def problem(model: str, rules: str, search: dict[str, Any] | None = None, **code: Any) -> LayoutProblem:
    given = {
        "paper": "layout",
        "launcher_rules": rules,
        "batch": {"global_batch_size": 16, "sequence_length": 4096},
        "search": {"tp": [1], "cp": [1], "pp": [1], "ep": [1], "etp": [1], "micro_batch": [1], **(search or {})},
        "derive": {
            "model": model,
            "profile": "h100-sxm",
            "extrapolate": "roofline",
            "cluster": {"num_ranks": 16, "gpus_per_node": 8, "inter_node": LINK},
            "training_code": code,
        },
    }
    return derive(validate(LayoutDerivedProblem, given), DeriveOptions()).problem


@pytest.mark.parametrize(
    ("model", "rules", "modules"),
    [
        ("llama-3.1-8b", "none", ("norms", "ffn_activation")),
        # Both norms of a dense layer are fused into the products that read them.
        ("llama-3.1-8b", "megatron", None),
        ("mixtral-8x7b", "megatron", ("ffn_norm", "expert_activation")),
        ("deepseek-v3", "megatron", ("attention_norm", "ffn_norm", "expert_activation", "latent_up")),
        ("mixtral-8x7b", "deepspeed", None),
        ("mixtral-8x7b", "torchtitan", None),
    ],
)
def test_modules_are_those_that_the_launcher_can_be_told(
    model: str, rules: str, modules: tuple[str, ...] | None
) -> None:
    found = problem(model, rules)
    assert found.costs.selective == modules
    assert ("selective" in found.search.recompute) == (modules is not None)
    layer = next(row for row in found.costs.rows if row.kind in ("dense", "moe"))
    assert (layer.selective_bytes < layer.kept_bytes) == (modules is not None)


def test_a_layer_saves_only_what_its_own_kind_can_run_again() -> None:
    """DeepSeek-V3 under Megatron-LM: a dense layer the norm before attention and what is between the latents and the
    heads, 2h + 128 (4·192 + 2·128) bytes a token; one of experts another norm and 8 x 2f of experts of 2,048, too."""
    found = problem("deepseek-v3", "megatron")
    dense, moe = (next(row for row in found.costs.rows if row.kind == kind) for kind in ("dense", "moe"))
    shared = 2 * 7168 + 128 * (4 * 192 + 2 * 128)
    assert dense.kept_bytes - dense.selective_bytes == pytest.approx(4096 * shared)
    assert moe.kept_bytes - moe.selective_bytes == pytest.approx(4096 * (shared + 2 * 7168 + 8 * 2 * 2048))


@pytest.mark.parametrize(
    ("model", "rules", "search", "stated", "where", "said"),
    [
        ("llama-3.1-8b", "megatron", {}, ["ffn_activation"], "derive.training_code.selective", "ffn_activation"),
        ("llama-3.1-8b", "megatron", {"recompute": ["selective"]}, None, "search.recompute", "fused into products"),
        ("llama-3.1-8b", "deepspeed", {}, ["norms"], "derive.training_code.selective", "whole layers"),
        ("llama-3.1-8b", "deepspeed", {"recompute": ["selective"]}, None, "search.recompute", "whole layers"),
        ("llama-3.1-8b", "torchtitan", {"recompute": ["selective"]}, None, "search.recompute", "list of operators"),
    ],
)
def test_what_the_launcher_cannot_say_is_refused_by_name(
    model: str, rules: str, search: dict[str, Any], stated: list[str] | None, where: str, said: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        problem(model, rules, search, **({"selective": stated} if stated else {}))
    assert caught.value.where == where
    assert said in caught.value.message


def test_stated_modules_that_the_launcher_has_are_taken() -> None:
    found = problem("llama-3.1-8b", "megatron", {"recompute": ["selective"]}, selective=["norms"])
    (dense,) = (row for row in found.costs.rows if row.kind == "dense")
    assert found.costs.selective == ("norms",)
    # Two norms' outputs of 4,096 numbers in two bytes.
    assert dense.kept_bytes - dense.selective_bytes == 4096 * 2 * 2 * 4096
    assert "selective" in problem("llama-3.1-8b", "torchtitan", selective=["norms"]).search.recompute
