"""torch on the CPU: fp32 and bf16, the fused attention that scaled_dot_product_attention takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from profiles.measure.random_numbers import BLOCK

TORCH_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


class TorchKernels:
    """The kernels of torch; see `profiles.measure.kernels.Kernels`."""

    name = "torch"
    version = str(torch.__version__)
    dtypes: tuple[str, ...] = tuple(TORCH_DTYPES)

    def __init__(self, threads: int = 1) -> None:
        torch.set_num_threads(threads)

    def array(self, shape: Sequence[int], dtype: str, seed: int) -> torch.Tensor:
        """Normally distributed numbers."""
        generator = torch.Generator().manual_seed(seed)
        count = math.prod(shape)
        block = torch.randn(min(count, BLOCK), generator=generator).to(TORCH_DTYPES[dtype])
        return block.repeat(-(-count // max(1, len(block))))[:count].reshape(tuple(shape))

    def matmul(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """(m, k) @ (k, n)."""
        return torch.mm(a, b)

    def attention(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
        """Attention of (heads, L, d); k and v may have fewer heads."""
        fewer = k.shape[0] != q.shape[0]
        found: torch.Tensor = torch.nn.functional.scaled_dot_product_attention(
            q[None], k[None], v[None], is_causal=causal, enable_gqa=fewer
        )
        return found[0]

    def attention_with_lse(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Attention, and the logarithm of its denominators (heads, L); the kernel that `attention` takes as well."""
        group = q.shape[0] // k.shape[0]
        if group > 1:
            k, v = k.repeat_interleave(group, 0), v.repeat_interleave(group, 0)
        fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        out, lse = fused(q[None], k[None], v[None])
        return out[0], lse[0].float()

    def copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """Copy `source` over `target`."""
        target.copy_(source)

    def numpy(self, a: torch.Tensor) -> npt.NDArray[Any]:
        """The same memory for numpy; bf16 as float32."""
        found: npt.NDArray[Any] = (a.float() if a.dtype == torch.bfloat16 else a).contiguous().numpy()
        return found

    def from_numpy(self, x: npt.NDArray[Any], dtype: str) -> torch.Tensor:
        """The same memory as a tensor, converted where `dtype` is another."""
        return torch.from_numpy(np.ascontiguousarray(x)).to(TORCH_DTYPES[dtype])
