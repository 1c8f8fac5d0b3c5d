"""What a derived problem led to, for the reader of its plan: files by name, what was looked up, every rank's bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.derivation.clusters import hardware_account, name_only
from planner.json_text import Json
from planner.papers.memory.costs.rank_bytes import RankBytes
from planner.papers.memory.costs.setting import Setting


def resolved_of(setting: Setting, ranks: Sequence[RankBytes], chosen: int) -> Json:
    """The derive object after defaults and overrides, and under ``resolved`` what it led to."""
    document = setting.given.model_dump(exclude_none=True)
    resolved: dict[str, Json] = {}
    if setting.hardware is not None and setting.cluster is not None:
        hardware, resolved = hardware_account(setting.hardware, setting.cluster)
        document |= hardware
    name_only(document, "model")
    resolved["model"] = {"name": setting.model.name, "layers": sum(run.count for run in setting.model.runs)}
    resolved["rank"] = chosen
    resolved["ranks"] = [
        {
            "rank": each.rank,
            "parameters": int(each.parameters.dense),
            "expert_parameters": int(each.parameters.experts),
            "kept_bytes": math.fsum(each.kept.values()),
            "materialised_bytes": math.fsum(each.materialised.values()),
        }
        for each in ranks
    ]
    return {**document, "resolved": resolved}
