"""The CPU's kernels: what is measured here and what `plan run` executes are the same functions.

`cpu_kernels()` gives those of torch where it is importable, else of numpy. A price is only worth something for the
kernel it was measured with, so a table states `Kernels.name`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from profiles.errors import ProfileError, UnknownNameError, shown

Array: TypeAlias = Any
"""An array of the library: numpy.ndarray or torch.Tensor."""

LIBRARIES = ("torch", "numpy")
NO_TORCH = "torch is not installed: pip install 'girih[measure]'"


class Kernels(Protocol):
    """One library on the CPU. Arrays are contiguous; `dtypes` are names of `profiles.families.DTYPE_BYTES`."""

    name: str
    version: str
    dtypes: tuple[str, ...]

    def array(self, shape: Sequence[int], dtype: str, seed: int) -> Array:
        """Normally distributed numbers that repeat after `random_numbers.BLOCK`; the same seed gives the same array."""

    def matmul(self, a: Array, b: Array) -> Array:
        """(m, k) @ (k, n)."""

    def attention(self, q: Array, k: Array, v: Array, *, causal: bool = False) -> Array:
        """softmax(q k^T / sqrt(d)) v for (heads, L, d) each; k and v may have fewer heads, a divisor of q's.

        `causal` lets query i see keys up to i. Scores never exist as a whole matrix.
        """

    def attention_with_lse(self, q: Array, k: Array, v: Array) -> tuple[Array, Array]:
        """`attention`, and the logarithm of its softmax denominators, float32 (heads, L).

        Parts over disjoint keys merge: weights exp(lse_i - logsumexp of all lse_i).
        """

    def copy(self, target: Array, source: Array) -> None:
        """Copy `source` over `target`."""

    def numpy(self, a: Array) -> npt.NDArray[Any]:
        """The array for numpy: without a copy where numpy has the dtype, else as float32 (bf16)."""

    def from_numpy(self, x: npt.NDArray[Any], dtype: str) -> Array:
        """An array of the library from numpy's; without a copy where dtype and layout allow it."""


def torch_is_importable() -> bool:
    """Whether torch is installed, without importing it."""
    return importlib.util.find_spec("torch") is not None


@lru_cache(maxsize=1)
def torch_failure() -> str | None:
    """Why a torch that is installed cannot be imported (a library it needs is missing, ...), or None; imports it."""
    if not torch_is_importable():
        return None
    try:
        import torch  # noqa: F401
    except Exception as error:  # a broken installation raises whatever it likes
        reason = " ".join(str(error).split()) or type(error).__name__
        return f"torch is installed but cannot be imported: {shown(reason, 200)}; --library numpy works without it"
    return None


def cpu_kernels(name: str | None = None, threads: int = 1) -> Kernels:
    """The kernels of library `name`, or of torch where it is importable, else of numpy; torch's threads are set.

    numpy's threads are settled when numpy is loaded: `profiles.measure.processes` starts its processes with the right
    environment. Raises `ProfileError` for an unknown name, or for torch where it is not installed or broken.
    """
    if name is not None and name not in LIBRARIES:
        raise UnknownNameError("library", name, LIBRARIES, code="out_of_range")
    if name == "torch" and not torch_is_importable():
        raise ProfileError(NO_TORCH, code="out_of_range", where="library")
    if name == "numpy" or not torch_is_importable():
        from profiles.measure.numpy_kernels import NumpyKernels

        return NumpyKernels()
    failure = torch_failure()
    if failure is not None:
        raise ProfileError(failure, code="out_of_range", where="library")
    from profiles.measure.torch_kernels import TorchKernels

    return TorchKernels(threads)


def merge_attention(parts: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]]) -> npt.NDArray[Any]:
    """Attention over all keys from (output, lse) of disjoint parts of them; (heads, L, d) and (heads, L) in numpy."""
    lse = np.stack([part[1] for part in parts])
    weights = np.exp(lse - lse.max(axis=0))
    weights /= weights.sum(axis=0)
    return np.asarray(sum(weight[..., None] * part[0] for weight, part in zip(weights, parts, strict=True)))
