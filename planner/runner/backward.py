"""The backward of attention on the CPU, for a part of the keys: five products where the forward has two."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from profiles.measure.kernels import Array, Kernels

BLOCK_ROWS = 256
Floats = npt.NDArray[np.float32]


def attention_backward(
    kernels: Kernels, q: Array, k: Array, v: Array, out: Array, lse: Array, grad: Array
) -> tuple[Array, Array, Array]:
    """Gradients of q, k and v, each (heads, rows, d), from that of the output.

    ``out`` and ``lse`` are of the attention to *all* keys; k and v may be a part of them, and the gradients of q over
    the parts then add up.
    """
    if kernels.name == "torch":
        return _torch_backward(q, k, v, out, lse, grad)
    return _numpy_backward(q, k, v, out, lse, grad)


def _torch_backward(q: Any, k: Any, v: Any, out: Any, lse: Any, grad: Any) -> tuple[Any, Any, Any]:
    import torch

    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    found = fused(grad[None], q[None], k[None], v[None], out[None], lse[None], 0.0, False)
    return found[0][0], found[1][0], found[2][0]


def _numpy_backward(
    q: Floats, k: Floats, v: Floats, out: Floats, lse: Floats, grad: Floats
) -> tuple[Floats, Floats, Floats]:
    heads, rows, depth = q.shape
    scale = np.float32(depth**-0.5)
    dq, dk, dv = np.empty_like(q), np.zeros(k.shape, np.float32), np.zeros(v.shape, np.float32)
    for head in range(heads):
        for start in range(0, rows, BLOCK_ROWS):
            some = slice(start, min(start + BLOCK_ROWS, rows))
            scores = (q[head, some] * scale) @ k[head].T
            shares = np.exp(np.subtract(scores, lse[head, some, None], out=scores), out=scores)
            dv[head] += shares.T @ grad[head, some]
            inner = grad[head, some] @ v[head].T
            inner -= np.einsum("rd,rd->r", grad[head, some], out[head, some])[:, None]
            inner *= shares
            inner *= scale
            dq[head, some] = inner @ k[head]
            dk[head] += inner.T @ q[head, some]
    return dq, dk, dv
