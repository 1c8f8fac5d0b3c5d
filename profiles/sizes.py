"""What a lookup is given: numbers or arrays, checked once and broadcast to flat arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from profiles.errors import ProfileError

Floats = npt.NDArray[np.float64]
Sizes = int | float | Sequence[int] | Sequence[float] | npt.NDArray[np.int64] | npt.NDArray[np.float64]


def checked(value: Sizes, name: str) -> Floats:
    """`value` as float64. Raises `ProfileError` unless all of it is finite and above zero."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ProfileError(
            f"expected {name} as a number or an array of numbers", code="wrong_type", where=name
        ) from None
    if not np.isfinite(array).all():
        raise ProfileError(f"expected {name} to be finite", code="not_finite", where=name)
    if (array <= 0).any():
        raise ProfileError(f"expected {name} > 0, got {array.min():g}", code="out_of_range", where=name)
    return array


def flat(axes: Mapping[str, Sizes]) -> tuple[dict[str, Floats], tuple[int, ...]]:
    """The axes broadcast against each other and flattened, and the shape they had."""
    arrays = np.broadcast_arrays(*(checked(value, name) for name, value in axes.items()))
    return {name: array.reshape(-1) for name, array in zip(axes, arrays, strict=True)}, arrays[0].shape


def pick(axes: Mapping[str, Floats], rows: npt.NDArray[np.bool_]) -> dict[str, Floats]:
    """The queries of a mask."""
    return {axis: column[rows] for axis, column in axes.items()}
