"""Provably good parallelism and scheduling plans: ``from planner import solve, check, load, dump, diff``.

Functions are safe to call from any thread; there is no global state.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Limits", "Options", "PlanError", "check", "diff", "dump", "load", "solve", "what_if"]
_HOMES = {"Limits": "solvers.report", "Options": "planner.plan", "PlanError": "planner.errors"}

if TYPE_CHECKING:
    from planner.api import check, diff, dump, load, solve, what_if
    from planner.errors import PlanError
    from planner.plan import Options
    from solvers.report import Limits


def __getattr__(name: str) -> Any:
    # The command line imports this package for --help, which must not pay for pydantic and numpy.
    if name in __all__:
        return getattr(import_module(_HOMES.get(name, "planner.api")), name)
    raise AttributeError(f"module 'planner' has no attribute {name!r}")
