"""Stage times from logs of whole batches: one line a layout, others by their GPU-seconds where that is asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from planner.errors import BadInputError
from planner.json_text import Json
from planner.papers.bidirl.costs.by_layout import by_layout, refuse_unknown
from planner.papers.bidirl.costs.candidates import Candidate
from planner.papers.bidirl.costs.line_fit import Line, fit_line
from planner.papers.bidirl.costs.published import colocated_rows
from planner.papers.bidirl.costs.setting import Setting
from planner.papers.bidirl.costs.told import MAX_SHOWN, Told
from planner.papers.bidirl.measurements import StepRow
from planner.papers.bidirl.problem import Role
from planner.papers.bidirl.time_kinds import Fit, Linear
from planner.papers.bidirl.time_sources import RolloutLog, TrainLog
from profiles.fitting.quality import short

GUESSED = "same_gpu_seconds"


def from_log(
    setting: Setting,
    role: Role,
    given: RolloutLog | TrainLog,
    candidates: Mapping[str, Candidate],
    smallest: str | None,
    where: str,
) -> Told:
    """Raises BadInputError with the line, the layout or the coefficient that is missing."""
    if given.layout is not None:
        refuse_unknown(given.layout, candidates, f"{where}.layout")
    default, told = given.layout or smallest, Told()
    rows = _rows(setting, role, given, candidates, default, where)
    for name, some in by_layout(rows, default, candidates, where).items():
        line = fit_line(
            some,
            alpha_s=given.alpha_s,
            gamma_s_per_token=given.gamma_s_per_token,
            max_tokens=float(setting.document.batch.max_response_tokens),
            where=where,
        )
        told.times[name] = line.time
        told.fits[name] = _account(line, some)
        if line.time.fit is not None:
            told.errors.append((line.time.fit.median_error, line.time.fit.p90_error))
    if given.unmeasured == GUESSED:
        _add_unmeasured(told, role, candidates)
    return told


def _rows(
    setting: Setting,
    role: Role,
    given: RolloutLog | TrainLog,
    candidates: Mapping[str, Candidate],
    default: str | None,
    where: str,
) -> list[StepRow]:
    """Those of the role."""
    if given.format == "verl":
        gpus = 1 if default is None else candidates[default].gpus
        rows = colocated_rows(setting.file(given.path or "", where), role, gpus, where)
    else:
        rows = [row for row in setting.steps(given, where) if row.role in (None, role)]
    if not rows:
        which = "colocated rows that tell their GPUs (resource allocation)" if given.format == "verl" else "rows"
        raise BadInputError(f"no {which} of role {role}", code="missing_field", where=where)
    return rows


def _add_unmeasured(told: Told, role: Role, candidates: Mapping[str, Candidate]) -> None:
    measured = {name: time for name, time in told.times.items() if isinstance(time, Linear)}
    added = [name for name in candidates if name not in measured]
    for name in added:
        nearest = min(measured, key=lambda each: (_apart(candidates, each, name), candidates[each].gpus, each))
        time, ratio = measured[nearest], candidates[nearest].gpus / candidates[name].gpus
        beta_s = float(f"{time.beta_s * ratio:.8e}")
        told.times[name] = time.model_copy(update={"beta_s": beta_s, "fit": _of_gpus(time.fit, ratio)})
        told.fits[name] = {"as": nearest, "beta_times": short(ratio)}
    if added:
        told.cautions[f"{role}_{GUESSED}"] = (
            f"{len(added)} {role} layouts were not measured: each is taken to need the GPU-seconds of the nearest that "
            "was, as if larger replicas lost nothing; measure what the plan picks"
        )


def _of_gpus(fit: Fit | None, ratio: float) -> Fit | None:
    """The same fit, its range as replicas of a size of which there are ``ratio`` times as many."""
    if fit is None:
        return None
    low, high = math.ceil(fit.from_replicas * ratio), math.floor(fit.to_replicas * ratio)
    return fit.model_copy(update={"from_replicas": max(1, low), "to_replicas": max(1, low, high)})


def _apart(candidates: Mapping[str, Candidate], one: str, other: str) -> float:
    return abs(math.log(candidates[one].gpus / candidates[other].gpus))


def _account(line: Line, rows: Sequence[StepRow]) -> Json:
    """Coefficients, errors seen and unseen, and the residual of each row."""
    time = line.time
    residuals: list[Json] = [
        {
            "replicas": row.replicas,
            "work_factor": row.work_factor,
            "time_s": row.time_s,
            "predicted_s": short(predicted_s),
            "error": short(error),
        }
        for row, predicted_s, error in zip(rows, line.predicted_s, line.errors, strict=True)
    ]
    return {
        "alpha_s": time.alpha_s,
        "beta_s": time.beta_s,
        "gamma_s_per_token": time.gamma_s_per_token,
        "fit": None if time.fit is None else time.fit.model_dump(),
        "left_out": None if line.unseen is None else line.unseen.model_dump(),
        "rows": residuals[:MAX_SHOWN],
    }
