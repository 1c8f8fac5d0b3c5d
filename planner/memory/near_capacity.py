"""How full a device may be planned before its reader is warned (memory page, section 11)."""

from __future__ import annotations

NEAR_CAPACITY = 0.85
"""Share of a device's memory: above it the model, which has no allocator, is an optimist, and worth a warning."""
