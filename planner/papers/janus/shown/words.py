"""Words that all of a plan's views use."""

from __future__ import annotations

from planner.units import amount

CASES = {0: "a constant", 1: "direct", 2: "one-to-one, then multicast"}
"""How the exchange goes, by comm_case."""


def many(count: float, noun: str) -> str:
    """A count with its noun."""
    plural = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{amount(count, noun)}{plural}"


def gpus(least: int, most: int) -> str:
    """How many GPUs, or from how many to how many."""
    return many(least, "GPU") if least == most else f"{least} to {many(most, 'GPU')}"


def pools(attention: int, experts: int, device: str | None = None) -> str:
    """Pools in short, as 2A6E, with their pair of devices."""
    return f"{attention}A{experts}E" + ("" if device is None else f" {device}")


def clock(seconds: float) -> str:
    """A time of the series in days, hours and minutes, and seconds where it has some."""
    whole = round(seconds)
    days, whole = divmod(whole, 86_400)
    said = f"{whole // 3600:02d}:{whole // 60 % 60:02d}" + (f":{whole % 60:02d}" if whole % 60 else "")
    return f"{days}d {said}" if days else said
