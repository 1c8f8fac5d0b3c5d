"""How many random numbers operands hold before they repeat."""

from __future__ import annotations

BLOCK = 1 << 20
"""Making them must not take longer than what is measured with them."""
