"""The stage times of each role by layout, from whatever source its problem names."""

from __future__ import annotations

from collections.abc import Mapping

from planner.papers.bidirl.costs.candidates import Candidate
from planner.papers.bidirl.costs.from_decode import from_decode
from planner.papers.bidirl.costs.from_log import from_log
from planner.papers.bidirl.costs.from_timers import from_timers
from planner.papers.bidirl.costs.setting import Setting
from planner.papers.bidirl.costs.stated import as_stated
from planner.papers.bidirl.costs.told import Told
from planner.papers.bidirl.time_sources import Decode, RolloutLog, Timers, TrainLog

ROLLOUT, TRAIN = "derive.rollout.time", "derive.train.time"


def rollout_times(
    setting: Setting, candidates: Mapping[str, Candidate], smallest: str | None, mean_tokens: float | None
) -> Told:
    """By layout; ``smallest`` is what rows that name none are of. Raises BadInputError."""
    given = setting.given.rollout.time
    if isinstance(given, RolloutLog):
        return from_log(setting, "rollout", given, candidates, smallest, ROLLOUT)
    if isinstance(given, Decode):
        return from_decode(setting, given, candidates, smallest, mean_tokens, ROLLOUT)
    return as_stated(given, candidates, ROLLOUT)


def train_times(setting: Setting, candidates: Mapping[str, Candidate], smallest: str | None) -> Told:
    """The same of training."""
    given = setting.given.train.time
    if isinstance(given, TrainLog):
        return from_log(setting, "train", given, candidates, smallest, TRAIN)
    if isinstance(given, Timers):
        return from_timers(setting, given, candidates, smallest, TRAIN)
    return as_stated(given, candidates, TRAIN)
