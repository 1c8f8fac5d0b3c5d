"""numpy on the CPU: float32 only, attention in blocks of queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from profiles.measure.random_numbers import BLOCK

Floats = npt.NDArray[np.float32]

BLOCK_ROWS = 256
"""Queries at a time: a block's scores stay in the cache for a few thousand keys."""


class NumpyKernels:
    """The kernels of numpy; see `profiles.measure.kernels.Kernels`."""

    name = "numpy"
    version = np.__version__
    dtypes: tuple[str, ...] = ("fp32",)

    def array(self, shape: Sequence[int], dtype: str, seed: int) -> Floats:
        """Normally distributed float32 numbers. Raises ValueError for another dtype."""
        self._check(dtype)
        count = math.prod(shape)
        block = np.random.default_rng(seed).standard_normal(min(count, BLOCK), dtype=np.float32)
        return (block if count <= BLOCK else np.resize(block, count)).reshape(tuple(shape))

    def matmul(self, a: Floats, b: Floats) -> Floats:
        """(m, k) @ (k, n)."""
        found: Floats = np.matmul(a, b)
        return found

    def attention(self, q: Floats, k: Floats, v: Floats, *, causal: bool = False) -> Floats:
        """Attention of (heads, L, d); k and v may have fewer heads."""
        return self._attention(q, k, v, causal)[0]

    def attention_with_lse(self, q: Floats, k: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Attention, and the logarithm of its denominators (heads, L)."""
        return self._attention(q, k, v, False)

    def copy(self, target: Floats, source: Floats) -> None:
        """Copy `source` over `target`."""
        np.copyto(target, source)

    def numpy(self, a: Floats) -> Floats:
        """The array itself."""
        return a

    def from_numpy(self, x: npt.NDArray[Any], dtype: str) -> Floats:
        """`x` as contiguous float32."""
        self._check(dtype)
        return np.ascontiguousarray(x, dtype=np.float32)

    def _check(self, dtype: str) -> None:
        if dtype not in self.dtypes:
            raise ValueError(f"numpy measures {', '.join(self.dtypes)}, not {dtype}")

    def _attention(self, q: Floats, k: Floats, v: Floats, causal: bool) -> tuple[Floats, Floats]:
        heads, rows, depth = q.shape
        group = heads // k.shape[0]
        out, lse = np.empty((heads, rows, v.shape[2]), np.float32), np.empty((heads, rows), np.float32)
        scale = np.float32(depth**-0.5)
        for head in range(heads):
            keys, values = k[head // group], v[head // group]
            for start in range(0, rows, BLOCK_ROWS):
                stop = min(start + BLOCK_ROWS, rows)
                seen = min(stop, len(keys)) if causal else len(keys)
                scores = (q[head, start:stop] * scale) @ keys[:seen].T
                if causal:
                    scores[np.arange(seen) > np.arange(start, stop)[:, None]] = -np.inf
                largest = scores.max(axis=1, keepdims=True)
                np.exp(np.subtract(scores, largest, out=scores), out=scores)
                total = scores.sum(axis=1, keepdims=True)
                np.divide(scores @ values[:seen], total, out=out[head, start:stop])
                lse[head, start:stop] = (largest + np.log(total))[:, 0]
        return out, lse
