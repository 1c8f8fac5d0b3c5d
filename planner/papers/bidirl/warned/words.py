"""How warnings speak of replicas."""

from __future__ import annotations


def replicas_said(count: int) -> str:
    """A count with its noun."""
    return f"{count} replica" + ("" if count == 1 else "s")
