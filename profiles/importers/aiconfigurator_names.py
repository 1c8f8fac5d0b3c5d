"""The database's words for dtypes and operations, and ours."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Texts = npt.NDArray[np.str_]

DTYPES = {
    "bfloat16": "bf16",
    "half": "fp16",
    "float16": "fp16",
    "fp8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_block": "fp8_block",
    "nvfp4": "nvfp4",
    "fp4": "nvfp4",
    "int8": "int8",
    "sq": "int8",  # SmoothQuant: int8 weights and activations
    "int8_wo": "w8a16",
    "int4_wo": "w4a16",
    "w4afp8": "w4a8",
    "w4a16_mxfp4": "w4a16_mxfp4",
    "w4a8_mxfp4_mxfp8": "w4a8_mxfp4_mxfp8",
}
ELEMENT_BYTES = {"half": 2, "float16": 2, "bfloat16": 2, "int8": 1, "fp8": 1, "float": 4}
OPERATIONS = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
}


def own_dtypes(theirs: Texts) -> Texts:
    """Our name of each dtype; theirs where we have none."""
    names, place = np.unique(theirs, return_inverse=True)
    return np.array([DTYPES.get(name, name) for name in names.tolist()])[place.reshape(-1)]


def paired(first: Texts, cached: Texts) -> Texts:
    """One name for what is computed in (or the weights are of) `first` and keeps its cache in `cached`."""
    both = np.char.add(np.char.add(own_dtypes(first), "_kv_"), own_dtypes(cached))
    names, place = np.unique(both, return_inverse=True)
    short = [left if left == right else name for name in names.tolist() for left, right in [name.split("_kv_")]]
    return np.array(short)[place.reshape(-1)]
