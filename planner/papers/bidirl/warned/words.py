"""How messages speak of a count."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def replicas_said(count: int) -> str:
    """A count of replicas."""
    return counted(count, "replica")
