"""What a derived problem led to, for the reader of its plan: files by name, bytes of candidates, fits."""

from __future__ import annotations

from planner.derivation.clusters import hardware_account, name_only
from planner.json_text import Json
from planner.papers.bidirl.costs.held import Held
from planner.papers.bidirl.costs.setting import Setting
from planner.papers.bidirl.costs.told import Told


def resolved_of(setting: Setting, roles: dict[str, tuple[Held, Told]], mean_tokens: float | None) -> Json:
    """The derive object after defaults, and under ``resolved`` what it led to."""
    hardware, resolved = hardware_account(setting.hardware, setting.cluster)
    document = setting.given.model_dump(exclude_none=True)
    document["cluster"] = hardware["cluster"]
    name_only(document, "model")
    for role, names in (("rollout", ("decode", "prefill")), ("train", ("timers",))):
        time = document[role]["time"]
        for holder in (time, *(time[name] for name in names if name in time)):
            name_only(holder, "path")
    if "responses" in document:
        name_only(document["responses"], "path")
    resolved["model"] = {"name": setting.model.name, "parameters": setting.model.parameters}
    if mean_tokens is not None:
        resolved["mean_response_tokens"] = mean_tokens
    for role, (held, told) in roles.items():
        resolved[role] = {
            "candidates": {
                name: {"gpus": each.gpus, "memory_bytes": held.total(name), "timed": name in told.times}
                for name, each in held.candidates.items()
            },
            "fits": told.fits,
        }
    return {**document, "resolved": resolved}
