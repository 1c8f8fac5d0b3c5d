"""Weights as the products that kernels run."""

from __future__ import annotations

import pytest

from profiles.geometry import load_model, model_names
from profiles.geometry.products import products


@pytest.mark.parametrize("name", model_names())
def test_products_have_the_flops_of_their_weights(name: str) -> None:
    for kind, _ in load_model(name).kinds():
        matrices = [w for w in kind.weights if not w.vector and w.part != "experts"]
        shapes = products(matrices)
        assert sum(2 * p.out_features * p.in_features for p in shapes) == sum(w.flops_per_token for w in matrices)


def test_what_reads_the_same_rows_is_one_product() -> None:
    # Qwen3-235B: 64 query and 2 x 4 key and value heads of 128.
    grouped = products(w for w in load_model("qwen3-235b-a22b").kinds()[0][0].weights if w.part == "attention")
    assert [(p.name, p.out_features, p.in_features) for p in grouped] == [("q+k+v", 9216, 4096), ("o", 4096, 8192)]
    latent = products(w for w in load_model("deepseek-v3").kinds()[1][0].weights if w.part == "attention")
    assert {p.name: (p.out_features, p.in_features) for p in latent} == {
        "q_b": (128 * 192, 1536),
        "kv_a+q_a": (576 + 1536, 7168),
        "kv_b": (128 * 256, 512),
        "o": (7168, 128 * 128),
    }
    shared = products(w for w in load_model("deepseek-v3").kinds()[1][0].weights if w.part == "shared_experts")
    assert [(p.out_features, p.in_features) for p in shared] == [(4096, 7168), (7168, 2048)]
