"""Measuring a device: `measure(options, progress)` runs operations on it and writes a profile, `plan_grid` says which.

Names here are resolved on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profiles.measure.measuring import Outcome as Outcome
    from profiles.measure.measuring import measure as measure
    from profiles.measure.measuring import plan_grid as plan_grid
    from profiles.measure.options import Options as Options

_HOME = {"Options": "options", "Outcome": "measuring", "measure": "measuring", "plan_grid": "measuring"}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'profiles.measure' has no attribute {name!r}")
    return getattr(import_module(f"profiles.measure.{_HOME[name]}"), name)
