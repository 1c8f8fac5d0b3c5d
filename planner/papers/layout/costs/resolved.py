"""What a derived problem led to, for the reader of its plan, and how far its prices may be off."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from planner.derivation.account import Error, weighted_error
from planner.derivation.clusters import hardware_account, name_only
from planner.derivation.training.calibration import RowTimes
from planner.json_text import Json
from planner.papers.layout.calibration.learned import Learned
from planner.papers.layout.costs.rows import Priced
from planner.papers.layout.costs.setting import Setting
from planner.papers.layout.costs.unpriced import missing_of
from planner.papers.layout.derived import Derive
from planner.papers.layout.table import Kind
from profiles.experts import FAMILY, whole_formula


def resolved_of(
    written: Derive, setting: Setting, found: Mapping[Kind, Priced], learned: Learned | None
) -> dict[str, Json]:
    """The derive object after defaults and overrides, and under ``resolved`` what it led to."""
    document, resolved = hardware_account(written, setting.cluster)
    name_only(document, "model")
    if isinstance(document.get("runs"), dict):
        name_only(document["runs"], "path")
    geometry = setting.geometry
    resolved["model"] = {
        "name": geometry.name,
        "parameters": geometry.parameters,
        "active_parameters": geometry.active_parameters,
    }
    resolved["rows"] = {kind: len(each.kept) for kind, each in found.items()}
    resolved["unpriced"] = missing_of(found)
    resolved["selective"] = list(setting.selective)
    if learned is not None:
        resolved["runs"] = _of_runs(setting.given, learned)
    return {**document, "resolved": resolved}


def _of_runs(given: Derive, learned: Learned) -> Json:
    """What runs taught, and how well it foretells."""
    errors, memory = learned.errors, learned.memory
    return {
        "calibration": given.calibration.model_dump(),
        "fragmentation": given.fragmentation,
        "reserve_bytes": given.memory.reserve_bytes,
        "step_time_error": None if errors is None else dict(vars(errors)),
        "memory": None if memory is None else dict(vars(memory)),
    }


def error_of(
    setting: Setting, found: Mapping[Kind, Priced], times: Mapping[Kind, RowTimes], learned: Learned | None
) -> dict[str, float] | None:
    """Of step times of runs that were not fitted to, where runs were given and are enough; none where they are too few.

    Without runs the profile's stored error over the families used, weighted by their time in the mean combination.
    What is modelled by bytes, and the link between nodes, have none and are left out.
    """
    if learned is not None:
        errors = learned.errors
        return None if errors is None else {"median": float(f"{errors.median:.4g}"), "p90": float(f"{errors.p90:.4g}")}
    seconds: dict[str, float] = {}
    for kind, each in found.items():
        layers = sum(count for _, count in setting.kinds[kind]) if kind in setting.kinds else 1
        for family, amount in times[kind].by_family.items():
            if family in ("elementwise", "network"):
                continue
            mean = float(np.mean(amount[each.kept])) if len(each.kept) else 0.0
            seconds[family] = seconds.get(family, 0.0) + layers * mean
    return weighted_error(seconds, {name: _stored(setting, name) for name in seconds})


def _stored(setting: Setting, name: str) -> Error | None:
    family, _, dtype = name.partition("/")
    if family != FAMILY or 1 in setting.expert_rows(dtype).expert_ranks():
        return setting.profile.cost_error(family, dtype)
    return whole_formula(setting.profile, setting.device.workload, dtype).error
