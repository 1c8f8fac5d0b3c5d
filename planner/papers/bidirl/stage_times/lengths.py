"""Rollout by decode steps: bound by work, or by the longest response."""

from __future__ import annotations

import numpy as np

from planner.papers.bidirl.problem import Lengths
from planner.papers.bidirl.stage_times.work import Floats, Ints, Work


def taken_s(time: Lengths, work: Work, parts: Ints, replicas: Ints) -> Floats:
    """Seconds of so many groups on so many replicas, broadcast; of none, the start-up."""
    on_fullest = -(-parts // replicas) * work.responses_per_group
    return _of_sequences(time, work, on_fullest.astype(np.float64))


def relaxed_s(time: Lengths, work: Work, replicas: Floats) -> Floats:
    """Seconds of a whole batch on a real number of replicas, its groups divided without rest."""
    return _of_sequences(time, work, work.whole * work.responses_per_group / replicas)


def _of_sequences(time: Lengths, work: Work, sequences: Floats) -> Floats:
    """Seconds of the fullest replica by its sequences; never falls as they grow."""
    at_once = np.minimum(sequences, time.concurrency)
    step_s = time.step_base_s + time.step_per_sequence_s * at_once
    by_work = sequences * time.mean_response_tokens / np.where(at_once == 0, 1.0, at_once)
    steps = np.where(sequences == 0, 0.0, np.maximum(work.longest_tokens, by_work))
    return time.alpha_s + sequences * time.prompt_tokens * time.prefill_s_per_token + step_s * steps
