"""What a derived problem led to, for the reader of its plan: files by name, what was looked up, how far lines are."""

from __future__ import annotations

from collections.abc import Sequence

from planner.derivation.account import Error, weighted_error
from planner.derivation.clusters import hardware_account, name_only
from planner.json_text import Json
from planner.papers.compass.costs.own import names_only
from planner.papers.compass.costs.pairs import COLLECTIVE
from planner.papers.compass.costs.setting import Setting
from planner.papers.compass.costs.stages import Stages
from planner.papers.compass.derived import Derive
from profiles.experts import whole_formula


def resolved_of(written: Derive, setting: Setting, stages: Sequence[Stages], rest: dict[str, float]) -> Json:
    """The derive object after defaults and overrides, and under ``resolved`` what it led to."""
    document, resolved = hardware_account(written, setting.cluster)
    given = setting.given
    name_only(document, "model")
    names_only(document)
    resolved["model"] = {"name": setting.geometry.name, "layers": setting.geometry.num_layers}
    resolved["tokens"] = given.tokens
    resolved["operators"] = {
        part.pair.id: _account(part, given) for part in sorted(stages, key=lambda part: part.pair.id)
    }
    covered = {
        "gemm_s": _total([part.gemm_s for part in stages], stages),
        "collective_s": _total([part.comm_s for part in stages], stages),
    }
    resolved["step"] = {"operators_in_sequence": covered, "beside_s": rest}
    return {**document, "resolved": resolved}


def error_of(setting: Setting, stages: Sequence[Stages]) -> dict[str, float] | None:
    """The profile's stored error over the families used, weighted by their time in sequence.

    Links across nodes are stated, or have an error of their own, and are left out, as are operators that were measured.
    """
    dtype, times = setting.given.dtype, dict[str, float]()
    for part in stages:
        pair = part.pair
        if pair.id in setting.given.runs or pair.id in setting.given.stages:
            continue
        product = f"moe_gemm/{dtype}" if pair.cutting == "experts" else f"gemm/{dtype}"
        times[product] = times.get(product, 0.0) + pair.count * part.gemm_s
        if pair.ranks <= setting.given.ranks.gpus_per_node:
            family = COLLECTIVE[pair.op]
            times[family] = times.get(family, 0.0) + pair.count * part.comm_s
    errors: dict[str, Error | None] = {}
    for name in times:
        family, _, multiplied = name.partition("/")
        errors[name] = (
            _expert_error(setting) if family == "moe_gemm" else setting.profile.cost_error(family, multiplied)
        )
    return weighted_error(times, errors)


def _expert_error(setting: Setting) -> Error | None:
    """The stored error of interpolation along rows of these experts, or that of the formula if there are none."""
    given = setting.given
    if 1 in setting.expert_rows.expert_ranks():
        return setting.profile.cost_error("moe_gemm", given.dtype)
    return whole_formula(setting.profile, given.workload, given.dtype).error


def _account(part: Stages, given: Derive) -> Json:
    pair = part.pair
    priced = "lines" if part.table is None else "table"
    decided_by = "runs" if pair.id in given.runs else "stages" if pair.id in given.stages else priced
    return {
        "collective": COLLECTIVE[pair.op],
        "message_bytes": pair.message_bytes,
        "gemm": {"m": pair.m, "n": pair.n, "k": pair.k},
        "cut": pair.cutting,
        "decided_by": decided_by,
        "collective_s": float(f"{part.comm_s:.8e}"),
        "gemm_s": float(f"{part.gemm_s:.8e}"),
        "lines_off": None if part.comm is None or part.gemm is None else max(part.comm.worst, part.gemm.worst),
    }


def _total(seconds: Sequence[float], stages: Sequence[Stages]) -> float:
    return float(f"{sum(one * part.pair.count for one, part in zip(seconds, stages, strict=True)):.8e}")
