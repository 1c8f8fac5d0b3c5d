"""The run without pools: all GPUs roll out, then all train, and switch twice a step (page, section 3.5)."""

from __future__ import annotations

from planner.papers.bidirl.replay.outcome import Doing, Outcome, Pool, Span, step_period_s
from planner.papers.bidirl.replay.setting import Setting

Part = tuple[Pool, Doing, float]


def replay_colocated(setting: Setting, spans: list[Span] | None = None) -> Outcome:
    """All steps one after the other; there is nothing to sync, and no pool is idle.

    ``spans`` are given what all GPUs do, under the name of the pool that would do it.
    """
    clock_s, completions_s = 0.0, []
    for step in range(setting.steps):
        for pool, doing, seconds in _parts(setting, step):
            if spans is not None and seconds:
                spans.append(Span(pool, doing, step, clock_s, clock_s + seconds))
            clock_s += seconds
        completions_s.append(clock_s)
    return Outcome(
        completions_s=tuple(completions_s),
        step_period_s=step_period_s(completions_s, setting.staleness),
        rollout_idle_s=0.0,
        train_idle_s=0.0,
    )


def _parts(setting: Setting, step: int) -> tuple[Part, ...]:
    """What a step consists of, and its seconds."""
    rollout, train = setting.colocated_rollout, setting.colocated_train
    work = setting.work_factor[step % len(setting.work_factor)]
    tokens = setting.max_response_tokens[step % len(setting.max_response_tokens)]
    return (
        ("rollout", "fixed", rollout.fixed_s),
        ("rollout", "bulk", rollout.bulk_replica_s * work / rollout.replicas),
        ("rollout", "tail", rollout.tail_s_per_token * tokens),
        ("rollout", "switch", setting.colocated_switch_s),
        ("train", "bulk", train.bulk_replica_s * work / train.replicas),
        ("train", "fixed", train.fixed_s + train.tail_s_per_token * tokens),
        ("train", "switch", setting.colocated_switch_s),
    )
