"""Pools that a solution states for a demand: may they be used, and is what it says of them true?"""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.findings import Findings
from planner.papers.janus.checks.latency import LayerSeconds, layer_seconds
from planner.papers.janus.checks.offers import TOLERANCE, Offer, agree
from planner.papers.janus.checks.operating_point import smallest_batch
from planner.papers.janus.costs import ActivatedTable
from planner.papers.janus.problem import SizingProblem
from planner.printable import printable

FIXED_POINT = 1e-6
"""Relative distance of the batch from lambda x TPOT, and from a smaller batch, that is put down to rounding."""
MOST = 2**31
"""Instances with which seconds are still computed; no problem allows so many."""


@dataclass(frozen=True)
class Stated:
    """Pools as a solution states them, and where in it."""

    n_a: int
    n_e: int
    device: str | None
    batch: float
    tpot_s: float
    where: str

    def at(self, name: str) -> str:
        """The place of one of its fields."""
        return f"{self.where}.{name}" if self.where else name


@dataclass(frozen=True)
class Recomputed:
    """The same pools on their offer, computed again at the stated batch."""

    offer: Offer
    layer: LayerSeconds
    objective: float


def check_pools(
    problem: SizingProblem, known: dict[str | None, Offer], demand: float, stated: Stated, found: Findings
) -> Recomputed | None:
    """The pools computed again; None where the problem does not let them be."""
    offer = _offer(problem, known, stated, found)
    if offer is None or not _allowed(offer, stated, found):
        return None
    batch, largest = stated.batch, offer.largest_batch
    if not 1 - TOLERANCE <= batch <= largest * (1 + TOLERANCE):
        found.add("batch_range", f"expected 1 to {largest} requests, got {batch!r}", stated.at("batch"))
        return None
    batch = min(max(batch, 1.0), float(largest))
    layer = layer_seconds(offer, stated.n_a, stated.n_e, batch)
    tpot_s = problem.num_layers * float(layer.total_s)
    _check_fixed_point(offer, demand, stated, batch, tpot_s, found)
    if not agree(stated.tpot_s, tpot_s):
        found.add("tpot_mismatch", f"stated {stated.tpot_s!r}, recomputed {tpot_s!r}", stated.at("tpot_s"))
    if tpot_s > problem.slo_tpot_s * (1 + TOLERANCE) ** 2:
        message = f"a token takes {tpot_s!r} s, expected at most {problem.slo_tpot_s!r} s"
        found.add("tpot_slo", message, stated.at("tpot_s"))
    if offer.memory is not None:
        used, most = offer.bytes_of(requests_of(stated.batch, stated.n_a)), offer.memory.capacity_bytes
        if used > most * (1 + TOLERANCE):
            found.add("attention_memory", f"needs {used!r} bytes, there are {most!r}", stated.at("attention_instances"))
    if not offer.slots_fit:
        message = f"the {offer.slots} slots of an instance do not fit its memory"
        found.add("expert_memory", message, stated.at("expert_instances"))
    return Recomputed(offer, layer, offer.objective(stated.n_a, stated.n_e))


def requests_of(batch: float, n_a: int) -> int:
    """Whole requests of an attention instance (page, "Model", 6)."""
    return math.ceil(batch / n_a - 1e-9)


def _offer(problem: SizingProblem, known: dict[str | None, Offer], stated: Stated, found: Findings) -> Offer | None:
    if stated.device in known:
        return known[stated.device]
    if any(device.id == stated.device for device in problem.devices) or (stated.device is None and not problem.devices):
        found.add("a_max_table_missing", "the problem's routing has not been read into a table", "a_max")
        return None
    names = ", ".join(printable(device.id) for device in problem.devices) or "none"
    shown = "none" if stated.device is None else printable(stated.device)[:100]
    found.add(
        "unknown_device", f"expected one of the problem's devices ({names[:300]}), got {shown}", stated.at("device")
    )
    return None


def _allowed(offer: Offer, stated: Stated, found: Findings) -> bool:
    """Whether the pools are pools at all and have what is needed to compute them; limits and rules are noted."""
    n_a, n_e, limits = stated.n_a, stated.n_e, offer.limits
    for name, number in (("attention_instances", n_a), ("expert_instances", n_e)):
        if number < 1:
            found.add("not_a_positive_integer", f"expected at least 1, got {number}", stated.at(name))
            return False
    experts, slots = offer.problem.num_experts, n_e * offer.slots
    if slots < experts:
        message = f"{n_e} instances have {slots} slots for {experts} experts"
        found.add("expert_slots", message, stated.at("expert_instances"))
    for name, number, most in (
        ("attention_instances", n_a, limits.max_attention_instances),
        ("expert_instances", n_e, limits.max_expert_instances),
        ("total_instances", n_a + n_e, limits.max_total_instances),
    ):
        if number > most:
            found.add("gpu_limit", f"expected at most {most}, got {number}", stated.at(name))
    if max(n_a, n_e) > MOST:
        return False
    if not offer.started(n_a, n_e):
        message = f"{offer.problem.launcher_rules} does not start {n_a} attention and {n_e} expert instances"
        found.add("launcher_rules", message, stated.at("attention_instances"))
    if isinstance(offer.a_max, ActivatedTable) and n_e < offer.a_max.expert_instances[0]:
        first = offer.a_max.expert_instances[0]
        message = f"the table starts at {first} expert instances, {n_e} are stated"
        found.add("a_max_table_missing", message, stated.at("expert_instances"))
        return False
    return True


def _check_fixed_point(
    offer: Offer, demand: float, stated: Stated, batch: float, tpot_s: float, found: Findings
) -> None:
    wanted = max(1.0, demand * tpot_s)
    if not abs(stated.batch - wanted) <= FIXED_POINT * wanted:
        message = f"{stated.batch!r} requests are in flight, but so many take {tpot_s!r} s a token: {wanted!r}"
        found.add("not_a_fixed_point", message, stated.at("batch"))
        return
    # A batch that demand only just touches may be taken for a fixed point or not: rounding decides.
    smaller = smallest_batch(offer, stated.n_a, stated.n_e, demand, margin=TOLERANCE)
    if smaller is not None and smaller < batch * (1 - FIXED_POINT):
        message = f"{stated.batch!r} requests are stated, but {smaller!r} already carry the demand"
        found.add("not_the_smallest_fixed_point", message, stated.at("batch"))


def same_way(layer: LayerSeconds, comm_case: int) -> bool:
    """Whether the stated way of sending is the faster, 1 direct or 2 by multicast; where both are equal, either."""
    direct_s, multicast_s = float(layer.direct_s), float(layer.multicast_s)
    return comm_case in (1, 2) and (agree(direct_s, multicast_s) or (direct_s < multicast_s) == (comm_case == 1))
