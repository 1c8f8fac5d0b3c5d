"""Combinations that have no price: said where some are missing, refused where all are."""

from __future__ import annotations

from collections.abc import Mapping

from planner.errors import BadInputError
from planner.papers.layout.costs.rows import Priced
from planner.papers.layout.derived import Derive
from planner.papers.layout.table import Kind


def refuse_all_missing(given: Derive, found: Mapping[Kind, Priced]) -> None:
    """Raise BadInputError naming what a kind of layer lacks, if none of its combinations has a price."""
    for kind, each in found.items():
        if len(each.kept):
            continue
        if not len(each.cuts):
            continue
        family, message = next(iter(each.times.reasons.items()))
        raise BadInputError(
            f"no combination of the search has a price for {kind} layers: {message}",
            code="outside_measured_range",
            where=_place(given, family),
        )


def missing_of(found: Mapping[Kind, Priced]) -> dict[str, str]:
    """Of each kind, how many combinations lack a price and why: the first reason, without its advice."""
    return {
        kind: f"{len(each.cuts) - len(each.kept):,} of {len(each.cuts):,}: {_reason(each)}"
        for kind, each in found.items()
        if len(each.kept) < len(each.cuts)
    }


def _reason(each: Priced) -> str:
    return next(iter(each.times.reasons.values())).partition(". ")[0]


def _place(given: Derive, family: str) -> str:
    """The field that can change it."""
    if family == "network":
        return "derive.cluster.inter_node"
    if given.extrapolate == "refuse":
        return "derive.extrapolate"
    if family in ("tp", "etp") or family.startswith("mla"):
        return "derive.model"
    name, _, dtype = family.partition("/")
    if name == "moe_gemm":
        return "derive.workload"
    return "derive.expert_dtype" if dtype == given.expert_dtype != given.dtype else "derive.dtype"
