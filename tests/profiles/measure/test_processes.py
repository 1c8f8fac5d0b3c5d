"""Ranks are real processes: they compute together, and whatever happens to one ends all and leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from profiles.errors import ProfileError
from profiles.measure.kernels import torch_is_importable
from profiles.measure.processes import Ranks, run_ranks
from profiles.measure.shared_memory_group import SLOT_BYTES

HERE = Path(__file__).parent
SHARED = pytest.param(("shared_memory", 3), id="shared_memory")
GLOO = pytest.param(
    ("gloo", 2), id="gloo", marks=pytest.mark.skipif(not torch_is_importable(), reason="gloo needs torch")
)


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks find their work by the name of its module."""
    monkeypatch.syspath_prepend(str(HERE))


@pytest.fixture(scope="module", params=[SHARED, GLOO])
def team(request: pytest.FixtureRequest) -> Iterator[Ranks]:
    """Ranks, started once; through shared memory an odd number, and more than some machines have cores."""
    transport, count = request.param
    with Ranks(count, transport, timeout_s=60) as ranks:
        yield ranks


def test_each_rank_answers_in_its_place(team: Ranks) -> None:
    import work_for_ranks as work

    count = team.ranks
    assert team.call(work.say_rank, "rank") == [f"rank {rank} of {count}" for rank in range(count)]
    assert team.call_each(work.say_rank, [(word,) for word in "abc"[:count]])[1] == f"b 1 of {count}"


def test_collectives_give_what_their_names_say(team: Ranks) -> None:
    import work_for_ranks as work

    ranks, rows = team.ranks, 2
    each = [np.arange(ranks * rows) + 100.0 * rank for rank in range(ranks)]
    for rank, found in enumerate(team.call(work.collectives, rows)):
        own = slice(rank * rows, (rank + 1) * rows)
        assert found == [
            np.sum(each, axis=0).tolist(),
            np.concatenate(each).tolist(),
            np.sum(each, axis=0)[own].tolist(),
            np.concatenate([array[own] for array in each]).tolist(),
            each[rank - 1].tolist(),
        ]


def test_messages_larger_than_a_slot_arrive_whole(team: Ranks) -> None:
    import work_for_ranks as work

    # Two and a bit slots of doubles, not a multiple of the ranks.
    assert team.call(work.big_all_reduce, 2 * SLOT_BYTES // 8 + 5) == [True] * team.ranks


def test_a_part_of_the_ranks_works_alone_in_the_order_it_was_given(team: Ranks) -> None:
    import work_for_ranks as work

    found = team.call(work.in_parts)
    last = team.ranks - 1
    assert found[0][0] == found[last][0] == [last, 0.0]
    assert found[1][1] == [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("team", [GLOO], indirect=True)
def test_the_collectives_of_gpus_run_between_processes(team: Ranks) -> None:
    import work_for_ranks as work

    first, second = team.call(work.gpu_collectives)
    assert first == second == [
        "all_reduce", "all_gather", "reduce_scatter", "all_to_all_single", "batch_isend_irecv"
    ]  # fmt: skip


@pytest.mark.skipif(not torch_is_importable(), reason="torchrun is torch's")
def test_ranks_of_torchrun_follow_the_first_and_leave_with_it(tmp_path: Path) -> None:
    import work_for_ranks as work

    # The ranks take 1 and 2 s: a collective takes as long as the slower, compute their mean.
    found = run_ranks(2, work.as_under_torchrun, [str(tmp_path / "meeting")], "shared_memory", timeout_s=120)
    assert found == [[2.0, 1.5], []]


def test_ranks_keep_cores_of_their_own_where_there_are_enough() -> None:
    import work_for_ranks as work

    if not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core, or a system without affinity")
    first, second = run_ranks(2, work.cores, transport="shared_memory")
    assert len(first) == len(second) == 1
    assert first != second


@pytest.mark.parametrize(
    ("work", "message"),
    [
        ("fail_at", "rank 1: ValueError: no such thing as this"),
        ("die_at", "rank 1 was ended by signal 9 (out of memory?)"),
        ("hang_at", "no answer from rank 1 in 2 s"),
    ],
)
def test_a_rank_that_fails_ends_all_and_is_named(work: str, message: str) -> None:
    import work_for_ranks

    with Ranks(2, "shared_memory") as ranks:
        pids = ranks.call(work_for_ranks.own_pid)
        ranks.timeout_s = 2
        with pytest.raises(ProfileError) as raised:
            ranks.call(getattr(work_for_ranks, work), 1)
        assert raised.value.message == message
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_what_cannot_be_started_is_refused_by_name() -> None:
    with pytest.raises(ProfileError, match="expected 1 to 64 ranks, got 65"):
        Ranks(65, "shared_memory")
    with pytest.raises(ProfileError, match="unknown transport 'mpi'; known: gloo, shared_memory"):
        Ranks(2, "mpi")


def test_gloo_without_torch_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profiles.measure.processes.torch_is_importable", lambda: False)
    with pytest.raises(ProfileError, match=r"gloo needs torch: pip install 'girih\[measure\]'"):
        Ranks(2, "gloo")


INTERRUPTED = """
import sys
sys.path.insert(0, {here!r})
import work_for_ranks as work
from profiles.measure.processes import Ranks
if __name__ == "__main__":
    with Ranks(2, "shared_memory") as ranks:
        print(*ranks.call(work.own_pid), flush=True)
        ranks.call(work.hang_at, 0)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_a_parent_that_is_interrupted_or_killed(how: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED.format(here=str(HERE)))
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": str(HERE.parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2
    # A terminal's Ctrl-C reaches the ranks too; a kill reaches the parent alone, in the middle of rank 0's work.
    if how == signal.SIGINT:
        os.killpg(parent.pid, how)
    else:
        parent.kill()
    _, talk = parent.communicate(timeout=60)
    assert gone(pids[0])
    assert gone(pids[1])
    if how == signal.SIGINT:
        assert talk.count("KeyboardInterrupt") == 1  # the parent's own


def gone(pid: int) -> bool:
    """Whether a process is gone, waiting a little for a system that is slow to notice."""
    for _ in range(200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").exists() and " Z " in Path(f"/proc/{pid}/stat").read_text():
            return True
        time.sleep(0.05)
    return False
