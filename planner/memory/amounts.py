"""What the functions of this package take and give."""

from __future__ import annotations

from typing import Any

Amount = Any
"""A number or a NumPy array of numbers; results have the broadcast shape."""
