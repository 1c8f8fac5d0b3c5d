"""M_r and M_t (page, section 3.2), computed a second time, and what a replay takes for a fluid (section 3.6)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.papers.bidirl.problem import AnyTime, Batch, Lengths, Linear, Stages, Table

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Fluid(NamedTuple):
    """Seconds that no replica shortens, replica-seconds that all divide, and seconds a token of the longest response.

    All are of a step whose work factor is 1.
    """

    fixed_s: float
    bulk_replica_s: float
    tail_s_per_token: float


def whole_of(batch: Batch, *, trains: bool) -> int:
    """Parts of a whole batch: prompt groups, or trainer chunks."""
    return batch.train_chunks if trains else batch.prompt_groups


def seconds(time: AnyTime, batch: Batch, parts: Ints, replicas: Ints, *, trains: bool) -> Floats:
    """M of each number of parts on each number of replicas, broadcast; infinite where a table does not list it."""
    q: Floats = parts / whole_of(batch, trains=trains)
    longest = batch.max_response_tokens
    if isinstance(time, Linear):
        return time.alpha_s + time.gamma_s_per_token * longest + q * (time.beta_s / replicas)
    if isinstance(time, Table):
        by_replicas = dict(zip(time.replicas, time.time_s, strict=True))
        listed = np.array([by_replicas.get(d, math.inf) for d in np.ravel(replicas).tolist()])
        measured = listed.reshape(np.shape(replicas))
        return np.where(q > 0, np.where(q > 0, q, 1.0) * measured, 0.0)
    if isinstance(time, Lengths):
        return _decoded_s(time, batch, parts, replicas)
    return _staged_s(time, parts, batch.train_chunks * replicas)


def _decoded_s(time: Lengths, batch: Batch, parts: Ints, replicas: Ints) -> Floats:
    """Of at least one group."""
    n = (parts + replicas - 1) // replicas * batch.responses_per_group
    b = np.minimum(n, time.concurrency)
    decode_steps = np.maximum(batch.max_response_tokens, n / b * time.mean_response_tokens)
    decoding_s: Floats = (time.step_base_s + time.step_per_sequence_s * b) * decode_steps
    return time.alpha_s + n * (time.prompt_tokens * time.prefill_s_per_token) + decoding_s


def _staged_s(time: Stages, numerator: Ints, denominator: Ints) -> Floats:
    fixed_s = math.fsum(stage.fixed_s for stage in time.stages)
    total: Floats = np.full(np.broadcast_shapes(np.shape(numerator), np.shape(denominator)), fixed_s)
    for stage in time.stages:
        total += stage.chunk_s * ((stage.chunks * numerator + denominator - 1) // denominator)
    return total


def batch_s(time: AnyTime, batch: Batch, replicas: int, *, trains: bool) -> float:
    """M of a whole batch; infinite where a table does not list the replicas."""
    whole = np.array(whole_of(batch, trains=trains))
    return float(seconds(time, batch, whole, np.array(replicas), trains=trains))


def fluid_of(time: AnyTime, batch: Batch, replicas: int, *, trains: bool) -> Fluid:
    """What a replay takes a stage for, planned on so many replicas."""
    if isinstance(time, Linear):
        return Fluid(time.alpha_s, time.beta_s, time.gamma_s_per_token)
    return Fluid(0.0, batch_s(time, batch, replicas, trains=trains) * replicas, 0.0)
