"""Rollout times from decode steps and prefills: tau_0 + tau_1 running, and seconds a token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.errors import BadInputError
from planner.papers.bidirl.costs.by_layout import by_layout, refuse_unknown
from planner.papers.bidirl.costs.candidates import Candidate
from planner.papers.bidirl.costs.line_fit import MODELLED
from planner.papers.bidirl.costs.setting import Setting
from planner.papers.bidirl.costs.straight import Straight, straight
from planner.papers.bidirl.costs.told import Told
from planner.papers.bidirl.measurements import PrefillRow
from planner.papers.bidirl.problem import Lengths
from planner.papers.bidirl.time_sources import Decode

FEWEST_RUNNING = 2
"""Numbers of running sequences that tell what a step takes of its own from what each sequence adds."""


def from_decode(
    setting: Setting,
    given: Decode,
    candidates: Mapping[str, Candidate],
    smallest: str | None,
    mean_tokens: float | None,
    where: str,
) -> Told:
    """``mean_tokens`` is the mean response, where lengths were given. Raises BadInputError."""
    mean = given.mean_response_tokens if given.mean_response_tokens is not None else mean_tokens
    if mean is None:
        message = 'missing field "mean_response_tokens": needed where derive.responses is not given'
        raise BadInputError(message, code="missing_field", where=f"{where}.mean_response_tokens")
    most = setting.document.batch.max_response_tokens
    if mean > most:
        message = f"expected at most batch.max_response_tokens = {most:,}, got {mean:g}"
        raise BadInputError(message, code="out_of_range", where=f"{where}.mean_response_tokens")
    if given.layout is not None:
        refuse_unknown(given.layout, candidates, f"{where}.layout")
    default, told = given.layout or smallest, Told()
    prefills = _prefills(setting, given, candidates, default, where)
    place = f"{where}.decode"
    steps = by_layout(setting.decodes(given.decode, place), default, candidates, place)
    for name, rows in steps.items():
        if len({row.running for row in rows}) < FEWEST_RUNNING:
            message = f"expected decode steps of {name[:60]} at {FEWEST_RUNNING} numbers of running sequences at least"
            raise BadInputError(message, code="missing_field", where=place)
        step = straight([row.running for row in rows], [row.time_s for row in rows])
        prefill = _prefill(prefills.get(name), given, name, where)
        told.times[name] = Lengths(
            kind="lengths",
            alpha_s=given.alpha_s,
            prompt_tokens=float(setting.given.prompt_tokens),
            prefill_s_per_token=prefill.slope_s,
            mean_response_tokens=float(mean),
            concurrency=setting.given.rollout.concurrency,
            step_base_s=step.base_s,
            step_per_sequence_s=step.slope_s,
            sources=MODELLED,
        )
        told.fits[name] = {"decode": step.account(), "prefill": prefill.account()}
        told.judge(f"decode steps ({name[:60]})", step.median, step.p90)
        if prefill.rows:
            told.judge(f"prefills ({name[:60]})", prefill.median, prefill.p90)
        _say_beyond(told, name, max(row.running for row in rows), setting.given.rollout.concurrency)
    return told


def _prefills(
    setting: Setting, given: Decode, candidates: Mapping[str, Candidate], default: str | None, where: str
) -> Mapping[str, Sequence[PrefillRow]]:
    if given.prefill is None:
        return {}
    place = f"{where}.prefill"
    return by_layout(setting.prefills(given.prefill, place), default, candidates, place)


def _prefill(rows: Sequence[PrefillRow] | None, given: Decode, name: str, where: str) -> Straight:
    if given.prefill_s_per_token is not None:
        return Straight(0.0, given.prefill_s_per_token, 0, 0.0, 0.0)
    if rows is None:
        message = f"no rows of prefills of {name[:60]}, of which there are decode steps"
        raise BadInputError(message, code="missing_field", where=f"{where}.prefill")
    return straight([row.tokens for row in rows], [row.time_s for row in rows])


def _say_beyond(told: Told, name: str, measured: int, concurrency: int) -> None:
    if measured < concurrency:
        told.cautions["decode_beyond_rows"] = (
            f"decode steps were measured of at most {measured:,} running sequences ({name[:60]}), and "
            f"derive.rollout.concurrency is {concurrency:,}: measure more of them"
        )
