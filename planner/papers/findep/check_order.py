"""The part of the check that holds starts against the constraints (page equation 5) and against the stated order."""

from __future__ import annotations

import numpy as np

from planner.findings import MAX_LISTED, Findings
from planner.papers.findep.check_facts import Counts, Durations, Floats, Truths
from planner.papers.findep.check_timeline import Starts

SLACK = 1e-6
"""How much too early a task may start, as a share of the makespan: starts may be written rounded."""


def check_starts(starts: Starts, times: Durations, order: str, makespan_s: float, found: Findings) -> None:
    """Note starts before zero, before what a task waits for, inside another task, and out of order."""
    slack_s = SLACK * max(0.0, makespan_s)
    _check_precedence(starts, times, slack_s, found)
    _check_attention_gpu(starts, times, order, slack_s, found)
    for kind, resource, lasts in (("a2e", "A2E", times.x), ("expert", "EG", times.e), ("e2a", "E2A", times.y)):
        begin = starts.of[kind]
        turn = _by_start(begin.ravel())
        ends = begin.ravel()[turn[:-1]] + lasts
        early = ~(begin.ravel()[turn[1:]] >= ends - slack_s)
        for number in _noted(early, f"overlap_{resource}", found):
            index = tuple(int(i) for i in np.unravel_index(turn[number + 1], begin.shape))
            message = f"starts at {begin[index]:.9g} s, while another task runs until {ends[number]:.9g} s"
            found.add(f"overlap_{resource}", message, starts.place(kind, index))


def last_end_s(starts: Starts, times: Durations) -> float:
    """When the last task of the last layer ends."""
    lasts = {"attention": times.a, "shared": times.s, "a2e": times.x, "expert": times.e, "e2a": times.y}
    return max(float(np.max(begin[-1]) + lasts[kind]) for kind, begin in starts.of.items())


def _check_precedence(starts: Starts, times: Durations, slack_s: float, found: Findings) -> None:
    attention, of = starts.of["attention"], starts.of
    attended = attention + times.a
    for kind, begin in of.items():
        _note_early("negative_start", kind, begin, np.zeros(begin.shape), starts, slack_s, found)
    _note_early("precedence_a2e", "a2e", of["a2e"], attended[:, :, None], starts, slack_s, found)
    _note_early("precedence_expert", "expert", of["expert"], of["a2e"] + times.x, starts, slack_s, found)
    _note_early("precedence_e2a", "e2a", of["e2a"], of["expert"] + times.e, starts, slack_s, found)
    ready = of["e2a"].max(axis=2) + times.y
    if "shared" in of:
        _note_early("precedence_shared", "shared", of["shared"], attended, starts, slack_s, found)
        ready = np.maximum(ready, of["shared"] + times.s)
    # Row t of this is layer t + 1.
    _note_early("precedence_next_layer", "attention", attention[1:], ready[:-1], starts, slack_s, found, first_layer=1)


def _note_early(
    code: str,
    kind: str,
    begin: Floats,
    earliest: Floats,
    starts: Starts,
    slack_s: float,
    found: Findings,
    first_layer: int = 0,
) -> None:
    early = ~(begin >= earliest - slack_s)
    earliest = np.broadcast_to(earliest, begin.shape)
    for number in _noted(early.ravel(), code, found):
        layer, *inner = (int(i) for i in np.unravel_index(number, begin.shape))
        layer_number = layer + first_layer
        index = (layer, *inner)
        message = f"layer {layer_number} starts this at {begin[index]:.9g} s, expected {earliest[index]:.9g} s or later"
        found.add(code, message, starts.place(kind, (layer_number, *inner)))


def _check_attention_gpu(starts: Starts, times: Durations, order: str, slack_s: float, found: Findings) -> None:
    """Attention and shared experts, in the stated order and one at a time."""
    attention = starts.of["attention"]
    shared = starts.of.get("shared")
    if shared is None:
        begin, lasts = attention, np.full(attention.shape, times.a)
    elif order == "AASS":
        begin = np.concatenate([attention, shared], axis=1)
        lasts = np.concatenate([np.full(attention.shape, times.a), np.full(shared.shape, times.s)], axis=1)
    else:
        begin = np.stack([attention, shared], axis=2).reshape(len(attention), -1)
        lasts = np.tile([float(times.a), float(times.s)], attention.shape)
    flat = begin.ravel()

    def place(number: int) -> str:
        layer, position = divmod(number, begin.shape[1])
        r1 = attention.shape[1]
        is_shared, index = divmod(position, r1) if order == "AASS" or shared is None else divmod(position, 2)[::-1]
        return starts.place("shared" if is_shared else "attention", (layer, index))

    for number in _noted(~(flat[1:] >= flat[:-1] - slack_s), "order_violation", found):
        message = f"starts at {flat[number + 1]:.9g} s, before what {order} has before it, at {flat[number]:.9g} s"
        found.add("order_violation", message, place(number + 1))
    turn = _by_start(flat)
    ends = (flat + lasts.ravel())[turn[:-1]]
    for number in _noted(~(flat[turn[1:]] >= ends - slack_s), "overlap_AG", found):
        late = int(turn[number + 1])
        message = f"starts at {flat[late]:.9g} s, while another task runs until {ends[number]:.9g} s"
        found.add("overlap_AG", message, place(late))


def _by_start(flat: Floats) -> Counts:
    """Positions in ascending order of start; of sorted starts, which are the rule, no sort."""
    if bool(np.all(flat[1:] >= flat[:-1])):
        return np.arange(len(flat))
    return np.argsort(flat, kind="stable")


def _noted(broken: Truths, code: str, found: Findings) -> list[int]:
    """Positions that are broken, as many as are listed; the others are counted."""
    positions = np.flatnonzero(broken)
    if len(positions) > MAX_LISTED:
        found.count(code, len(positions) - MAX_LISTED)
    return [int(position) for position in positions[:MAX_LISTED]]
