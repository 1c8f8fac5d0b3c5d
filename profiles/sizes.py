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
        given = np.asarray(value)
        if given.dtype.kind not in "iuf":
            raise TypeError
        array = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ProfileError(
            f"expected {name} as a number or an array of numbers", code="wrong_type", where=name
        ) from None
    if not np.isfinite(array).all():
        raise ProfileError(f"expected {name} to be finite", code="not_finite", where=name)
    if (array <= 0).any():
        raise ProfileError(f"expected {name} > 0, got {array.min():g}", code="out_of_range", where=name)
    return array


def whole_number(value: object, name: str) -> int:
    """One positive whole number. Raises `ProfileError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ProfileError(f"expected {name} as a whole number, got {value!r}", code="wrong_type", where=name)
    if value < 1:
        raise ProfileError(f"expected {name} >= 1, got {value}", code="out_of_range", where=name)
    return int(value)


def flat(axes: Mapping[str, Sizes]) -> tuple[dict[str, Floats], tuple[int, ...]]:
    """The axes broadcast against each other and flattened, and the shape they had."""
    values = [checked(value, name) for name, value in axes.items()]
    try:
        arrays = np.broadcast_arrays(*values)
    except ValueError:
        shapes = ", ".join(f"{name} {value.shape}" for name, value in zip(axes, values, strict=True))
        raise ProfileError(f"shapes that do not broadcast: {shapes}", code="out_of_range") from None
    return {name: array.reshape(-1) for name, array in zip(axes, arrays, strict=True)}, arrays[0].shape


def pick(axes: Mapping[str, Floats], rows: npt.NDArray[np.bool_]) -> dict[str, Floats]:
    """The queries of a mask."""
    return {axis: column[rows] for axis, column in axes.items()}
