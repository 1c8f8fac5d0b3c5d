"""The CPU's kernels give what their names say, the same in both libraries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from profiles.errors import ProfileError
from profiles.measure.kernels import Kernels, cpu_kernels, merge_attention, torch_is_importable
from profiles.measure.numpy_kernels import BLOCK_ROWS
from profiles.measure.random_numbers import BLOCK

TORCH = pytest.param("torch", marks=pytest.mark.skipif(not torch_is_importable(), reason="torch is not installed"))


@pytest.fixture(params=["numpy", TORCH])
def kernels(request: pytest.FixtureRequest) -> Iterator[Kernels]:
    """Each library; torch's thread count is put back."""
    if request.param == "torch":
        import torch

        threads = torch.get_num_threads()
        yield cpu_kernels("torch")
        torch.set_num_threads(threads)
    else:
        yield cpu_kernels("numpy")


def attention(q: Any, k: Any, v: Any, causal: bool) -> tuple[Any, Any]:
    """Softmax attention in float64, by its definition; and the logarithm of its denominators."""
    group = len(q) // len(k)
    k, v = np.repeat(k, group, 0).astype(np.float64), np.repeat(v, group, 0).astype(np.float64)
    scores = q.astype(np.float64) @ k.swapaxes(1, 2) / np.sqrt(q.shape[2])
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[1:], dtype=bool)), scores, -np.inf)
    weights = np.exp(scores)
    return weights @ v / weights.sum(2, keepdims=True), np.log(weights.sum(2))


def test_arrays_depend_on_the_seed_alone_and_are_of_any_size(kernels: Kernels) -> None:
    first, again, other = (kernels.numpy(kernels.array((3, 5), "fp32", seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert kernels.numpy(kernels.array((2, BLOCK + 3), "fp32", 0)).shape == (2, BLOCK + 3)


def test_products_are_products(kernels: Kernels) -> None:
    a, b = kernels.array((7, 11), "fp32", 0), kernels.array((11, 3), "fp32", 1)
    assert np.allclose(kernels.numpy(kernels.matmul(a, b)), kernels.numpy(a) @ kernels.numpy(b), atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_attention_is_softmax_attention_in_blocks(kernels: Kernels, causal: bool, kv_heads: int) -> None:
    rows = BLOCK_ROWS + 9  # a whole block and a part of one
    q = kernels.array((4, rows, 16), "fp32", 0)
    k, v = (kernels.array((kv_heads, rows, 16), "fp32", seed) for seed in (1, 2))
    expected, _ = attention(kernels.numpy(q), kernels.numpy(k), kernels.numpy(v), causal)
    assert np.allclose(kernels.numpy(kernels.attention(q, k, v, causal=causal)), expected, atol=1e-5)


def test_parts_over_the_keys_merge_to_the_whole(kernels: Kernels) -> None:
    q = kernels.array((2, 5, 8), "fp32", 0)
    k, v = (kernels.array((2, 13, 8), "fp32", seed) for seed in (1, 2))
    parts = []
    for cut in (slice(0, 4), slice(4, 13)):
        found = kernels.attention_with_lse(q, *(kernels.from_numpy(kernels.numpy(x)[:, cut], "fp32") for x in (k, v)))
        parts.append((kernels.numpy(found[0]), kernels.numpy(found[1])))
    whole, lse = attention(kernels.numpy(q), kernels.numpy(k), kernels.numpy(v), causal=False)
    assert np.allclose(merge_attention(parts), whole, atol=1e-5)
    assert np.allclose(kernels.numpy(kernels.attention_with_lse(q, k, v)[1]), lse, atol=1e-5)


def test_copies_copy(kernels: Kernels) -> None:
    source, target = kernels.array((9,), "fp32", 0), kernels.array((9,), "fp32", 1)
    kernels.copy(target, source)
    assert np.array_equal(kernels.numpy(target), kernels.numpy(source))


def test_half_precision_needs_torch() -> None:
    with pytest.raises(ValueError, match="numpy measures fp32, not bf16"):
        cpu_kernels("numpy").array((1,), "bf16", 0)
    if torch_is_importable():
        kernels = cpu_kernels("torch")
        x = kernels.array((4, 4), "bf16", 0)
        assert kernels.numpy(x).dtype == np.float32
        assert np.array_equal(kernels.numpy(kernels.from_numpy(kernels.numpy(x), "bf16")), kernels.numpy(x))


def test_without_torch_numpy_serves_and_torch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profiles.measure.kernels.torch_is_importable", lambda: False)
    assert cpu_kernels().name == "numpy"
    with pytest.raises(ProfileError, match=r"pip install 'girih\[measure\]'"):
        cpu_kernels("torch")
    with pytest.raises(ProfileError, match="unknown library 'jax'"):
        cpu_kernels("jax")
